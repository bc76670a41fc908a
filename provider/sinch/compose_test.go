package sinch

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestSubmissionsAreWrittenAsBatchesOfOne(t *testing.T) {
	t.Parallel()
	listening := api{Config{Plan: plan, Token: token, Secrets: []string{secret}, Callback: "https://sms.example.com/receipts/sinch"}}
	for name, c := range map[string]struct {
		api api
		s   provider.Submission
	}{
		"plain": {api{Config{Plan: plan, Token: token, From: "12345"}}, provider.Submission{To: recipient, Text: "Your code is 123456"}},
		"full": {listening, provider.Submission{
			Key: key, To: recipient, From: "ACME", Text: "Grüße, 你好 & <b>", Validity: now.Add(5 * time.Minute),
		}},
	} {
		r, err := c.api.compose(&c.s, now)
		if err != nil {
			t.Fatal(err)
		}
		webtest.Golden(t, filepath.Join("testdata", "requests", name+".http"), r)
	}
}

func TestValidityIsCutToThreeDays(t *testing.T) {
	t.Parallel()
	if got, want := expiry(now.Add(30*24*time.Hour), now), "2026-11-24T10:00:00.000Z"; got != want {
		t.Errorf("expires at %s, want %s", got, want)
	}
	if got := expiry(time.Time{}, now); got != "" {
		t.Errorf("expires at %s without a validity", got)
	}
}

func TestTextsThatLookLikeParametersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	r, err := api{Config{Plan: plan}}.compose(&provider.Submission{To: recipient, Text: "pay ${amount} or $5 to ${x}"}, now)
	if err != nil {
		t.Fatal(err)
	}
	var b batch
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	if b.Body != "pay ${dollar}{amount} or $5 to ${dollar}{x}" || b.Parameters["dollar"].Default != "$" || len(b.Parameters) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestSinglePartsCannotBeSent(t *testing.T) {
	t.Parallel()
	if _, err := (api{}).Compose(&provider.Submission{To: recipient, Text: "x", Parts: []int{1}}); err == nil {
		t.Error("a part was written as a whole message")
	}
}

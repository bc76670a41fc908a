package sinch

import (
	"encoding/json"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestSubmissionsAreWrittenAsBatchesOfOne(t *testing.T) {
	t.Parallel()
	webtest.Requests[Config]{
		Files: "testdata/requests/*.http", Config: Config{Plan: plan, Token: token, From: "12345"},
		Submission: provider.Submission{To: recipient, Text: "Your code is 123456"},
		Compose: func(cfg Config, s *provider.Submission) (*web.Request, error) {
			return api{cfg}.compose(s, now)
		},
		Cases: map[string]webtest.Unusual[Config]{
			"plain": {},
			"full": {
				Config: func(c *Config) { c.From, c.Secrets, c.Callback = "", []string{secret}, public },
				Submission: func(s *provider.Submission) {
					s.Key, s.From, s.Text, s.Validity = key, "ACME", "Grüße, 你好 & <b>",
						now.Add(5*time.Minute)
				},
			},
		},
	}.Run(t)
}

// TestValidityIsCutToLessThanThreeDays: by Sinch's clock, our three days may be more.
func TestValidityIsCutToLessThanThreeDays(t *testing.T) {
	t.Parallel()
	if got, want := expiry(now.Add(30*24*time.Hour), now), "2026-11-24T09:55:00.000Z"; got != want {
		t.Errorf("expires at %s, want %s", got, want)
	}
	if got := expiry(time.Time{}, now); got != "" {
		t.Errorf("expires at %s without a validity", got)
	}
}

func TestTextsThatLookLikeParametersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	r, err := api{Config{Plan: plan}}.compose(
		&provider.Submission{To: recipient, Text: "pay ${amount} or $5 to ${x}"}, now)
	if err != nil {
		t.Fatal(err)
	}
	var b batch
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	if b.Body != "pay ${dollar}{amount} or $5 to ${dollar}{x}" ||
		b.Parameters["dollar"].Default != "$" || len(b.Parameters) != 1 {
		t.Errorf("%+v", b)
	}
}

package infobip

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestSubmissionsAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	full := provider.Submission{
		Key: key, To: recipient, From: "+447700900000", Text: "Grüße, 你好 & <b>", Validity: now.Add(5 * time.Minute),
	}
	for name, c := range map[string]struct {
		cfg Config
		s   provider.Submission
	}{
		"plain":        {Config{Key: apiKey, From: "ACME"}, provider.Submission{To: recipient, Text: "Your code is 123456"}},
		"full":         {Config{Key: apiKey, Auths: []Auth{ByURL}, Secrets: []string{secret, older}, Callback: public}, full},
		"subscription": {Config{Key: apiKey, Auths: []Auth{ByBasic}, Secrets: []string{secret}, User: "u", Callback: public}, full},
	} {
		r, err := api{c.cfg}.compose(&c.s, now)
		if err != nil {
			t.Fatal(err)
		}
		webtest.Golden(t, filepath.Join("testdata", "requests", name+".http"), r)
	}
}

func TestValidityIsOneSecondToTwoDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		want int64
	}{{-time.Hour, 1}, {90 * time.Second, 90}, {30 * 24 * time.Hour, 48 * 60 * 60}} {
		if got := validity(now.Add(c.left), now); got.ValidityPeriod.Amount != c.want || got.ValidityPeriod.TimeUnit != "SECONDS" {
			t.Errorf("%s left is written as %+v, want %d seconds", c.left, got, c.want)
		}
	}
}

func TestSinglePartsCannotBeSent(t *testing.T) {
	t.Parallel()
	if _, err := (api{}).Compose(&provider.Submission{To: recipient, Text: "x", Parts: []int{1}}); err == nil {
		t.Error("a part was written as a whole message")
	}
}

func TestAddressesShowNoSecret(t *testing.T) {
	t.Parallel()
	r, err := api{Config{Key: apiKey, Auths: []Auth{ByURL}, Secrets: []string{secret}, Callback: public}}.Compose(&provider.Submission{Key: key, To: recipient, Text: "x"})
	if err != nil || bytes.Contains(r.Body, []byte(secret)) {
		t.Errorf("%s, %v", r.Body, err)
	}
}

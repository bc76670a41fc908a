package infobip

import (
	"bytes"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestSubmissionsAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	full := func(s *provider.Submission) {
		s.Key, s.From, s.Text, s.Validity = key, "+447700900000", "Grüße, 你好 & <b>",
			now.Add(5*time.Minute)
	}
	webtest.Requests[Config]{
		Files: "testdata/requests/*.http", Config: Config{Key: apiKey, From: "ACME"},
		Submission: provider.Submission{To: recipient, Text: "Your code is 123456"},
		Compose: func(cfg Config, s *provider.Submission) (*web.Request, error) {
			return api{cfg}.compose(s, now)
		},
		Cases: map[string]webtest.Unusual[Config]{
			"plain": {},
			"full": {Submission: full, Config: func(c *Config) {
				*c = Config{
					Key: apiKey, Auths: []Auth{ByURL}, Secrets: []string{secret, older},
					Callback: public,
				}
			}},
			"subscription": {Submission: full, Config: func(c *Config) {
				*c = Config{
					Key: apiKey, Auths: []Auth{ByBasic}, Secrets: []string{secret}, User: "u",
					Callback: public,
				}
			}},
		},
	}.Run(t)
}

func TestValidityIsOneSecondToTwoDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		want int64
	}{{-time.Hour, 1}, {90 * time.Second, 90}, {30 * 24 * time.Hour, 48 * 60 * 60}} {
		if got := validity(now.Add(c.left), now); got.ValidityPeriod.Amount != c.want ||
			got.ValidityPeriod.TimeUnit != "SECONDS" {
			t.Errorf("%s left is written as %+v, want %d seconds", c.left, got, c.want)
		}
	}
}

func TestAddressesShowNoSecret(t *testing.T) {
	t.Parallel()
	r, err := api{
		Config{Key: apiKey, Auths: []Auth{ByURL}, Secrets: []string{secret}, Callback: public},
	}.Compose(&provider.Submission{Key: key, To: recipient, Text: "x"})
	if err != nil || bytes.Contains(r.Body, []byte(secret)) {
		t.Errorf("%s, %v", r.Body, err)
	}
}

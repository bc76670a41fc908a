package vonage

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func account(api API) Config {
	return Config{API: api, APIKey: apiKey, APISecret: apiSecret, From: "ACME"}
}

func TestSubmissionsAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	full := webtest.Unusual[Config]{
		Config: func(c *Config) { c.Secrets, c.Callback = []string{secret}, public },
		Submission: func(s *provider.Submission) {
			s.Key, s.From, s.Text, s.Validity = key, "+447700900000", "Grüße, 你好 & <b>",
				now.Add(5*time.Minute)
		},
	}
	requests := webtest.Requests[Config]{
		Files: "testdata/requests/messages_*.http", Config: account(Messages),
		Submission: provider.Submission{To: recipient, Text: "Your code is 123456"},
		Compose: func(cfg Config, s *provider.Submission) (*web.Request, error) {
			return newMessages(cfg).compose(s, now)
		},
		Cases: map[string]webtest.Unusual[Config]{"plain": {}, "full": full},
	}
	t.Run("Messages API", requests.Run)
	requests.Files, requests.Config = "testdata/requests/sms_*.http", account(SMS)
	requests.Compose = func(cfg Config, s *provider.Submission) (*web.Request, error) {
		return shortMessages{cfg}.compose(s, now)
	}
	t.Run("SMS API", requests.Run)
}

func TestWhatCannotBeSentIsSaidBeforeAnyByte(t *testing.T) {
	t.Parallel()
	cfg := account(Messages)
	cfg.From = ""
	for _, api := range []web.API{newMessages(cfg), shortMessages{cfg}} {
		_, err := api.Compose(&provider.Submission{To: recipient, Text: "x"})
		if _, ends := errors.AsType[web.Unsendable](err); err == nil || ends {
			t.Errorf("a message without a sender: %v", err)
		}
	}
}

func TestLifetimeStaysWithinWhatVonageTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ left, want time.Duration }{
		{time.Second, 20 * time.Second},
		{-time.Hour, 20 * time.Second},
		{time.Minute, time.Minute},
		{30 * 24 * time.Hour, 7 * 24 * time.Hour},
	} {
		if got := lifetime(now.Add(c.left), now); got != c.want {
			t.Errorf("%s left is written as %s, want %s", c.left, got, c.want)
		}
	}
	if got := lifetime(time.Time{}, now); got != 0 {
		t.Errorf("no validity is written as %s", got)
	}
}

// TestEncodingIsThatOfTheText: Vonage then splits the text as package sms counts it.
func TestEncodingIsThatOfTheText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain €[]": `"encoding_type":"text"`, "curly ’": `"encoding_type":"unicode"`,
		"😀": `"encoding_type":"unicode"`,
	} {
		r, err := newMessages(account(Messages)).Compose(
			&provider.Submission{To: recipient, Text: text})
		if err != nil || !bytes.Contains(r.Body, []byte(want)) {
			t.Errorf("%q is written as %s, want %s (%v)", text, r.Body, want, err)
		}
	}
}

func TestOneTokenServesTenMinutesOfRequests(t *testing.T) {
	t.Parallel()
	l := &login{cfg: Config{Application: application, PrivateKey: applicationKey()}}
	token := func(at time.Time) string {
		header, err := l.header(at)
		if err != nil || !strings.HasPrefix(header, "Bearer ") {
			t.Fatalf("%q, %v", header, err)
		}
		return header
	}
	first := token(now)
	if token(now.Add(10*time.Minute-time.Second)) != first {
		t.Error("another token although the first one is still valid")
	}
	if token(now.Add(10*time.Minute)) == first {
		t.Error("the same token although it expires soon")
	}
}

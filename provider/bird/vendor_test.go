package bird

import (
	"crypto/tls"
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	onSender := map[string][]string{
		"messages": {"bad_originator"}, "channels": {"bad_sender", "bad_receiver_and_sender"},
	}
	for api, answers := range map[string]map[string]provider.Result{
		"messages": {
			"accepted": {
				Outcome: provider.Accepted, Reference: "e8077d803532c0b5937c639b60216938",
			},
			"accepted_with_errors": {Outcome: provider.Unknown, Code: "201/unreadable"},
			"without_id":           {Outcome: provider.Unknown, Code: "201/unreadable"},
			"wrong_key":            {Outcome: provider.Refused, Code: "401/2"},
			"no_balance":           {Outcome: provider.Refused, Code: "402/25"},
			"bad_recipient":        {Outcome: provider.Rejected, Code: "422/10"},
			"bad_body":             {Outcome: provider.Refused, Unfit: true, Code: "422/10"},
			"misdirected":          {Outcome: provider.Unknown, Code: "421/10"},
			"bad_originator":       {Outcome: provider.Refused, Unfit: true, Code: "422/10"},
			"not_found":            {Outcome: provider.Refused, Code: "404/98"},
			"slow_down_when": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 7 * time.Second,
			},
			"slow_down":         {Outcome: provider.Throttled, Code: "429/7"},
			"internal_error":    {Outcome: provider.Unknown, Code: "500/99"},
			"bad_gateway":       {Outcome: provider.Unknown, Code: "502"},
			"malformed":         {Outcome: provider.Unknown, Code: "201/unreadable"},
			"malformed_refusal": {Outcome: provider.Unknown, Code: "422"},
			"redirect":          {Outcome: provider.Unknown, Code: "302"},
		},
		"channels": {
			"accepted": {
				Outcome: provider.Accepted, Reference: "0191f0c5-5c0e-7b0a-a8a0-3f449ad95352",
			},
			"bad_receiver": {Outcome: provider.Rejected, Code: "422/InvalidPayload"},
			"bad_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"bad_receiver_and_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"bad_body": {
				Outcome: provider.Refused, Unfit: true, Code: "422/InvalidPayload",
			},
			"invalid_without_details": {Outcome: provider.Refused, Code: "422/InvalidPayload"},
			"number_as_code":          {Outcome: provider.Refused, Code: "422"},
			"slow_down":               {Outcome: provider.Throttled, Code: "429/TooManyRequests"},
			"forbidden":               {Outcome: provider.Refused, Code: "403/Forbidden"},
			"slow_down_when": {
				Outcome: provider.Throttled, Code: "429/TooManyRequests",
				RetryAfter: 3 * time.Second,
			},
			"unavailable": {Outcome: provider.Unknown, Code: "503"},
			"malformed":   {Outcome: provider.Unknown, Code: "202/unreadable"},
		},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			v := webtest.Vendor{
				Protocol: func() webtest.Protocol { return birdtest.New(account(api)) },
				Secrets:  []string{accessKey, signingKey},
				Open: func(t testing.TB, reach web.Config) provider.Channel {
					return reaching(t, api, reach)
				},
				Files:    "testdata/" + api + "_*.http",
				Classify: apiOf(open(t, channelSettings(api, nil))).Classify,
				Answers:  answers, OnSender: onSender[api],
			}
			if api == "messages" { // the other API has no validity
				v.Validity = &webtest.Validity{Pattern: `"validity":(\d+)`}
			}
			webtest.CheckVendor(t, v)
		})
	}
}

// reaching returns a channel of an API with this web configuration.
func reaching(t testing.TB, api string, reach web.Config) *Channel {
	t.Helper()
	cfg, err := ParseSettings(channelSettings(api, nil), files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web = reach
	return New(cfg)
}

// TestMessagesGoOutOnceOverTLS trusts the authority in the settings.
func TestMessagesGoOutOnceOverTLS(t *testing.T) {
	t.Parallel()
	authority := httptest.NewUnstartedServer(nil)
	authority.StartTLS() // for its certificate, which is valid for 127.0.0.1
	t.Cleanup(authority.Close)
	pemFile := pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
	carrier := webtest.Serve(t, webtest.Config{
		Protocol: birdtest.New(account("messages")),
		TLS: &tls.Config{
			Certificates: authority.TLS.Certificates, MinVersion: tls.VersionTLS12,
		},
	})
	trusting := webtest.Files{"ca": string(pemFile)}
	maps.Copy(trusting, files)
	c, err := Open(
		channelSettings("messages", map[string]any{"base_url": carrier.URL(), "tls_ca_file": "ca"}),
		trusting.Environment(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	for range 10 {
		if r := c.Send(t.Context(), *submission()); r.Outcome != provider.Accepted {
			t.Fatalf("%v %s: %v", r.Outcome, r.Code, r.Err)
		}
	}
	if n := carrier.Requests(); n != 10 {
		t.Errorf("%d requests for 10 messages", n)
	}
}

const (
	accessKey  = "live_hunter2x"
	signingKey = "s1gning-hunter2x"
	workspace  = "b1405560-c8d3-4b1a-877d-3f449ad95352"
	channelID  = "a1405560-c8d3-4b1a-877d-3f449ad95352"
	callback   = "https://sms.example.com/receipts/bird-nl"
	key        = "000102030405060708090a0b0c0d0e0f"
)

// files replaces the disk.
var files = webtest.Files{
	"access": accessKey + "\n", "signing": signingKey + "\n", "old": "0ld-hunter2x\n", "empty": "",
	"two": "a\nb\n",
}

// channelSettings returns settings for one of the two APIs, with additions.
func channelSettings(api string, more map[string]any) map[string]any {
	values := map[string]any{
		"api": api, "access_key_file": "access", "signing_key_files": []any{"old", "signing"},
		"allow_private": true,
	}
	if api == "channels" {
		values["workspace"], values["channel"] = workspace, channelID
	}
	maps.Copy(values, more)
	return values
}

func open(t testing.TB, values map[string]any) *Channel {
	t.Helper()
	c, err := Open(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c.(*Channel)
}

// account is Bird's side of the settings.
func account(api string) birdtest.Config {
	cfg := birdtest.Config{AccessKey: accessKey, SigningKey: signingKey}
	if api == "channels" {
		cfg.Workspace, cfg.Channel, cfg.Callback = workspace, channelID, callback
	}
	return cfg
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

// apiOf returns the API of a channel.
func apiOf(c *Channel) web.API {
	if c.cfg.API == Channels {
		return channels{c.cfg}
	}
	return messages{c.cfg}
}

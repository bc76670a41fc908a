package sinch

import (
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/sinch/sinchtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: newProtocol, Secrets: []string{token, secret},
		Open: func(t testing.TB, reach web.Config) provider.Channel {
			return open(t, reach, public, nil)
		},
		Files: "testdata/answers/*.http", Classify: api{}.Classify,
		OnSender: []string{"bad_sender", "bad_sender_and_body", "unknown_campaign"},
		Answers: map[string]provider.Result{
			"created": {
				Outcome: provider.Accepted, Reference: "01FC66621XXXXX119Z8PMV1QPQ",
			},
			"created_without_id": {Outcome: provider.Unknown, Code: "201"},
			"created_cut_short":  {Outcome: provider.Unknown, Code: "201"},
			"bad_recipient": {
				Outcome: provider.Rejected, Code: "400/syntax_constraint_violation",
			},
			"bad_recipient_by_name": {
				Outcome: provider.Rejected, Code: "400/syntax_invalid_parameter_format",
			},
			"bad_field": {
				Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format",
			},
			"bad_sender": {
				Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
			},
			"bad_sender_and_body": {
				Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
			},
			"bad_expiry": {
				Outcome: provider.Refused, Code: "400/syntax_invalid_parameter_format",
			},
			"bad_callback": {
				Outcome: provider.Refused, Code: "400/syntax_constraint_violation",
			},
			"bad_body": {
				Outcome: provider.Refused, Unfit: true, Code: "400/syntax_constraint_violation",
			},
			"bad_json":            {Outcome: provider.Refused, Code: "400/syntax_invalid_json"},
			"bad_request_in_html": {Outcome: provider.Unknown, Code: "400"},
			"unauthorized":        {Outcome: provider.Refused, Code: "401/unauthorized"},
			"no_credit":           {Outcome: provider.Refused, Code: "402/payment_required"},
			"forbidden":           {Outcome: provider.Refused, Code: "403/missing_callback_url"},
			"blocked_account":     {Outcome: provider.Refused, Code: "403/blocked_account"},
			"illegal_number_type": {
				Outcome: provider.Refused, Unfit: true, Code: "403/illegal_number_type",
			},
			"llegal_number_type": {
				Outcome: provider.Refused, Unfit: true, Code: "403/llegal_number_type",
			},
			"unknown_campaign": {
				Outcome: provider.Refused, Unfit: true, Code: "403/unknown_campaign",
			},
			"unknown_plan": {Outcome: provider.Refused, Code: "404"},
			"rate_limited": {
				Outcome: provider.Throttled, Code: "429/too_many_requests",
				RetryAfter: 3 * time.Second,
			},
			"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429"},
			"internal_error":            {Outcome: provider.Unknown, Code: "500/internal_error"},
			"unavailable":               {Outcome: provider.Unknown, Code: "503"},
			"redirect":                  {Outcome: provider.Unknown, Code: "302"},
		},
	})
}

const (
	plan      = "jd63jf88477ll123ab4567cd89012ef3"
	token     = "sinch-t0ken"
	secret    = "sinch-callback-s3cret"
	public    = "https://sms.example.com/receipts/sinch"
	key       = webtest.Key
	recipient = webtest.Recipient
)

// now is the time of all steps that do not use the network.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var files = webtest.Files{
	"token": token + "\n", "secret": secret + "\n", "older": "the older s3cret", "empty": "\n",
}

// open returns a channel with a callback.
func open(t testing.TB, reach web.Config, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"service_plan_id": plan, "token_file": "token",
		"callback_secret_files": []any{"older", "secret"},
		"base_url":              reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
		"connect_timeout": "1m",
	}
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web.TLS, cfg.Web.Dial = reach.TLS, reach.Dial
	return New(cfg)
}

func newProtocol() webtest.Protocol {
	return sinchtest.New(sinchtest.Config{Plan: plan, Token: token, Secret: secret})
}

// startRig starts a carrier, a channel and a callback server.
func startRig(t *testing.T, b webtest.Behaviour, more map[string]any) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: newProtocol(), Behaviour: b}
	}, func(reach web.Config, callback string) *Channel { return open(t, reach, callback, more) })
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, "testdata/answers/"+name+".http")
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

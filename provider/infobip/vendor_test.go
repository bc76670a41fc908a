package infobip

import (
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: func() webtest.Protocol {
			return infobiptest.New(infobiptest.Config{
				Key: apiKey,
			})
		}, Secrets: []string{apiKey, secret},
		Open: func(t testing.TB, reach web.Config) provider.Channel {
			return open(t, reach, public, nil)
		},
		Validity: &webtest.Validity{Pattern: `"validityPeriod":\{"amount":(\d+)`},
		Files:    "testdata/answers/*.http", Classify: api{}.Classify,
		OnSender: []string{"bad_sender", "bad_sender_and_text", "rejected_source"},
		Codes:    webtest.CodesOf(rejections),
		Blames: map[web.Blame][]string{
			web.OnChannel: {"12", "17", "18", "19", "21", "24", "31", "100"},
			web.OnSender:  {"11", "13"},
			web.OnMessage: {"6", "8", "14", "20", "25", "87"},
		},
		Answers: map[string]provider.Result{
			"accepted":                   {Outcome: provider.Accepted, Reference: key},
			"enroute":                    {Outcome: provider.Accepted, Reference: key},
			"accepted_without_id":        {Outcome: provider.Unknown, Code: "200/26"},
			"accepted_without_status":    {Outcome: provider.Unknown, Code: "200/0"},
			"accepted_cut_short":         {Outcome: provider.Unknown, Code: "200"},
			"no_messages":                {Outcome: provider.Unknown, Code: "200"},
			"two_messages":               {Outcome: provider.Unknown, Code: "200"},
			"rejected_destination":       {Outcome: provider.Rejected, Code: "200/52"},
			"rejected_prefix":            {Outcome: provider.Refused, Unfit: true, Code: "200/8"},
			"rejected_blocklisted":       {Outcome: provider.Refused, Unfit: true, Code: "200/14"},
			"rejected_fraud":             {Outcome: provider.Refused, Unfit: true, Code: "200/87"},
			"undeliverable_by_operator":  {Outcome: provider.Unknown, Code: "200/4"},
			"rejected_dnd":               {Outcome: provider.Rejected, Code: "200/10"},
			"rejected_credits":           {Outcome: provider.Refused, Code: "200/12"},
			"rejected_source":            {Outcome: provider.Refused, Unfit: true, Code: "200/11"},
			"rejected_system_error":      {Outcome: provider.Refused, Code: "200/21"},
			"rejected_duplicate":         {Outcome: provider.Unknown, Code: "200/23"},
			"rejected_in_a_new_way":      {Outcome: provider.Refused, Code: "200/777"},
			"not_sent":                   {Outcome: provider.Refused, Code: "200/31"},
			"undeliverable_in_a_new_way": {Outcome: provider.Unknown, Code: "200/778"},
			"expired":                    {Outcome: provider.Unknown, Code: "200/15"},
			"bad_recipient":              {Outcome: provider.Rejected, Code: "400/E400"},
			"bad_text": {
				Outcome: provider.Refused, Unfit: true, Code: "400/E400",
			},
			"bad_sender":                {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
			"bad_sender_and_text":       {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
			"bad_sender_and_webhook":    {Outcome: provider.Refused, Code: "400/E400"},
			"bad_recipient_and_text":    {Outcome: provider.Refused, Unfit: true, Code: "400/E400"},
			"bad_recipient_and_webhook": {Outcome: provider.Refused, Code: "400/E400"},
			"bad_content_type":          {Outcome: provider.Refused, Code: "400/E400"},
			"bad_other_field":           {Outcome: provider.Refused, Code: "400/E400"},
			"bad_message_id":            {Outcome: provider.Refused, Code: "400/E400"},
			"bad_transliteration":       {Outcome: provider.Refused, Code: "400/E400"},
			"rejected_too_long":         {Outcome: provider.Refused, Unfit: true, Code: "200/25"},
			"bad_webhook":               {Outcome: provider.Refused, Code: "400/E400"},
			"bad_request_in_html":       {Outcome: provider.Unknown, Code: "400"},
			"unauthorized":              {Outcome: provider.Refused, Code: "401/E401"},
			"forbidden":                 {Outcome: provider.Refused, Code: "403/E403"},
			"not_found":                 {Outcome: provider.Refused, Code: "404"},
			"rate_limited": {
				Outcome: provider.Throttled, Code: "429/E429", RetryAfter: 4 * time.Second,
			},
			"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429"},
			"internal_error":            {Outcome: provider.Unknown, Code: "500/E500"},
			"unavailable":               {Outcome: provider.Unknown, Code: "503"},
		},
	})
}

const (
	apiKey    = "infobip-api-k3y"
	secret    = "infobip-callback-s3cret"
	older     = "the older s3cret"
	key       = webtest.Key
	recipient = webtest.Recipient
	public    = "https://sms.example.com/receipts/infobip"
)

// now is the time of all steps that do not use the network.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var files = webtest.Files{"key": apiKey + "\n", "secret": secret + "\n", "older": older}

// open returns a channel with a callback.
func open(t testing.TB, reach web.Config, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"api_key_file": "key", "callback_secret_files": []any{"secret", "older"},
		"base_url": reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
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

// startRig starts a carrier, a channel and a callback server.
func startRig(
	t *testing.T, server infobiptest.Config, b webtest.Behaviour, more map[string]any,
) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(callback string) webtest.Config {
		server.Key, server.Subscription = apiKey, callback
		return webtest.Config{Protocol: infobiptest.New(server), Behaviour: b}
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

// TestARejectionIsWhatTheTableSays: a rejection that is not in the table concerns the channel.
func TestARejectionIsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	for id, want := range rejections {
		if v, ok := (status{GroupID: groupRejected, ID: id}).meaning(); !ok || v != want {
			t.Errorf("%d: %+v, %t", id, v, ok)
		}
	}
	if v, ok := (status{GroupID: groupRejected, ID: 777}).meaning(); !ok ||
		v.Outcome != provider.Refused || v.Blame != web.OnChannel {
		t.Errorf("777: %v, on %v, %t", v.Outcome, v.Blame, ok)
	}
}

package twilio

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: newProtocol, Secrets: []string{secret, token},
		Open:     func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
		Validity: &webtest.Validity{Pattern: `ValidityPeriod=(\d+)`},
		Files:    "testdata/answers/*.txt", Classify: new(api).Classify,
		OnSender: []string{"sender"},
		Codes:    webtest.CodesOf(meanings),
		Blames: map[web.Blame][]string{
			web.OnChannel: {"20003", "20005", "21608", "21609", "21701", "21703", "30002", "63038"},
			web.OnSender:  {"21212", "21267", "21601", "21606", "21659", "21660", "21661"},
			web.OnMessage: {"14107", "21266", "21408", "21605", "21612", "21617", "21657"},
		},
		Answers: map[string]provider.Result{
			"created": {
				Outcome: provider.Accepted, Reference: "SM1f0e8ae6ade43cb3c0ce4525424e404f",
			},
			"created_without_sid":      {Outcome: provider.Unknown, Code: "201"},
			"created_cut":              {Outcome: provider.Unknown, Code: "201"},
			"invalid_number":           {Outcome: provider.Rejected, Code: "400/21211"},
			"unsubscribed":             {Outcome: provider.Rejected, Code: "400/21610"},
			"too_long":                 {Outcome: provider.Refused, Unfit: true, Code: "400/21617"},
			"no_route":                 {Outcome: provider.Refused, Unfit: true, Code: "400/21612"},
			"sender":                   {Outcome: provider.Refused, Unfit: true, Code: "400/21660"},
			"sender_of_no_use_there":   {Outcome: provider.Refused, Unfit: true, Code: "400/21657"},
			"pair_flooded":             {Outcome: provider.Refused, Unfit: true, Code: "429/14107"},
			"region":                   {Outcome: provider.Refused, Unfit: true, Code: "403/21408"},
			"credentials":              {Outcome: provider.Refused, Code: "401/20003"},
			"credentials_without_body": {Outcome: provider.Refused, Code: "401"},
			"unlisted_code":            {Outcome: provider.Refused, Code: "400/21999"},
			"queue_full":               {Outcome: provider.Throttled, Code: "400/21611"},
			"throttled":                {Outcome: provider.Throttled, Code: "429/20429"},
			"throttled_retry_after": {
				Outcome: provider.Throttled, Code: "429/20429", RetryAfter: 3 * time.Second,
			},
			"throttled_without_body":    {Outcome: provider.Throttled, Code: "429"},
			"day_used_up":               {Outcome: provider.Refused, Code: "429/63038"},
			"server_error":              {Outcome: provider.Unknown, Code: "500/20500"},
			"server_error_known_code":   {Outcome: provider.Unknown, Code: "503/21211"},
			"misdirected":               {Outcome: provider.Unknown, Code: "421/20001"},
			"misdirected_known_code":    {Outcome: provider.Unknown, Code: "421/21211"},
			"unavailable":               {Outcome: provider.Unknown, Code: "503"},
			"not_json":                  {Outcome: provider.Unknown, Code: "400"},
			"redirect":                  {Outcome: provider.Unknown, Code: "307"},
			"code_is_no_number":         {Outcome: provider.Unknown, Code: "400"},
			"request_timeout_with_code": {Outcome: provider.Unknown, Code: "408/20408"},
		},
	})
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	rig := webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: newProtocol(), Reference: twiliotest.Reference}
	}, open)
	content := rig.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
		{
			Sent: webtest.Receipt{State: provider.Pending},
			Want: provider.Receipt{State: provider.Pending, Code: "sent"},
		},
		{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "30005"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber,
				Code: "undelivered/30005",
			},
		},
		{
			Sent: webtest.Receipt{State: provider.Delivered},
			Want: provider.Receipt{State: provider.Delivered, Code: "delivered"},
		},
	})
	if got := content[0].Receipts[0].Reference; got != twiliotest.Reference(1) {
		t.Errorf("the reference is %q", got)
	}
	rig.CheckInbound(t, provider.Inbound{
		Reference: twiliotest.Reference(9), From: webtest.Recipient, To: "+447700900999",
		Text: "STOP ÄÖ",
	})
	// a sender equal to the name of a field loses no receipts
	for _, sender := range adversarial {
		m := webtest.Message()
		m.From = sender
		rig.CheckReceipts(t, m, []webtest.ReceiptCase{{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "30005"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber,
				Code: "undelivered/30005",
			},
		}})
	}
}

const (
	account  = "AC00112233445566778899aabbccddeeff"
	keySID   = "SK00112233445566778899aabbccddeeff"
	service  = "MG00112233445566778899aabbccddeeff"
	secret   = "conformance-key-secret"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
)

// config is the configuration of a channel with this web configuration.
func config(reach web.Config) Config {
	return Config{
		Web: reach, AccountSID: account, KeySID: keySID, KeySecret: secret,
		AuthTokens: []string{token}, From: "ACME",
	}
}

// open returns a channel with a callback.
func open(reach web.Config, callback string) *Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return New(cfg)
}

func newProtocol() webtest.Protocol {
	return twiliotest.New(
		twiliotest.Config{AccountSID: account, KeySID: keySID, KeySecret: secret, AuthToken: token})
}

// channelWith returns a function that makes channels which ask for receipts and verify them with
// these tokens.
func channelWith(t testing.TB) func(tokens ...string) provider.CallbackReader {
	return func(tokens ...string) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.twilio.com"))
		cfg.Callback, cfg.AuthTokens = callback, tokens
		c := New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

func FuzzClassify(f *testing.F) {
	f.Add(201, []byte(`{"sid":"SM1"}`))
	f.Add(400, []byte(`{"code":21211}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}

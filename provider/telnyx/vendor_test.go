package telnyx

import (
	"crypto/ed25519"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: newProtocol, Secrets: []string{secret},
		Open:  func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
		Files: "testdata/answers/*.txt", Classify: new(api).Classify,
		OnSender: []string{
			"sender", "inactive_number", "invalid_number_e164", "invalid_sender_e164",
		},
		Codes: webtest.CodesOf(meanings),
		Blames: map[web.Blame][]string{
			web.OnChannel: {"20100", "20013", "40312", "40314", "40333", "10009", "40321"},
			web.OnSender:  {"40013", "40100", "40305", "40306", "40315", "40320", "40329"},
			web.OnMessage: {"40009", "40302", "40309", "40319", "40322", "40328"},
		},
		Answers: map[string]provider.Result{
			"accepted": {
				Outcome: provider.Accepted, Reference: "40385f64-5717-4562-b3fc-2c963f66afa6",
			},
			"accepted_without_id":      {Outcome: provider.Unknown, Code: "200"},
			"accepted_cut":             {Outcome: provider.Unknown, Code: "200"},
			"invalid_recipient":        {Outcome: provider.Rejected, Code: "400/40310"},
			"invalid_recipient_e164":   {Outcome: provider.Rejected, Code: "400/10016"},
			"invalid_number_e164":      {Outcome: provider.Refused, Unfit: true, Code: "400/10016"},
			"invalid_sender_e164":      {Outcome: provider.Refused, Unfit: true, Code: "400/10016"},
			"inactive_number":          {Outcome: provider.Refused, Unfit: true, Code: "400/10001"},
			"inactive_recipient":       {Outcome: provider.Refused, Unfit: true, Code: "400/10001"},
			"profile_disabled":         {Outcome: provider.Refused, Code: "400/40312"},
			"too_long":                 {Outcome: provider.Refused, Unfit: true, Code: "400/40302"},
			"stop":                     {Outcome: provider.Rejected, Code: "400/40300"},
			"sender":                   {Outcome: provider.Refused, Unfit: true, Code: "400/40305"},
			"region":                   {Outcome: provider.Refused, Unfit: true, Code: "400/40309"},
			"credentials":              {Outcome: provider.Refused, Code: "401/10009"},
			"credentials_without_body": {Outcome: provider.Refused, Code: "401"},
			"funds":                    {Outcome: provider.Refused, Code: "403/20100"},
			"unlisted_code":            {Outcome: provider.Refused, Code: "422/10027"},
			"number_code":              {Outcome: provider.Refused, Unfit: true, Code: "400/40322"},
			"unexpected_error":         {Outcome: provider.Unknown, Code: "400/10007"},
			"request_timeout":          {Outcome: provider.Unknown, Code: "422/10008"},
			"request_timeout_second":   {Outcome: provider.Unknown, Code: "400/40305"},
			"throttled_unexpected":     {Outcome: provider.Unknown, Code: "429/10007"},
			"misdirected":              {Outcome: provider.Unknown, Code: "421/10015"},
			"misdirected_known_code":   {Outcome: provider.Unknown, Code: "421/40310"},
			"queue_full":               {Outcome: provider.Throttled, Code: "429/40318"},
			"throttled":                {Outcome: provider.Throttled, Code: "429/10011"},
			"throttled_retry_after": {
				Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 2 * time.Second,
			},
			"throttled_reset": {
				Outcome: provider.Throttled, Code: "429/10011", RetryAfter: 5 * time.Second,
			},
			"throttled_epoch":         {Outcome: provider.Throttled, Code: "429"},
			"spend_limit":             {Outcome: provider.Refused, Code: "429/40333"},
			"server_error":            {Outcome: provider.Unknown, Code: "500/10007"},
			"server_error_known_code": {Outcome: provider.Unknown, Code: "503/40310"},
			"not_json":                {Outcome: provider.Unknown, Code: "400"},
			"no_errors":               {Outcome: provider.Unknown, Code: "400"},
			"code_with_number":        {Outcome: provider.Refused, Code: "400/other"},
		},
	})
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	rig := webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: newProtocol(), Reference: telnyxtest.Reference}
	}, open)
	content := rig.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
		{
			Sent: webtest.Receipt{State: provider.Pending},
			Want: provider.Receipt{State: provider.Pending, Code: "sent"},
		},
		{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "40012"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber,
				Code: "delivery_failed/40012",
			},
		},
		{
			Sent: webtest.Receipt{State: provider.Delivered},
			Want: provider.Receipt{State: provider.Delivered, Code: "delivered"},
		},
	})
	if got := content[0].Receipts[0].Reference; got != telnyxtest.Reference(1) {
		t.Errorf("the reference is %q", got)
	}
	rig.CheckInbound(t, provider.Inbound{
		Reference: telnyxtest.Reference(9), From: webtest.Recipient, To: "+447700900999",
		Text: "STOP ÄÖ",
	})
}

const (
	secret   = "KEY-conformance-secret"
	callback = "https://sms.example.org/receipts/acme"
)

// signing and other are the keys of webhooks.
var (
	signing = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0001"))
	other   = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0002"))
)

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// config is the configuration of a channel with this web configuration.
func config(reach web.Config) Config {
	return Config{
		Web: reach, APIKey: secret, PublicKeys: []ed25519.PublicKey{public(signing)},
		Profile: "4000eba1-a0c0-4563-9925-b25e842a7cb6", From: "ACME",
	}
}

// open returns a channel with a callback.
func open(reach web.Config, callback string) *Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return New(cfg)
}

func newProtocol() webtest.Protocol {
	return telnyxtest.New(telnyxtest.Config{APIKey: secret, Key: signing})
}

// channelWith returns a function that makes channels which ask for receipts and verify them with
// these keys.
func channelWith(t testing.TB) func(keys ...ed25519.PrivateKey) provider.CallbackReader {
	return func(keys ...ed25519.PrivateKey) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.telnyx.com/v2"))
		cfg.Callback, cfg.PublicKeys = callback, nil
		for _, k := range keys {
			cfg.PublicKeys = append(cfg.PublicKeys, public(k))
		}
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
	f.Add(200, []byte(`{"data":{"id":"1"}}`))
	f.Add(400, []byte(`{"errors":[{"code":"40310","source":{"pointer":"/to"}}]}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}

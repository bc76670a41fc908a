package plivo

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	webtest.CheckVendor(t, webtest.Vendor{
		Protocol: newProtocol, Secrets: []string{token},
		Open:     func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
		Validity: &webtest.Validity{Pattern: `"message_expiry":(\d+)`},
		Files:    "testdata/answers/*.txt", Classify: new(api).Classify,
		OnSender: []string{
			"caller", "sender", "sender_in_object", "sender_is_no_phone_number",
			"sender_of_another_account",
		},
		Answers: map[string]provider.Result{
			"queued": {
				Outcome: provider.Accepted, Reference: "db3ce55a-7f1d-11e1-8ea7-1231380bc196",
			},
			"queued_without_uuid":     {Outcome: provider.Unknown, Code: "202"},
			"queued_empty_list":       {Outcome: provider.Unknown, Code: "202"},
			"queued_cut":              {Outcome: provider.Unknown, Code: "202"},
			"recipient":               {Outcome: provider.Rejected, Code: "400/dst"},
			"recipient_and_sender":    {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
			"recipient_as_documented": {Outcome: provider.Rejected, Code: "400/dst"},
			"destination_country": {
				Outcome: provider.Refused, Unfit: true, Code: "400/country",
			},
			"destination_not_enabled": {Outcome: provider.Refused, Unfit: true, Code: "400"},
			"callback":                {Outcome: provider.Refused, Code: "400/url"},
			"text":                    {Outcome: provider.Refused, Unfit: true, Code: "400/text"},
			"sender":                  {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
			"sender_for_country": {
				Outcome: provider.Refused, Unfit: true, Code: "400/country",
			},
			"sender_for_destination": {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
			"sender_of_another_account": {
				Outcome: provider.Refused, Unfit: true, Code: "400/sender",
			},
			"sender_is_no_phone_number": {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
			"sender_in_object":          {Outcome: provider.Refused, Unfit: true, Code: "400/src"},
			"caller": {
				Outcome: provider.Refused, Unfit: true, Code: "400/caller",
			},
			"credit":               {Outcome: provider.Refused, Code: "400/credit"},
			"unlisted":             {Outcome: provider.Refused, Code: "400"},
			"payment":              {Outcome: provider.Refused, Code: "402"},
			"credentials":          {Outcome: provider.Refused, Code: "401"},
			"not_found":            {Outcome: provider.Refused, Code: "404"},
			"not_found_by_a_proxy": {Outcome: provider.Unknown, Code: "404"},
			"method":               {Outcome: provider.Refused, Code: "405"},
			"throttled":            {Outcome: provider.Throttled, Code: "429"},
			"throttled_retry_after": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 4 * time.Second,
			},
			"throttled_without_body": {Outcome: provider.Throttled, Code: "429"},
			"server_error":           {Outcome: provider.Unknown, Code: "500"},
			"unavailable":            {Outcome: provider.Unknown, Code: "503"},
			"not_json":               {Outcome: provider.Unknown, Code: "400"},
		},
	})
}

func startRig(t *testing.T, account plivotest.Config) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: plivotest.New(account), Reference: plivotest.Reference}
	}, open)
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	rig := startRig(t, plivotest.Config{AuthID: account, AuthToken: token})
	content := rig.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
		{
			Sent: webtest.Receipt{State: provider.Pending},
			Want: provider.Receipt{State: provider.Pending, Code: "sent"},
		},
		{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "50"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undelivered/50",
			},
		},
		{
			Sent: webtest.Receipt{State: provider.Delivered},
			Want: provider.Receipt{State: provider.Delivered, Code: "delivered"},
		},
	})
	if got := content[0].Receipts[0].Reference; got != plivotest.Reference(1) {
		t.Errorf("the reference is %q", got)
	}
	rig.CheckInbound(t, provider.Inbound{
		Reference: plivotest.Reference(9), From: webtest.Recipient, To: "60777",
		Text: "STOP ÄÖ",
	})
	// a sender equal to the name of a field loses no receipts
	for _, sender := range adversarial {
		m := webtest.Message()
		m.From = sender
		rig.CheckReceipts(t, m, []webtest.ReceiptCase{{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "50"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undelivered/50",
			},
		}})
	}
}

// TestSignatureV2IsEnoughAtAnAddressOfOurs: receipts have no reference, because the proof is for
// the key alone.
func TestSignatureV2IsEnoughAtAnAddressOfOurs(t *testing.T) {
	t.Parallel()
	rig := startRig(t, plivotest.Config{AuthID: account, AuthToken: token, OnlyV2: true})
	rig.Carrier.SetBehaviour(webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
		return []webtest.Receipt{{State: provider.Undelivered, Code: "50"}}
	}})
	rig.Send(t, webtest.Message())
	content := rig.Callbacks.Next(t)
	webtest.SameContent(t, "a receipt", content, provider.CallbackContent{
		ReplayID: content.ReplayID,
		Receipts: []provider.Receipt{{
			Key: webtest.Key, State: provider.Undelivered, Cause: provider.UnknownNumber,
			Code: "undelivered/50",
		}},
	})
	in := provider.Inbound{
		Reference: plivotest.Reference(1), From: webtest.Recipient, To: "60777", Text: "STOP",
	}
	address := rig.Callbacks.URL + "?proof=" + proofOfInbound
	if _, err := rig.Carrier.SendInbound(t.Context(), address, in); err != nil {
		t.Fatal(err)
	}
	content = rig.Callbacks.Next(t)
	webtest.SameContent(t, "an inbound message", content, provider.CallbackContent{
		ReplayID: content.ReplayID, Inbound: []provider.Inbound{in},
	})
}

const (
	account  = "MA0123456789ABCDEFGH"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"

	// proofOfInbound and proofOfKey are proofs for inbound messages and for webtest.Key. Another tool
	// made them: printf 'plivo callback ' | openssl dgst -sha256 -hmac "$token".
	proofOfInbound = "b71a921413cc5095819d2a61aacffad0977ba469a6538c64293cbebc44cd64a7"
	proofOfKey     = "5c71b9227e9897fbdf269d06f6c97dfbd0be7c78c5f3f7a0fb5d03dc0c9147dd"
)

// config is the configuration of a channel with this web configuration.
func config(reach web.Config) Config {
	return Config{Web: reach, AuthID: account, AuthTokens: []string{token}, From: "ACME"}
}

// open returns a channel with a callback.
func open(reach web.Config, callback string) *Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return New(cfg)
}

func newProtocol() webtest.Protocol {
	return plivotest.New(plivotest.Config{AuthID: account, AuthToken: token})
}

// channelWith returns a function that makes channels which verify callbacks with these tokens.
func channelWith(t testing.TB) func(tokens ...string) provider.CallbackReader {
	return func(tokens ...string) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.plivo.com/v1"))
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
	f.Add(202, []byte(`{"message_uuid":["1"]}`))
	f.Add(400, []byte(`{"error":"dst is not valid"}`))
	webtest.FuzzAnswers(f, new(api).Classify)
}

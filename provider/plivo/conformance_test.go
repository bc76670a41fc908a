package plivo_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: shape, Secrets: []string{token},
		Open:     func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
		Validity: &webtest.Validity{Pattern: `"message_expiry":(\d+)`},
	})
}

func play(t *testing.T, account plivotest.Config) *webtest.Rig[*plivo.Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: plivotest.New(account), Reference: plivotest.Reference}
	}, open)
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	scene := play(t, plivotest.Config{AuthID: account, AuthToken: token})
	content := scene.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
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
		t.Errorf("the message is called %q", got)
	}
	scene.CheckInbound(
		t, provider.Inbound{
			Reference: plivotest.Reference(9), From: webtest.Recipient, To: "60777",
			Text: "STOP ÄÖ",
		})
	// its receipts are not lost because it is called like a field
	for _, sender := range adversarial {
		m := webtest.Message()
		m.From = sender
		scene.CheckReceipts(t, m, []webtest.ReceiptCase{{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "50"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undelivered/50",
			},
		}})
	}
}

func TestCallbacksWithSignatureV2AloneSettleNothing(t *testing.T) {
	t.Parallel()
	scene := play(t, plivotest.Config{AuthID: account, AuthToken: token, OnlyV2: true})
	scene.Carrier.SetBehaviour(webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
		return []webtest.Receipt{
			{State: provider.Pending}, {State: provider.Undelivered, Code: "50"},
			{State: provider.Delivered},
		}
	}})
	r := scene.Send(t, webtest.Message())
	for range 3 {
		content := scene.Callbacks.Next(t)
		webtest.SameContent(t, "under V2 alone", content, provider.CallbackContent{
			ReplayID: content.ReplayID,
			Receipts: []provider.Receipt{
				{Reference: r.Reference, State: provider.Pending, Code: "unconfirmed"},
			},
		})
	}
	in := provider.Inbound{
		Reference: plivotest.Reference(1), From: webtest.Recipient, To: "60777", Text: "STOP",
	}
	if _, err := scene.Carrier.SendInbound(t.Context(), scene.Callbacks.URL, in); err != nil {
		t.Fatal(err)
	}
	if content := scene.Callbacks.Next(t); content.Inbound != nil {
		t.Error("an inbound message was believed of which only the address was signed")
	}
}

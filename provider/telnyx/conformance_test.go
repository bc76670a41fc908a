package telnyx_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: shape, Secrets: []string{secret},
		Open: func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
	})
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	scene := webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: shape(), Reference: telnyxtest.Reference}
	}, open)
	content := scene.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
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
		t.Errorf("the message is called %q", got)
	}
	scene.CheckInbound(
		t, provider.Inbound{
			Reference: telnyxtest.Reference(9), From: webtest.Recipient, To: "+447700900999",
			Text: "STOP ÄÖ",
		})
}

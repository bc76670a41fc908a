package twilio_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: shape, Secrets: []string{secret, token},
		Open:     func(_ testing.TB, reach web.Config) provider.Channel { return open(reach, "") },
		Validity: &webtest.Validity{Pattern: `ValidityPeriod=(\d+)`},
	})
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	scene := webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: shape(), Reference: twiliotest.Reference}
	}, open)
	content := scene.CheckReceipts(t, webtest.Message(), []webtest.ReceiptCase{
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
		t.Errorf("the message is called %q", got)
	}
	scene.CheckInbound(
		t, provider.Inbound{
			Reference: twiliotest.Reference(9), From: webtest.Recipient, To: "+447700900999",
			Text: "STOP ÄÖ",
		})
	// its receipts are not lost because it is called like a field
	for _, sender := range adversarial {
		m := webtest.Message()
		m.From = sender
		scene.CheckReceipts(t, m, []webtest.ReceiptCase{{
			Sent: webtest.Receipt{State: provider.Undelivered, Code: "30005"},
			Want: provider.Receipt{
				State: provider.Undelivered, Cause: provider.UnknownNumber,
				Code: "undelivered/30005",
			},
		}})
	}
}

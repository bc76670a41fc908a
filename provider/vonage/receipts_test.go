package vonage

import (
	"net/http"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, failed := "submitted", "undeliverable/1260"
			if v.server.SMS {
				taken, failed = "accepted", "failed/8"
			}
			s := webtest.Message()
			s.Text = "a=b & c"
			for _, content := range play(t, v, nil).CheckReceipts(t, s, []webtest.ReceiptCase{
				{
					Sent: webtest.Receipt{State: provider.Pending},
					Want: provider.Receipt{State: provider.Pending, Code: taken},
				},
				{
					Sent: webtest.Receipt{State: provider.Delivered},
					Want: provider.Receipt{State: provider.Delivered, Code: "delivered"},
				},
				{
					Sent: webtest.Receipt{State: provider.Undelivered},
					Want: provider.Receipt{
						State: provider.Undelivered, Cause: provider.NetworkError, Code: failed,
					},
				},
			}) {
				if content.ReplayID == "" {
					t.Error("a callback has no name by which its replay could be told")
				}
			}
		})
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, v, nil).CheckInbound(t,
				provider.Inbound{
					Reference: "mo-1", From: recipient, To: "12345", Text: "STOP & go=away 你好",
				})
		})
	}
}

func TestSMSAPIHandsOverLongMessagesInParts(t *testing.T) {
	t.Parallel()
	play(t, variants()["SMS API"], nil).CheckInbound(t, provider.Inbound{
		Reference: "mo-2", From: recipient, To: "12345", Text: "second half", Group: 77, Part: 1,
		Parts: 2,
	})
}

func TestSMSAPIGivesEachPartAReferenceAndAReceipt(t *testing.T) {
	t.Parallel()
	scene := play(t, variants()["SMS API"], nil)
	r := scene.Send(
		t, provider.Submission{Key: key, To: recipient, Text: strings.Repeat("long ", 80)})
	if len(r.Parts) != 3 || r.Reference != "" {
		t.Fatalf("%+v", r)
	}
	hears := func(state provider.ReceiptState, parts ...provider.Part) {
		t.Helper()
		for _, part := range parts {
			if got := scene.Callbacks.Next(t).Receipts[0]; got.Reference != part.Reference ||
				got.Key != key || got.State != state {
				t.Errorf("part %d: %+v, want %s", part.Index, got, part.Reference)
			}
		}
	}
	hears(provider.Delivered, r.Parts...)
	submit := scene.Carrier.Submits()[0]
	for _, c := range []struct {
		about int
		parts []provider.Part
	}{{0, r.Parts}, {2, r.Parts[1:2]}} {
		status, err := scene.Carrier.SendReceipt(t.Context(), submit,
			webtest.Receipt{Part: c.about, State: provider.Undelivered})
		if err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
		hears(provider.Undelivered, c.parts...)
	}
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, v, map[string]any{"signature_secret_files": nil}).CheckNoReceipts(t)
		})
	}
}

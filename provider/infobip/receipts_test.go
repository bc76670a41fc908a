package infobip

import (
	"errors"
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// way is one in which callbacks prove themselves.
type way struct {
	server   infobiptest.Config
	settings map[string]any
}

func ways() map[string]way {
	return map[string]way{
		"url": {infobiptest.Config{}, nil},
		"basic": {
			infobiptest.Config{User: "infobip", Password: older},
			map[string]any{"callback_auth": "basic", "callback_user": "infobip"},
		},
		"header": {
			infobiptest.Config{Header: "X-Secret", Secret: secret},
			map[string]any{"callback_auth": "header", "callback_header": "x-secret"},
		},
	}
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := play(t, w.server, webtest.Behaviour{}, w.settings).CheckReceipts(t,
				webtest.Message(), []webtest.ReceiptCase{
					{
						Sent: webtest.Receipt{State: provider.Pending},
						Want: provider.Receipt{State: provider.Pending, Code: "PENDING_ACCEPTED"},
					},
					{
						Sent: webtest.Receipt{State: provider.Delivered},
						Want: provider.Receipt{
							State: provider.Delivered, Code: "DELIVERED_TO_HANDSET",
						},
					},
					{
						Sent: webtest.Receipt{State: provider.Undelivered},
						Want: provider.Receipt{
							State: provider.Undelivered, Cause: provider.Absent,
							Code: "UNDELIVERABLE_NOT_DELIVERED/27",
						},
					},
					{
						Sent: webtest.Receipt{
							State: provider.Pending, Code: "3/2/DELIVERED_TO_OPERATOR/0",
						},
						Want: provider.Receipt{
							State: provider.Pending, Code: "DELIVERED_TO_OPERATOR",
						},
					},
				})
			if got := content[0].Receipts[0].Reference; got != key {
				t.Errorf("the message is called %q, not by its key", got)
			}
		})
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	in := provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP"}
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := play(t, w.server, webtest.Behaviour{}, w.settings)
			if name != "url" {
				scene.CheckInbound(t, in)
				return
			}
			// an address without a proof is anybody's
			status, err := scene.Carrier.SendInbound(t.Context(), scene.Callbacks.URL, in)
			if err != nil {
				t.Fatal(err)
			}
			if failed := <-scene.Callbacks.Failed; !errors.Is(failed, provider.ErrForged) ||
				status != http.StatusForbidden {
				t.Errorf("%v, status %d", failed, status)
			}
		})
	}
}

func TestWithoutAProofNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	scene := play(t, infobiptest.Config{}, webtest.Behaviour{Receipts: true},
		map[string]any{"callback_secret_files": nil})
	scene.CheckNoReceipts(t)
	if !scene.Channel.Capabilities().Lookup {
		t.Error("lookups need no proof")
	}
}

func TestLookupFindsWhatWasTakenAndLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	webtest.CheckLookups(t, func(t *testing.T, b webtest.Behaviour, certain bool) webtest.Finder {
		return play(t, infobiptest.Config{}, b,
			map[string]any{"absence_is_certain": certain, "timeout": "2s"}).Channel
	}, map[string]webtest.Lookup{
		"answered":                 {Reply: providertest.Accept, Want: provider.Taken},
		"taken, answer lost":       {Reply: providertest.Lose, Want: provider.Taken},
		"the message was at fault": {Reply: providertest.Reject, Want: provider.Taken},
		"the account was at fault": {Reply: providertest.Refuse, Want: provider.NotTaken},
		"not taken":                {Reply: providertest.Cut, Want: provider.Unanswered},
		"not taken, absence counts as that": {
			Reply: providertest.Cut, Certain: true, Want: provider.NotTaken,
		},
	})
}

func TestLookupBelievesNoOtherMessageAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{
		`{"results":[{"messageId":"other"}]}`, `{}`, `{"results":null}`, `[]`, ``,
	} {
		a := recorded(t, "accepted")
		a.Body = []byte(body)
		if got := c.lookup(key).Result(a); got.State != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.lookup(key).Result(recorded(t, "rate_limited")); got.State != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
	if got := New(Config{}).Find(t.Context(), ""); got.State != provider.Unanswered ||
		got.Err == nil {
		t.Errorf("a lookup without a key: %+v", got)
	}
}

package sinch

import (
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	s := webtest.Message()
	s.From, s.Text = "ACME", "costs ${price}"
	for _, content := range play(t, webtest.Behaviour{}, nil).CheckReceipts(t, s,
		[]webtest.ReceiptCase{
			{
				Sent: webtest.Receipt{State: provider.Pending},
				Want: provider.Receipt{State: provider.Pending, Code: "Dispatched/401"},
			},
			{
				Sent: webtest.Receipt{State: provider.Delivered},
				Want: provider.Receipt{State: provider.Delivered, Code: "Delivered/0"},
			},
			{
				Sent: webtest.Receipt{State: provider.Undelivered, Code: "Expired/406"},
				Want: provider.Receipt{
					State: provider.Undelivered, Cause: provider.Expired, Code: "Expired/406",
				},
			},
		}) {
		if content.ReplayID == "" {
			t.Error("a report has no name by which its replay could be told")
		}
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	play(t, webtest.Behaviour{}, nil).CheckInbound(t,
		provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP"})
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	scene := play(t, webtest.Behaviour{Receipts: true},
		map[string]any{"callback_secret_files": nil})
	scene.CheckNoReceipts(t)
	if !scene.Channel.Capabilities().Lookup {
		t.Error("lookups need no secret")
	}
}

func TestLookupFindsWhatWasTakenAndLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	webtest.CheckLookups(t, func(t *testing.T, b webtest.Behaviour, certain bool) webtest.Finder {
		return play(t, b, map[string]any{"absence_is_certain": certain, "timeout": "2s"}).Channel
	}, map[string]webtest.Lookup{
		"answered":           {Reply: providertest.Accept, Want: provider.Taken},
		"taken, answer lost": {Reply: providertest.Lose, Want: provider.Taken},
		"not taken":          {Reply: providertest.Cut, Want: provider.Unanswered},
		"not taken, absence counts as that": {
			Reply: providertest.Cut, Certain: true, Want: provider.NotTaken,
		},
	})
}

func TestLookupBelievesNoOtherBatchAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{
		`{"batches":[{"id":"b","client_reference":"other"}]}`, `{"count":0}`, `{"batches":null}`,
		`[]`, ``,
	} {
		a := recorded(t, "created")
		a.Status, a.Body = http.StatusOK, []byte(body)
		if got := c.lookup(key).Result(a); got.State != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.lookup(key).Result(recorded(t, "unavailable")); got.State != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
}

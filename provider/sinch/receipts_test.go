package sinch

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// setup brings up a carrier, a channel and a listener that hears with the channel.
func setup(t *testing.T, b webtest.Behaviour, more map[string]any) (*webtest.Carrier, *Channel, *webtest.Ear) {
	t.Helper()
	carrier, err := webtest.Start(webtest.Config{Shape: shape(), Behaviour: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	ear := webtest.Listen(t)
	channel := open(t, carrier.URL(), ear.URL, more)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	ear.Attend(channel)
	return carrier, channel, ear
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	_, channel, ear := setup(t, webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
		return []webtest.Receipt{{State: provider.Pending}, {State: provider.Delivered}, {State: provider.Undelivered, Code: "Expired/406"}}
	}}, nil)
	r := channel.Send(t.Context(), provider.Submission{ID: "m", Key: key, To: recipient, From: "ACME", Text: "costs ${price}"})
	if r.Outcome != provider.Accepted {
		t.Fatalf("%v %s %v", r.Outcome, r.Code, r.Err)
	}
	for _, want := range []provider.Receipt{
		{Reference: r.Reference, Key: key, State: provider.Pending, Code: "Dispatched/401"},
		{Reference: r.Reference, Key: key, State: provider.Delivered, Code: "Delivered/0"},
		{Reference: r.Reference, Key: key, State: provider.Undelivered, Cause: provider.Expired, Code: "Expired/406"},
	} {
		got := ear.Next(t)
		if diff := cmp.Diff([]provider.Receipt{want}, got.Receipts, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" || got.Once == "" {
			t.Errorf("once %q\n%s", got.Once, diff)
		}
	}
}

func TestInboundMessagesComeWithInternationalNumbers(t *testing.T) {
	t.Parallel()
	carrier, _, ear := setup(t, webtest.Behaviour{}, nil)
	in := provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP"}
	if status, err := carrier.Deliver(t.Context(), ear.URL, in); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	carrier, channel, _ := setup(t, webtest.Behaviour{Receipts: true}, map[string]any{"callback_secret_files": nil})
	if r := channel.Send(t.Context(), provider.Submission{To: recipient, Text: "x"}); r.Outcome != provider.Accepted {
		t.Fatal(r.Err)
	}
	if got := carrier.Submits()[0].Callback; got != "" {
		t.Errorf("reports were asked for at %s", got)
	}
	if got := channel.Capabilities(); got.Receipts || got.KeyInReceipt || !got.Lookup {
		t.Errorf("%+v", got)
	}
}

func TestLookupFindsWhatWasTakenAndLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict providertest.Verdict
		certain bool
		want    provider.Knowledge
	}{
		"answered":                          {providertest.Accept, false, provider.Taken},
		"taken, answer lost":                {providertest.Lose, false, provider.Taken},
		"not taken":                         {providertest.Cut, false, provider.Unanswered},
		"not taken, absence counts as that": {providertest.Cut, true, provider.NotTaken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, channel, _ := setup(t, webtest.Behaviour{Decide: func(int, webtest.Submit) providertest.Answer {
				return providertest.Answer{Verdict: c.verdict}
			}}, map[string]any{"absence_is_certain": c.certain, "timeout": "500ms"})
			channel.Send(t.Context(), provider.Submission{Key: key, To: recipient, Text: "x"})
			got := channel.Find(t.Context(), key)
			if got.Known != c.want || (got.Reference != "") != (c.want == provider.Taken) || (got.Err != nil) != (c.want == provider.Unanswered) {
				t.Errorf("%+v, want %v", got, c.want)
			}
		})
	}
}

func TestLookupBelievesNoOtherBatchAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{`{"batches":[{"id":"b","client_reference":"other"}]}`, `{"count":0}`, `{"batches":null}`, `[]`, ``} {
		a := recorded(t, "created")
		a.Status, a.Body = http.StatusOK, []byte(body)
		if got := c.found(a, key); got.Known != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.found(recorded(t, "unavailable"), key); got.Known != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
}

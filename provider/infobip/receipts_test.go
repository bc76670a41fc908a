package infobip

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		"url":    {infobiptest.Config{}, nil},
		"basic":  {infobiptest.Config{User: "infobip", Password: older}, map[string]any{"callback_auth": "basic", "callback_user": "infobip"}},
		"header": {infobiptest.Config{Header: "X-Secret", Secret: secret}, map[string]any{"callback_auth": "header", "callback_header": "x-secret"}},
	}
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, channel, ear := setup(t, w.server, webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
				return []webtest.Receipt{
					{State: provider.Pending},
					{State: provider.Delivered},
					{State: provider.Undelivered},
					{State: provider.Pending, Code: "3/2/DELIVERED_TO_OPERATOR/0"},
				}
			}}, w.settings)
			r := channel.Send(t.Context(), provider.Submission{ID: "m", Key: key, To: recipient, Text: "x"})
			if r.Outcome != provider.Accepted || r.Reference != key {
				t.Fatalf("%v %s %q %v", r.Outcome, r.Code, r.Reference, r.Err)
			}
			for _, want := range []provider.Receipt{
				{State: provider.Pending, Code: "PENDING_ACCEPTED"},
				{State: provider.Delivered, Code: "DELIVERED_TO_HANDSET"},
				{State: provider.Undelivered, Cause: provider.Absent, Code: "UNDELIVERABLE_NOT_DELIVERED/27"},
				{State: provider.Pending, Code: "DELIVERED_TO_OPERATOR"},
			} {
				want.Reference, want.Key = key, key
				got := ear.Next(t).Receipts
				if diff := cmp.Diff([]provider.Receipt{want}, got, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" {
					t.Error(diff)
				}
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
			carrier, _, ear := setup(t, w.server, webtest.Behaviour{}, w.settings)
			status, err := carrier.Deliver(t.Context(), ear.URL, in)
			if err != nil {
				t.Fatal(err)
			}
			if name == "url" { // an address without a proof is anybody's
				if failed := <-ear.Failed; !errors.Is(failed, provider.ErrForged) || status != http.StatusForbidden {
					t.Errorf("%v, status %d", failed, status)
				}
				return
			}
			if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutAProofNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	carrier, channel, _ := setup(t, infobiptest.Config{}, webtest.Behaviour{Receipts: true}, map[string]any{"callback_secret_files": nil})
	if r := channel.Send(t.Context(), provider.Submission{Key: key, To: recipient, Text: "x"}); r.Outcome != provider.Accepted {
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
		"the message was at fault":          {providertest.Reject, false, provider.Taken},
		"the account was at fault":          {providertest.Refuse, false, provider.NotTaken},
		"not taken":                         {providertest.Cut, false, provider.Unanswered},
		"not taken, absence counts as that": {providertest.Cut, true, provider.NotTaken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, channel, _ := setup(t, infobiptest.Config{}, webtest.Behaviour{Decide: func(int, webtest.Submit) providertest.Answer {
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

func TestLookupBelievesNoOtherMessageAndNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := Config{AbsenceIsCertain: true}
	for _, body := range []string{`{"results":[{"messageId":"other"}]}`, `{}`, `{"results":null}`, `[]`, ``} {
		a := recorded(t, "accepted")
		a.Body = []byte(body)
		if got := c.found(a, key); got.Known != provider.Unanswered || got.Err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := c.found(recorded(t, "rate_limited"), key); got.Known != provider.Unanswered {
		t.Errorf("a failing lookup: %+v", got)
	}
	if got := New(Config{}).Find(t.Context(), ""); got.Known != provider.Unanswered || got.Err == nil {
		t.Errorf("a lookup without a key: %+v", got)
	}
}

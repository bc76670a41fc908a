package vonage

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web/webtest"
)

// setup brings up a carrier, a channel and a listener that hears with the channel.
func setup(t *testing.T, v variant, b webtest.Behaviour, more map[string]any) (*webtest.Carrier, *Channel, *webtest.Ear) {
	t.Helper()
	carrier, err := webtest.Start(webtest.Config{Shape: vonagetest.New(v.server), Behaviour: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	ear := webtest.Listen(t)
	cfg := parse(t, v, carrier.URL(), more)
	cfg.Callback = ear.URL
	channel := New(cfg)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	ear.Attend(channel)
	return carrier, channel, ear
}

func TestReceiptsComeBackWithReferenceAndKey(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, channel, ear := setup(t, v, webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
				return []webtest.Receipt{{State: provider.Pending}, {State: provider.Delivered}, {State: provider.Undelivered}}
			}}, nil)
			r := channel.Send(t.Context(), provider.Submission{ID: "m", Key: key, To: recipient, Text: "a=b & c"})
			if r.Outcome != provider.Accepted {
				t.Fatalf("%v %s %v", r.Outcome, r.Code, r.Err)
			}
			want := []provider.Receipt{
				{State: provider.Pending, Code: "submitted"},
				{State: provider.Delivered, Code: "delivered"},
				{State: provider.Undelivered, Cause: provider.NetworkError, Code: "undeliverable/1260"},
			}
			if v.server.SMS {
				want[0].Code, want[2].Code = "accepted", "failed/8"
			}
			for _, w := range want {
				w.Reference, w.Key = r.Reference, key
				got := ear.Next(t)
				if diff := cmp.Diff([]provider.Receipt{w}, got.Receipts, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" || got.Once == "" {
					t.Errorf("once %q\n%s", got.Once, diff)
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
			carrier, _, ear := setup(t, v, webtest.Behaviour{}, nil)
			in := provider.Inbound{Reference: "mo-1", From: recipient, To: "12345", Text: "STOP & go=away 你好"}
			if status, err := carrier.Deliver(t.Context(), ear.URL, in); err != nil || status != http.StatusOK {
				t.Fatal(status, err)
			}
			if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSMSAPIHandsOverLongMessagesInParts(t *testing.T) {
	t.Parallel()
	carrier, _, ear := setup(t, variants()["SMS API"], webtest.Behaviour{}, nil)
	in := provider.Inbound{Reference: "mo-2", From: recipient, To: "12345", Text: "second half", Group: 77, Part: 1, Parts: 2}
	if status, err := carrier.Deliver(t.Context(), ear.URL, in); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
		t.Error(diff)
	}
}

func TestSMSAPIGivesEachPartAReferenceAndAReceipt(t *testing.T) {
	t.Parallel()
	carrier, channel, ear := setup(t, variants()["SMS API"], webtest.Behaviour{Receipts: true}, nil)
	r := channel.Send(t.Context(), provider.Submission{Key: key, To: recipient, Text: strings.Repeat("long ", 80)})
	if r.Outcome != provider.Accepted || len(r.Parts) != 3 || r.Reference != "" {
		t.Fatalf("%+v", r)
	}
	hears := func(state provider.ReceiptState, parts ...provider.Part) {
		t.Helper()
		for _, part := range parts {
			if got := ear.Next(t).Receipts[0]; got.Reference != part.Reference || got.Key != key || got.State != state {
				t.Errorf("part %d: %+v, want %s", part.Index, got, part.Reference)
			}
		}
	}
	hears(provider.Delivered, r.Parts...)
	submit := carrier.Submits()[0]
	for _, c := range []struct {
		about int
		parts []provider.Part
	}{{0, r.Parts}, {2, r.Parts[1:2]}} {
		status, err := carrier.Tell(t.Context(), submit, webtest.Receipt{Part: c.about, State: provider.Undelivered})
		if err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
		hears(provider.Undelivered, c.parts...)
	}
}

func TestWithoutASecretNoReceiptsAreAskedFor(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		carrier, channel, _ := setup(t, v, webtest.Behaviour{Receipts: true}, map[string]any{"signature_secret_files": nil})
		if r := channel.Send(t.Context(), provider.Submission{To: recipient, Text: "x"}); r.Outcome != provider.Accepted {
			t.Fatal(r.Err)
		}
		if got := carrier.Submits()[0].Callback; got != "" {
			t.Errorf("%s: receipts were asked for at %s", name, got)
		}
	}
}

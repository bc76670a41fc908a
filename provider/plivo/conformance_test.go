package plivo_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	plain := webtest.Harness(shape, func(t testing.TB, address string) provider.Channel {
		return plivo.New(config(t, address))
	})
	secure := webtest.SecureHarness(shape, func(t testing.TB, address string, client *tls.Config) provider.Channel {
		cfg := config(t, address)
		cfg.Web.TLS = client
		return plivo.New(cfg)
	})
	for name, h := range map[string]providertest.Harness{"HTTP/1.1": plain, "TLS and HTTP/2": secure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.Deadline, h.Secrets = 2*time.Second, []string{token}
			providertest.Run(t, h)
		})
	}
}

// played is a channel and a carrier that sends three receipts for each message.
func played(t *testing.T, cfg plivotest.Config) (*plivo.Channel, *webtest.Carrier, *webtest.Ear) {
	t.Helper()
	ear := webtest.Listen(t)
	carrier, err := webtest.Start(webtest.Config{
		Shape: plivotest.New(cfg), Reference: plivotest.Reference,
		Behaviour: webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
			return []webtest.Receipt{{State: provider.Pending}, {State: provider.Undelivered, Code: "50"}, {State: provider.Delivered}}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	settings := config(t, carrier.URL())
	settings.Callback = ear.URL
	channel := plivo.New(settings)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	ear.Attend(channel)
	return channel, carrier, ear
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	channel, carrier, ear := played(t, plivotest.Config{AuthID: account, AuthToken: token})
	r := channel.Send(t.Context(), submission())
	if r.Outcome != provider.Accepted || r.Reference != plivotest.Reference(1) {
		t.Fatalf("outcome %v, reference %q, error %v", r.Outcome, r.Reference, r.Err)
	}
	var got []provider.Receipt
	for range 3 {
		got = append(got, ear.Next(t).Receipts...)
	}
	want := []provider.Receipt{
		{Reference: r.Reference, Key: key, State: provider.Pending, Code: "sent"},
		{Reference: r.Reference, Key: key, State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undelivered/50"},
		{Reference: r.Reference, Key: key, State: provider.Delivered, Code: "delivered"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" {
		t.Error(diff)
	}

	in := provider.Inbound{Reference: plivotest.Reference(9), From: "+447700900123", To: "60777", Text: "STOP ÄÖ"}
	if status, err := carrier.Deliver(t.Context(), ear.URL, in); err != nil || status != 200 {
		t.Fatalf("the message of a subscriber was answered %d, %v", status, err)
	}
	if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
		t.Error(diff)
	}
}

func TestCallbacksWithSignatureV2AloneSettleNothing(t *testing.T) {
	t.Parallel()
	channel, carrier, ear := played(t, plivotest.Config{AuthID: account, AuthToken: token, OnlyV2: true})
	r := channel.Send(t.Context(), submission())
	for range 3 {
		want := []provider.Receipt{{Reference: r.Reference, State: provider.Pending, Code: "unconfirmed"}}
		if diff := cmp.Diff(want, ear.Next(t).Receipts, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := carrier.Deliver(t.Context(), ear.URL, provider.Inbound{Reference: "1", From: "+447700900123", To: "60777", Text: "STOP"}); err != nil {
		t.Fatal(err)
	}
	if heard := ear.Next(t); heard.Inbound != nil {
		t.Error("an inbound message was believed of which only the address was signed")
	}
}

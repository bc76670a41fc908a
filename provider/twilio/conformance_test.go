package twilio_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/twilio"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	plain := webtest.Harness(shape, func(t testing.TB, address string) provider.Channel {
		return twilio.New(config(t, address))
	})
	secure := webtest.SecureHarness(shape, func(t testing.TB, address string, client *tls.Config) provider.Channel {
		cfg := config(t, address)
		cfg.Web.TLS = client
		return twilio.New(cfg)
	})
	for name, h := range map[string]providertest.Harness{"HTTP/1.1": plain, "TLS and HTTP/2": secure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.Deadline, h.Secrets = 2*time.Second, []string{secret, token}
			providertest.Run(t, h)
		})
	}
}

func TestReceiptsNameTheMessageAndTheSubmissionTheyBelongTo(t *testing.T) {
	t.Parallel()
	ear := webtest.Listen(t)
	carrier, err := webtest.Start(webtest.Config{
		Shape: shape(), Reference: twiliotest.Reference,
		Behaviour: webtest.Behaviour{ReceiptFor: func(webtest.Submit) []webtest.Receipt {
			return []webtest.Receipt{{State: provider.Pending}, {State: provider.Undelivered, Code: "30005"}, {State: provider.Delivered}}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	cfg := config(t, carrier.URL())
	cfg.Callback = ear.URL
	channel := twilio.New(cfg)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	ear.Attend(channel)

	r := channel.Send(t.Context(), submission())
	if r.Outcome != provider.Accepted || r.Reference != twiliotest.Reference(1) {
		t.Fatalf("outcome %v, reference %q, error %v", r.Outcome, r.Reference, r.Err)
	}
	var got []provider.Receipt
	for range 3 {
		got = append(got, ear.Next(t).Receipts...)
	}
	want := []provider.Receipt{
		{Reference: r.Reference, Key: key, State: provider.Pending, Code: "sent"},
		{Reference: r.Reference, Key: key, State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "undelivered/30005"},
		{Reference: r.Reference, Key: key, State: provider.Delivered, Code: "delivered"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(provider.Receipt{}, "At")); diff != "" {
		t.Error(diff)
	}

	in := provider.Inbound{Reference: twiliotest.Reference(9), From: "+447700900123", To: "+447700900999", Text: "STOP ÄÖ"}
	if status, err := carrier.Deliver(t.Context(), ear.URL, in); err != nil || status != 200 {
		t.Fatalf("the message of a subscriber was answered %d, %v", status, err)
	}
	if diff := cmp.Diff([]provider.Inbound{in}, ear.Next(t).Inbound, cmpopts.IgnoreFields(provider.Inbound{}, "At")); diff != "" {
		t.Error(diff)
	}
}

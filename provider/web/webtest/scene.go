package webtest

import (
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Scene is a carrier, a channel that sends to it, and an ear that the carrier calls and that hears with the channel.
type Scene[C web.Adapter] struct {
	Carrier *Carrier
	Channel C
	Ear     *Ear
}

// Play brings up a scene. carrier describes a carrier for a channel with that callback; open makes the channel, for an API
// that is reached like that.
func Play[C web.Adapter](t testing.TB, carrier func(callback string) Config, open func(reach web.Config, callback string) C) *Scene[C] {
	t.Helper()
	ear := Listen(t)
	s := &Scene[C]{Carrier: Serve(t, carrier(ear.URL)), Ear: ear}
	s.Channel = open(Reach(t, s.Carrier.URL()), ear.URL)
	t.Cleanup(func() { _ = s.Channel.Close(t.Context()) })
	ear.Attend(s.Channel)
	return s
}

// Send sends a message that has to be accepted.
func (s *Scene[C]) Send(t testing.TB, m provider.Submission) provider.Result {
	t.Helper()
	r := s.Channel.Send(t.Context(), m)
	if r.Outcome != provider.Accepted {
		t.Fatalf("%v, code %q, error %v", r.Outcome, r.Code, r.Err)
	}
	return r
}

// News is what a carrier says of a message, and how it is understood: as a receipt without the reference, the key and
// the time.
type News struct {
	Said Receipt
	Want provider.Receipt
}

// Follow sends a message, has the carrier tell the news of it, and fails unless they are heard in that order and name the
// message and the submission. It returns what was heard.
func (s *Scene[C]) Follow(t testing.TB, m provider.Submission, news []News) []provider.Heard {
	t.Helper()
	s.Carrier.Behave(Behaviour{ReceiptFor: func(Submit) []Receipt {
		var said []Receipt
		for _, n := range news {
			said = append(said, n.Said)
		}
		return said
	}})
	r := s.Send(t, m)
	var all []provider.Heard
	for _, n := range news {
		heard, want := s.Ear.Next(t), n.Want
		want.Reference, want.Key = r.Reference, m.Key
		Says(t, "the news", provider.Heard{Receipts: heard.Receipts, Inbound: heard.Inbound}, provider.Heard{Receipts: []provider.Receipt{want}})
		all = append(all, heard)
	}
	return all
}

// HandOver has the carrier hand over a message of a subscriber, and fails unless it is heard as it is.
func (s *Scene[C]) HandOver(t testing.TB, in provider.Inbound) {
	t.Helper()
	if status, err := s.Carrier.Deliver(t.Context(), s.Ear.URL, in); err != nil || status != http.StatusOK {
		t.Fatalf("the message of a subscriber was answered %d, error %v", status, err)
	}
	heard := s.Ear.Next(t)
	Says(t, "the message", provider.Heard{Receipts: heard.Receipts, Inbound: heard.Inbound}, provider.Heard{Inbound: []provider.Inbound{in}})
}

// AsksForNoReceipts fails unless a message is sent without an address for receipts.
func (s *Scene[C]) AsksForNoReceipts(t testing.TB) {
	t.Helper()
	s.Send(t, Message())
	if got := s.Carrier.Submits()[0].Callback; got != "" {
		t.Errorf("receipts were asked for at %s", got)
	}
	if got := s.Channel.Capabilities(); got.Receipts || got.KeyInReceipt {
		t.Errorf("it promises %+v", got)
	}
}

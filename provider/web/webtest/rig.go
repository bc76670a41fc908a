package webtest

import (
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Rig is a carrier, a channel that sends to it, and an ear that the carrier calls and that hears with the channel.
type Rig[C web.Adapter] struct {
	Carrier   *Carrier
	Channel   C
	Callbacks *CallbackServer
}

// NewRig brings up a scene. carrier describes a carrier for a channel with that callback; open makes the channel, for an API
// that is reached like that.
func NewRig[C web.Adapter](t testing.TB, carrier func(callback string) Config, open func(reach web.Config, callback string) C) *Rig[C] {
	t.Helper()
	ear := StartCallbackServer(t)
	s := &Rig[C]{Carrier: Serve(t, carrier(ear.URL)), Callbacks: ear}
	s.Channel = open(LocalConfig(t, s.Carrier.URL()), ear.URL)
	t.Cleanup(func() { _ = s.Channel.Close(t.Context()) })
	ear.SetChannel(s.Channel)
	return s
}

// Send sends a message that has to be accepted.
func (s *Rig[C]) Send(t testing.TB, m provider.Submission) provider.Result {
	t.Helper()
	r := s.Channel.Send(t.Context(), m)
	if r.Outcome != provider.Accepted {
		t.Fatalf("%v, code %q, error %v", r.Outcome, r.Code, r.Err)
	}
	return r
}

// ReceiptCase is what a carrier says of a message, and how it is understood: as a receipt without the reference, the key and
// the time.
type ReceiptCase struct {
	Sent Receipt
	Want provider.Receipt
}

// CheckReceipts sends a message, has the carrier tell the news of it, and fails unless they are heard in that order and name the
// message and the submission. It returns what was heard.
func (s *Rig[C]) CheckReceipts(t testing.TB, m provider.Submission, news []ReceiptCase) []provider.CallbackContent {
	t.Helper()
	s.Carrier.SetBehaviour(Behaviour{ReceiptFor: func(Submit) []Receipt {
		var said []Receipt
		for _, n := range news {
			said = append(said, n.Sent)
		}
		return said
	}})
	r := s.Send(t, m)
	var all []provider.CallbackContent
	for _, n := range news {
		content, want := s.Callbacks.Next(t), n.Want
		want.Reference, want.Key = r.Reference, m.Key
		SameContent(t, "the news", provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound}, provider.CallbackContent{Receipts: []provider.Receipt{want}})
		all = append(all, content)
	}
	return all
}

// CheckInbound has the carrier hand over a message of a subscriber, and fails unless it is heard as it is.
func (s *Rig[C]) CheckInbound(t testing.TB, in provider.Inbound) {
	t.Helper()
	if status, err := s.Carrier.SendInbound(t.Context(), s.Callbacks.URL, in); err != nil || status != http.StatusOK {
		t.Fatalf("the message of a subscriber was answered %d, error %v", status, err)
	}
	content := s.Callbacks.Next(t)
	SameContent(t, "the message", provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound}, provider.CallbackContent{Inbound: []provider.Inbound{in}})
}

// CheckNoReceipts fails unless a message is sent without an address for receipts.
func (s *Rig[C]) CheckNoReceipts(t testing.TB) {
	t.Helper()
	s.Send(t, Message())
	if got := s.Carrier.Submits()[0].Callback; got != "" {
		t.Errorf("receipts were asked for at %s", got)
	}
	if got := s.Channel.Capabilities(); got.Receipts || got.KeyInReceipt {
		t.Errorf("it promises %+v", got)
	}
}

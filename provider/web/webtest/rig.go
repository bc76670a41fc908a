package webtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Rig is a carrier, a channel that sends to it, and an ear that the carrier calls and that hears
// with the channel.
type Rig[C web.Adapter] struct {
	Carrier   *Carrier
	Channel   C
	Callbacks *CallbackServer
}

// NewRig brings up a scene. carrier describes a carrier for a channel with that callback; open
// makes the channel, for an API that is reached like that.
func NewRig[C web.Adapter](
	t testing.TB, carrier func(callback string) Config,
	open func(reach web.Config, callback string) C,
) *Rig[C] {
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

// ReceiptCase is what a carrier says of a message, and how it is understood: as a receipt without
// the reference, the key and the time.
type ReceiptCase struct {
	Sent Receipt
	Want provider.Receipt
}

// CheckReceipts sends a message, has the carrier tell the news of it, and fails unless they are
// heard in that order and name the message and the submission. It returns what was heard.
func (s *Rig[C]) CheckReceipts(
	t testing.TB, m provider.Submission, news []ReceiptCase,
) []provider.CallbackContent {
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
		SameContent(t, "the news",
			provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound},
			provider.CallbackContent{Receipts: []provider.Receipt{want}})
		all = append(all, content)
	}
	return all
}

// CheckInbound has the carrier hand over a message of a subscriber, and fails unless it is heard as
// it is.
func (s *Rig[C]) CheckInbound(t testing.TB, in provider.Inbound) {
	t.Helper()
	if status, err := s.Carrier.SendInbound(t.Context(), s.Callbacks.URL, in); err != nil ||
		status != http.StatusOK {
		t.Fatalf("the message of a subscriber was answered %d, error %v", status, err)
	}
	content := s.Callbacks.Next(t)
	SameContent(t, "the message",
		provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound},
		provider.CallbackContent{Inbound: []provider.Inbound{in}})
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

// Callbacks is a receipts listener of tests: it hands each request to a channel, and keeps what
// that hears.
type CallbackServer struct {
	// URL is where it listens.
	URL string
	// CallbackContent and Failed take what the channel returned, one value for each request.
	Heard   chan provider.CallbackContent
	Failed  chan error
	channel chan provider.CallbackReader
}

// keptCallbacks is how many callbacks an ear keeps.
const keptCallbacks = 1000

// StartCallbackServer starts an ear. It answers when SetChannel has named the channel.
func StartCallbackServer(t testing.TB) *CallbackServer {
	t.Helper()
	e := &CallbackServer{
		Heard:  make(chan provider.CallbackContent, keptCallbacks),
		Failed: make(chan error, keptCallbacks), channel: make(chan provider.CallbackReader, 1),
	}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	e.URL = server.URL + "/receipts/channel"
	return e
}

// SetChannel names the channel that the callbacks are for. It is called once.
func (e *CallbackServer) SetChannel(l provider.CallbackReader) { e.channel <- l }

func (e *CallbackServer) serve(w http.ResponseWriter, r *http.Request) {
	l := <-e.channel
	e.channel <- l
	body, err := io.ReadAll(io.LimitReader(r.Body, provider.MaxCallback))
	if err != nil {
		return
	}
	content, err := l.ReadCallback(CallbackOf(r, body))
	if err != nil {
		e.Failed <- err
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	e.Heard <- content
	if content.AnswerType != "" {
		w.Header().Set("Content-Type", content.AnswerType)
	}
	_, _ = io.WriteString(w, content.Answer)
}

// Next waits for a callback that was heard.
func (e *CallbackServer) Next(t testing.TB) provider.CallbackContent {
	t.Helper()
	select {
	case content := <-e.Heard:
		return content
	case err := <-e.Failed:
		t.Fatalf("a callback was refused: %v", err)
	case <-time.After(testTimeout):
		t.Fatalf("no callback in %s", testTimeout)
	}
	return provider.CallbackContent{}
}

const testTimeout = 20 * time.Second

// CallbackOf is a request as a listener sees it. The URL is that of the request's own address, or
// with the Host that it names.
func CallbackOf(r *http.Request, body []byte) *provider.Callback {
	address := *r.URL
	if address.Host == "" {
		address.Scheme, address.Host = "http", r.Host
	}
	return &provider.Callback{
		Method: r.Method, URL: address.String(), Header: r.Header, Body: body, At: time.Now(),
	}
}

// MadeCallbackAt is a request that a Protocol made, as a listener would see it at a time.
func MadeCallbackAt(t testing.TB, r *http.Request, at time.Time) *provider.Callback {
	t.Helper()
	c := MadeCallback(t, r, nil)
	c.At = at
	return c
}

// MadeCallback is a request that a Protocol made, as a listener would see it.
func MadeCallback(t testing.TB, r *http.Request, err error) *provider.Callback {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	body, err := contents(r)
	if err != nil {
		t.Fatal(err)
	}
	return CallbackOf(r, body)
}

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

// Rig is a carrier, a channel that sends to it, and a server that reads the carrier's callbacks
// with the channel.
type Rig[C web.Adapter] struct {
	Carrier   *Carrier
	Channel   C
	Callbacks *CallbackServer
}

// NewRig starts a rig. carrier makes the configuration of a carrier for a channel with that
// callback; open makes the channel for an API at that address.
func NewRig[C web.Adapter](
	t testing.TB, carrier func(callback string) Config,
	open func(reach web.Config, callback string) C,
) *Rig[C] {
	t.Helper()
	server := StartCallbackServer(t)
	s := &Rig[C]{Carrier: Serve(t, carrier(server.URL)), Callbacks: server}
	s.Channel = open(LocalConfig(t, s.Carrier.URL()), server.URL)
	t.Cleanup(func() { _ = s.Channel.Close(t.Context()) })
	server.SetChannel(s.Channel)
	return s
}

// Send sends a message that must be accepted.
func (rg *Rig[C]) Send(t testing.TB, m provider.Submission) provider.Result {
	t.Helper()
	r := rg.Channel.Send(t.Context(), m)
	if r.Outcome != provider.Accepted {
		t.Fatalf("%v, code %q, error %v", r.Outcome, r.Code, r.Err)
	}
	return r
}

// ReceiptCase is a receipt that a carrier sends, and the receipt that is read: without reference,
// key and time.
type ReceiptCase struct {
	Sent Receipt
	Want provider.Receipt
}

// CheckReceipts sends a message, has the carrier send the receipts, and fails unless they are read
// in that order and name the message and the submission. It returns the receipts that were read.
func (rg *Rig[C]) CheckReceipts(
	t testing.TB, m provider.Submission, news []ReceiptCase,
) []provider.CallbackContent {
	t.Helper()
	rg.Carrier.SetBehaviour(Behaviour{ReceiptFor: func(Submit) []Receipt {
		var said []Receipt
		for _, n := range news {
			said = append(said, n.Sent)
		}
		return said
	}})
	r := rg.Send(t, m)
	var all []provider.CallbackContent
	for _, n := range news {
		content, want := rg.Callbacks.Next(t), n.Want
		want.Reference, want.Key = r.Reference, m.Key
		SameContent(t, "the news",
			provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound},
			provider.CallbackContent{Receipts: []provider.Receipt{want}})
		all = append(all, content)
	}
	return all
}

// CheckInbound has the carrier send a subscriber's message, and fails unless it is read unchanged.
func (rg *Rig[C]) CheckInbound(t testing.TB, in provider.Inbound) {
	t.Helper()
	if status, err := rg.Carrier.SendInbound(t.Context(), rg.Callbacks.URL, in); err != nil ||
		status != http.StatusOK {
		t.Fatalf("the message of a subscriber was answered %d, error %v", status, err)
	}
	content := rg.Callbacks.Next(t)
	SameContent(t, "the message",
		provider.CallbackContent{Receipts: content.Receipts, Inbound: content.Inbound},
		provider.CallbackContent{Inbound: []provider.Inbound{in}})
}

// CheckNoReceipts fails unless a message is sent without a callback for receipts.
func (rg *Rig[C]) CheckNoReceipts(t testing.TB) {
	t.Helper()
	rg.Send(t, Message())
	if got := rg.Carrier.Submits()[0].Callback; got != "" {
		t.Errorf("receipts were requested at %s", got)
	}
	if got := rg.Channel.Capabilities(); got.Receipts || got.KeyInReceipt {
		t.Errorf("capabilities %+v, want no receipts", got)
	}
}

// CallbackServer is a receipts listener for tests: it reads each request with a channel, and keeps
// the result.
type CallbackServer struct {
	// URL is its address.
	URL string
	// Read and Failed take what the channel returned, one value for each request.
	Read    chan provider.CallbackContent
	Failed  chan error
	channel chan provider.CallbackReader
}

// keptCallbacks is how many callbacks a server keeps.
const keptCallbacks = 1000

// StartCallbackServer starts a server. It answers once SetChannel was called.
func StartCallbackServer(t testing.TB) *CallbackServer {
	t.Helper()
	e := &CallbackServer{
		Read:   make(chan provider.CallbackContent, keptCallbacks),
		Failed: make(chan error, keptCallbacks), channel: make(chan provider.CallbackReader, 1),
	}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	e.URL = server.URL + "/receipts/channel"
	return e
}

// SetChannel sets the channel that reads the callbacks. It is called once.
func (s *CallbackServer) SetChannel(l provider.CallbackReader) { s.channel <- l }

func (s *CallbackServer) serve(w http.ResponseWriter, r *http.Request) {
	l := <-s.channel
	s.channel <- l
	body, err := io.ReadAll(io.LimitReader(r.Body, provider.MaxCallback))
	if err != nil {
		return
	}
	content, err := l.ReadCallback(CallbackOf(r, body))
	if err != nil {
		s.Failed <- err
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	s.Read <- content
	if content.AnswerType != "" {
		w.Header().Set("Content-Type", content.AnswerType)
	}
	_, _ = io.WriteString(w, content.Answer)
}

// Next waits for a callback.
func (s *CallbackServer) Next(t testing.TB) provider.CallbackContent {
	t.Helper()
	select {
	case content := <-s.Read:
		return content
	case err := <-s.Failed:
		t.Fatalf("a callback was refused: %v", err)
	case <-time.After(testTimeout):
		t.Fatalf("no callback in %s", testTimeout)
	}
	return provider.CallbackContent{}
}

const testTimeout = 90 * time.Second

// CallbackOf is a request as a listener receives it. Its URL is that of the request, with the Host
// header if it names no host.
func CallbackOf(r *http.Request, body []byte) *provider.Callback {
	address := *r.URL
	if address.Host == "" {
		address.Scheme, address.Host = "http", r.Host
	}
	return &provider.Callback{
		Method: r.Method, URL: address.String(), Header: r.Header, Body: body, At: time.Now(),
	}
}

// MadeCallbackAt is MadeCallback with a time of arrival.
func MadeCallbackAt(t testing.TB, r *http.Request, at time.Time) *provider.Callback {
	t.Helper()
	c := MadeCallback(t, r, nil)
	c.At = at
	return c
}

// MadeCallback is a request of a Protocol, as a listener receives it.
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

package webtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dispatcher/provider"
)

// Callbacks is a receipts listener of tests: it hands each request to a channel, and keeps what that hears.
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
	e := &CallbackServer{Heard: make(chan provider.CallbackContent, keptCallbacks), Failed: make(chan error, keptCallbacks), channel: make(chan provider.CallbackReader, 1)}
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

// CallbackOf is a request as a listener sees it. The URL is that of the request's own address, or with the Host
// that it names.
func CallbackOf(r *http.Request, body []byte) *provider.Callback {
	address := *r.URL
	if address.Host == "" {
		address.Scheme, address.Host = "http", r.Host
	}
	return &provider.Callback{Method: r.Method, URL: address.String(), Header: r.Header, Body: body, At: time.Now()}
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

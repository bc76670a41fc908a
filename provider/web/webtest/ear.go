package webtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dispatcher/provider"
)

// Ear is a receipts listener of tests: it hands each request to a channel, and keeps what that hears.
type Ear struct {
	// URL is where it listens.
	URL string
	// Heard and Failed take what the channel returned, one value for each request.
	Heard    chan provider.Heard
	Failed   chan error
	listener chan provider.Listener
}

// earful is how many callbacks an ear keeps.
const earful = 1000

// Listen starts an ear. It answers when Attend has named the channel.
func Listen(t testing.TB) *Ear {
	t.Helper()
	e := &Ear{Heard: make(chan provider.Heard, earful), Failed: make(chan error, earful), listener: make(chan provider.Listener, 1)}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	e.URL = server.URL + "/receipts/channel"
	return e
}

// Attend names the channel that the callbacks are for. It is called once.
func (e *Ear) Attend(l provider.Listener) { e.listener <- l }

func (e *Ear) serve(w http.ResponseWriter, r *http.Request) {
	l := <-e.listener
	e.listener <- l
	body, err := io.ReadAll(io.LimitReader(r.Body, provider.MaxCallback))
	if err != nil {
		return
	}
	heard, err := l.Hear(Call(r, body))
	if err != nil {
		e.Failed <- err
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	e.Heard <- heard
	if heard.AnswerType != "" {
		w.Header().Set("Content-Type", heard.AnswerType)
	}
	_, _ = io.WriteString(w, heard.Answer)
}

// Next waits for a callback that was heard.
func (e *Ear) Next(t testing.TB) provider.Heard {
	t.Helper()
	select {
	case heard := <-e.Heard:
		return heard
	case err := <-e.Failed:
		t.Fatalf("a callback was refused: %v", err)
	case <-time.After(patience):
		t.Fatalf("no callback in %s", patience)
	}
	return provider.Heard{}
}

const patience = 20 * time.Second

// Call is a request as a listener sees it. The URL is that of the request's own address, or with the Host
// that it names.
func Call(r *http.Request, body []byte) *provider.Callback {
	address := *r.URL
	if address.Host == "" {
		address.Scheme, address.Host = "http", r.Host
	}
	return &provider.Callback{Method: r.Method, URL: address.String(), Header: r.Header, Body: body, At: time.Now()}
}

// MadeAt is a request that a Shape made, as a listener would see it at a time.
func MadeAt(t testing.TB, r *http.Request, at time.Time) *provider.Callback {
	t.Helper()
	c := Made(t, r, nil)
	c.At = at
	return c
}

// Made is a request that a Shape made, as a listener would see it.
func Made(t testing.TB, r *http.Request, err error) *provider.Callback {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	body, err := contents(r)
	if err != nil {
		t.Fatal(err)
	}
	return Call(r, body)
}

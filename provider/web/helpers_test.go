package web_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// server counts the requests and connections of an API on loopback.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request // guarded by mu
	dialled  int             // guarded by mu
}

// serve starts an API that answers request n, counted from 0.
func serve(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request,
	) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.dialled++
			s.mu.Unlock()
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *server) seen() (requests, connections int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests), s.dialled
}

// accept accepts every message.
func accept(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ref")) }

// cut closes the connection without an answer.
func cut(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// channel returns a channel with plainAPI at an address.
func channel(t testing.TB, address, method string, adjust func(*web.Config)) *web.Channel {
	t.Helper()
	return channelOf(t, address, plainAPI{method}, adjust)
}

// channelOf returns a channel with any API at an address.
func channelOf(t testing.TB, address string, api web.API, adjust func(*web.Config)) *web.Channel {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := web.Config{BaseURL: base, Timeout: 20 * time.Second, AllowPrivate: true}
	adjust(&cfg)
	c := web.New(cfg, api)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func asIs(*web.Config) {}

func message() provider.Submission {
	return provider.Submission{ID: "m-1", To: "+447700900123", Text: "canary 4711"}
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

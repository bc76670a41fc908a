package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// serveHTTP2 starts an API that speaks HTTP/2 and tells its clients that a header may be about 4 KiB long; requests
// counts those that reached it. The channel trusts it.
func serveHTTP2(t testing.TB, requests *atomic.Int64) *web.Channel {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.ProtoMajor != 2 {
			t.Errorf("a request came over %s", r.Proto)
		}
		accept(0, w, r)
	}))
	s.EnableHTTP2, s.Config.MaxHeaderBytes = true, 4<<10
	s.StartTLS()
	t.Cleanup(s.Close)
	trusted := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := channel(t, s.URL, http.MethodPost, func(cfg *web.Config) { cfg.TLS = clientTLS(trusted) })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Fatal(r.Err)
	}
	return c
}

// counted counts the connections that calls are given.
func counted(ctx context.Context, given *atomic.Int64) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { given.Add(1) }})
}

// TestAHeaderThatThePeerDoesNotTakeIsTriedOnce: over HTTP/2 the transport refuses it before a byte leaves, on a kept
// connection that stays, so that trying again would never end.
func TestAHeaderThatThePeerDoesNotTakeIsTriedOnce(t *testing.T) {
	t.Parallel()
	var requests, given atomic.Int64
	c := serveHTTP2(t, &requests)
	m := message()
	m.ID = strings.Repeat("x", 16<<10) // plainAPI sends it as a header field
	r := c.Send(counted(t.Context(), &given), m)
	if r.Outcome != provider.Refused || r.Code != "transport" {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
	if given.Load() != 1 || requests.Load() != 1 {
		t.Errorf("%d tries, %d requests in all", given.Load(), requests.Load())
	}
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Errorf("the next message: %v, %v", r.Outcome, r.Err)
	}
}

// TestACallThatEndsOnASharedConnectionIsUnknown ends it as soon as it has its connection. The writer of HTTP/2 may be
// past looking at the context by then, and nobody waits for it.
func TestACallThatEndsOnASharedConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	c := serveHTTP2(t, &requests)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		r := c.Send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { cancel() }}), message())
		cancel()
		if r.Outcome != provider.Unknown {
			t.Fatalf("%v, %q, %v", r.Outcome, r.Code, r.Err)
		}
	}
}

func TestALatestThatHasPassedAsksForNoConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, accept)
	c := channel(t, s.URL, http.MethodPost, asIs)
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Fatal(r.Err)
	}
	var asked atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { asked.Add(1) }})
	for range 50 {
		m := message()
		m.Latest = time.Now().Add(-time.Second)
		if r := c.Send(ctx, m); r.Outcome != provider.Refused || r.Code != provider.Late {
			t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
		}
	}
	if requests, _ := s.seen(); requests != 1 || asked.Load() != 0 {
		t.Errorf("%d requests, and a connection was asked for %d times", requests, asked.Load())
	}
}

func TestALatestThatPassesDuringACallDoesNotEndIt(t *testing.T) {
	t.Parallel()
	bound := make(chan time.Time, 1)
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-time.After(time.Until(<-bound) + 100*time.Millisecond)
		}
		accept(n, w, r)
	})
	c := channel(t, s.URL, http.MethodPost, asIs)
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted { // the connection is there from now on
		t.Fatal(r.Err)
	}
	m := message()
	m.Latest = time.Now().Add(2 * time.Second)
	bound <- m.Latest
	if r := c.Send(t.Context(), m); r.Outcome != provider.Accepted {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

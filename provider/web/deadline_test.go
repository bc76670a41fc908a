package web_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// countingAPI is a plainAPI whose text is the number of calls of Compose; on runs in each call.
type countingAPI struct {
	plainAPI
	calls *atomic.Int64
	on    func(n int64)
}

func (c countingAPI) Compose(s *provider.Submission) (*web.Request, error) {
	n, m := c.calls.Add(1), *s
	if c.on != nil {
		c.on(n)
	}
	m.Text = strconv.FormatInt(n, 10)
	return c.plainAPI.Compose(&m)
}

// until waits until the time has passed.
func until(at time.Time) { <-time.After(time.Until(at) + time.Millisecond) }

// slowDial returns a dial function that first waits, whatever its context says.
func slowDial(wait func()) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		wait()
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, address)
	}
}

// TestNoByteLeavesAfterTheDeadline lets the deadline pass at each point where a submission can be
// delayed. The server records what arrives.
func TestNoByteLeavesAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dial  func(deadline time.Time)
		write func(n int64, deadline time.Time)
		full  bool // the only connection is in use
	}{
		"while it waits for others":         {full: true},
		"while the connection is made":      {dial: until},
		"while the request is written":      {write: func(n int64, d time.Time) { until(d) }},
		"while the request is written anew": {dial: shortlyBefore, write: second},
	} {
		for code, bound := range map[string]func(*provider.Submission, time.Time){
			provider.DeadlinePassed: func(s *provider.Submission, at time.Time) { s.Deadline = at },
			provider.Late:           func(s *provider.Submission, at time.Time) { s.Latest = at },
		} {
			t.Run(name+", "+code, func(t *testing.T) {
				t.Parallel()
				hold := make(chan struct{})
				s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
					<-hold
					accept(n, w, r)
				})
				deadline := time.Now().Add(600 * time.Millisecond)
				api := countingAPI{plainAPI{http.MethodPost}, new(atomic.Int64), func(n int64) {
					if c.write != nil {
						c.write(n, deadline)
					}
				}}
				channel := channelOf(t, s.URL, api, func(cfg *web.Config) {
					cfg.Connections = 1
					if c.dial != nil {
						cfg.Dial = slowDial(func() { c.dial(deadline) })
					}
				})
				var others sync.WaitGroup
				before := 0
				if c.full {
					before = 1
					others.Go(func() { channel.Send(t.Context(), message()) })
					for requests := 0; requests == 0; requests, _ = s.seen() {
						<-time.After(time.Millisecond)
					}
				}
				m := message()
				bound(&m, deadline)
				r := channel.Send(t.Context(), m)
				close(hold)
				others.Wait()
				if r.Outcome != provider.Refused || r.Code != code {
					t.Errorf("%v, %q, %v, want Refused with %q", r.Outcome, r.Code, r.Err, code)
				}
				if err := channel.Close(t.Context()); err != nil {
					t.Error(err)
				}
				s.Close() // everything that was sent has been read
				if requests, _ := s.seen(); requests != before {
					t.Errorf("the server saw %d requests, want %d", requests, before)
				}
			})
		}
	}
}

// shortlyBefore waits until a written request is old enough to be written again.
func shortlyBefore(deadline time.Time) { until(deadline.Add(-300 * time.Millisecond)) }

// second waits in the second call only.
func second(n int64, deadline time.Time) {
	if n == 2 {
		until(deadline)
	}
}

// TestARequestIsWrittenRightBeforeItLeaves: the validity of the message and the age of the
// signature count from then. The first request waits for its connection. The second becomes too old
// after it was written, as in a process that was suspended.
func TestARequestIsWrittenRightBeforeItLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dial, write time.Duration
		least       int64 // minimum number of times that it is written; more on a busy machine
	}{
		"at once":                     {0, 0, 1},
		"after a wait for the dial":   {200 * time.Millisecond, 0, 2},
		"after a stop of the process": {200 * time.Millisecond, 1100 * time.Millisecond, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := make(chan string, 9)
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				texts <- string(body)
				accept(n, w, r)
			})
			api := countingAPI{plainAPI{http.MethodPost}, new(atomic.Int64), func(n int64) {
				if n == 2 {
					<-time.After(c.write)
				}
			}}
			channel := channelOf(t, s.URL, api, func(cfg *web.Config) {
				cfg.Dial = slowDial(func() {
					if api.calls.Load() < 2 {
						<-time.After(c.dial)
					}
				})
			})
			if r := channel.Send(t.Context(), message()); r.Outcome != provider.Accepted {
				t.Fatalf("%v, %q, %v", r.Outcome, r.Code, r.Err)
			}
			n := api.calls.Load()
			want := fmt.Sprintf(`{"To":"+447700900123","Text":"%d"}`, n)
			if got := <-texts; got != want || n < c.least {
				t.Errorf("the server got %s, want %s, at least number %d", got, want, c.least)
			}
			if requests, _ := s.seen(); requests != 1 {
				t.Errorf("the server saw %d requests", requests)
			}
		})
	}
}

// TestARequestWaitsForNoStream: the server speaks HTTP/2 and allows one stream. Over HTTP/2 the
// second request would wait inside net/http, after all our checks.
func TestARequestWaitsForNoStream(t *testing.T) {
	t.Parallel()
	arrived, hold := make(chan string, 9), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Proto
		if len(arrived) == 1 {
			<-hold
		}
		accept(0, w, r)
	}))
	s.EnableHTTP2, s.Config.HTTP2 = true, &http.HTTP2Config{MaxConcurrentStreams: 1}
	s.StartTLS()
	t.Cleanup(s.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())
	c := channel(t, s.URL, http.MethodPost, func(cfg *web.Config) { cfg.TLS = clientTLS(trusted) })
	var first sync.WaitGroup
	first.Go(func() { c.Send(t.Context(), message()) })
	for len(arrived) == 0 {
		<-time.After(time.Millisecond)
	}
	r := c.Send(t.Context(), message())
	close(hold)
	first.Wait()
	if r.Outcome != provider.Accepted {
		t.Errorf("the second one: %v, %q, %v", r.Outcome, r.Code, r.Err)
	}
	for range 2 {
		if proto := <-arrived; proto != "HTTP/1.1" {
			t.Errorf("a request came over %s", proto)
		}
	}
}

func TestALatestThatPassesDuringACallDoesNotEndIt(t *testing.T) {
	t.Parallel()
	bound := make(chan time.Time, 1)
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			until((<-bound).Add(100 * time.Millisecond))
		}
		accept(n, w, r)
	})
	c := channel(t, s.URL, http.MethodPost, asIs)
	// the connection is open from now on
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Fatal(r.Err)
	}
	m := message()
	m.Latest = time.Now().Add(3 * time.Second)
	bound <- m.Latest
	if r := c.Send(t.Context(), m); r.Outcome != provider.Accepted {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

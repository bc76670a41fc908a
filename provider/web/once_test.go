package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// TestAKeptConnectionThatDiesBeforeTheAnswerIsNotTriedAgain: net/http repeats a GET, and a POST
// with an Idempotency-Key, if a kept connection breaks before the answer.
func TestAKeptConnectionThatDiesBeforeTheAnswerIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					cut(n, w, r)
				}
				accept(n, w, r)
			})
			c := channel(t, s.URL, method, asIs)
			for i, want := range []provider.Outcome{
				provider.Accepted, provider.Unknown, provider.Accepted,
			} {
				if r := c.Send(t.Context(), message()); r.Outcome != want {
					t.Errorf("message %d: %v, %v, want %v", i, r.Outcome, r.Err, want)
				}
			}
			if requests, _ := s.seen(); requests != 3 {
				t.Errorf("the server saw %d requests of 3 calls", requests)
			}
		})
	}
}

// TestNetHTTPWouldHaveTriedAgain: a plain http.Client sends that POST twice, which is why this
// package does not use one.
func TestNetHTTPWouldHaveTriedAgain(t *testing.T) {
	t.Parallel()
	tier.Eventually(t, "net/http keeps the connection and sends the second request again",
		func() bool { return twiceOverOneConnection(t) == 3 })
}

// twiceOverOneConnection makes two calls with a plain http.Client and returns how many requests the
// server saw. The server cuts the connection at the second call. net/http may have given it up
// before, when its writer was not scheduled for 50 ms.
func twiceOverOneConnection(t *testing.T) (requests int) {
	t.Helper()
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			cut(n, w, r)
		}
		accept(n, w, r)
	})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL,
			strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		response, err := client.Do(r)
		if err != nil {
			return 0 // the second call was the first over its connection
		}
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection is kept
		_ = response.Body.Close()
	}
	requests, _ = s.seen()
	return requests
}

// brittle is a connection whose writes fail once it is broken. The first failing write sends some
// bytes.
type brittle struct {
	net.Conn
	broken atomic.Bool
	passes int
}

func (b *brittle) Write(p []byte) (int, error) {
	if !b.broken.Load() {
		return b.Conn.Write(p)
	}
	n, err := b.Conn.Write(p[:min(b.passes, len(p))])
	return n, errors.Join(err, syscall.EPIPE)
}

// TestADeadKeptConnectionCostsNothingWhenNoByteLeft: a kept connection breaks unnoticed. If its
// write sends no byte, the message uses a new connection; if it sends one, the outcome is Unknown.
func TestADeadKeptConnectionCostsNothingWhenNoByteLeft(t *testing.T) {
	t.Parallel()
	for passes, want := range map[int]provider.Outcome{0: provider.Accepted, 1: provider.Unknown} {
		s := serve(t, accept)
		var conns []*brittle // the calls below are sequential
		c := channel(t, s.URL, http.MethodPost, func(cfg *web.Config) {
			cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				conns = append(conns, &brittle{Conn: conn, passes: passes})
				return conns[len(conns)-1], err
			}
		})
		if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
			t.Fatal(r.Err)
		}
		conns[0].broken.Store(true)
		if r := c.Send(t.Context(), message()); r.Outcome != want {
			t.Errorf("%d bytes pass: %v, %q, %v, want %v", passes, r.Outcome, r.Code, r.Err, want)
		}
		requests := 1
		if want == provider.Accepted {
			requests = 2
		}
		if got, _ := s.seen(); got != requests || len(conns) != requests {
			t.Errorf("%d bytes pass: %d requests over %d connections, want %d", passes, got,
				len(conns), requests)
		}
	}
}

func TestCallsOneAfterTheOtherShareAConnection(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		s := serve(t, accept)
		c := channel(t, s.URL, method, asIs)
		for range 5 {
			if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
				t.Fatal(r.Err)
			}
		}
		// net/http gives a connection up when its writer is not scheduled for 50 ms
		if _, connections := s.seen(); connections > 2 {
			t.Errorf("%s: %d connections for 5 calls", method, connections)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, accept)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, status)
			})
			if r := channel(t, s.URL, method, asIs).Send(t.Context(),
				message()); r.Outcome != provider.Unknown {
				t.Errorf("%s, %d: %v", method, status, r.Outcome)
			}
			if requests, _ := s.seen(); requests != 1 {
				t.Errorf("%s, %d: %d requests", method, status, requests)
			}
		}
	}
	if requests, _ := elsewhere.seen(); requests != 0 {
		t.Errorf("%d requests followed a redirect", requests)
	}
}

func TestAnswersTooLongAreNoAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   provider.Result
	}{
		"body of 1 MiB": {
			func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 1<<20)) },
			provider.Result{Outcome: provider.Accepted},
		},
		"body of more": {
			func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 1<<20+1)) },
			provider.Result{Outcome: provider.Unknown, Code: "answer_too_long"},
		},
		"header of 128 KiB": {
			func(w http.ResponseWriter) { w.Header().Set("X", strings.Repeat("x", 128<<10)) },
			provider.Result{Outcome: provider.Unknown, Code: "transport"},
		},
	} {
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { c.answer(w) })
		r := channel(t, s.URL, http.MethodPost, asIs).Send(t.Context(), message())
		if r.Outcome != c.want.Outcome || r.Code != c.want.Code {
			t.Errorf("%s: %v, %q, want %v, %q", name, r.Outcome, r.Code, c.want.Outcome,
				c.want.Code)
		}
	}
}

func TestAnEndedContextTakesNoConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, accept)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := channel(t, s.URL, http.MethodPost, asIs).Send(ctx,
		message()); r.Outcome != provider.Refused {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
	if requests, connections := s.seen(); requests != 0 || connections != 0 {
		t.Errorf("%d requests, %d connections", requests, connections)
	}
}

func TestAskMakesOneRequestAndShowsNoAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, accept)
	c := channel(t, s.URL, http.MethodPost, asIs)
	a, err := c.Ask(t.Context(), &web.Request{Method: http.MethodGet, URL: "/what?key=1"})
	if err != nil || a.Status != http.StatusOK || string(a.Body) != "ref" {
		t.Errorf("%+v, %v", a, err)
	}
	s.Close()
	if _, err := c.Ask(t.Context(),
		&web.Request{Method: http.MethodGet, URL: "/what?number=447700900123"}); err == nil ||
		strings.Contains(err.Error(), "447700900123") {
		t.Errorf("the error is %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Ask(t.Context(),
		&web.Request{Method: http.MethodGet, URL: "/what"}); err == nil {
		t.Error("a closed channel made a request")
	}
	if requests, _ := s.seen(); requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

// TestWhatTheSystemHasNotSentIsDropped when a call ends without an answer: it would arrive later,
// perhaps after a lookup has said that the provider did not get the message.
func TestWhatTheSystemHasNotSentIsDropped(t *testing.T) {
	t.Parallel()
	buffers := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1<<12)
		})
	}}
	listener, err := buffers.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // end of the test
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			accepted <- conn
		}
	}()
	client := web.NewClient(web.Config{AllowPrivate: true, Timeout: 300 * time.Millisecond})
	defer client.Close()
	const size = 64 << 10 // more than the server's buffer and less than the client's
	_, result := client.Call(t.Context(), time.Time{}, func() (*web.Request, error) {
		return &web.Request{
			Method: http.MethodPost, URL: "http://" + listener.Addr().String(),
			Body: make([]byte, size),
		}, nil
	})
	if result == nil || result.Outcome != provider.Unknown {
		t.Fatalf("a call without an answer: %+v", result)
	}
	conn := <-accepted
	defer conn.Close() //nolint:errcheck // end of the test
	n, err := io.Copy(io.Discard, conn)
	if !errors.Is(err, syscall.ECONNRESET) || n >= size {
		t.Errorf("after the call had ended the server read %d bytes of %d, %v", n, size, err)
	}
}

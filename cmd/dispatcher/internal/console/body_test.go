package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// TestABodyThatDoesNotArriveEndsItsConnection, whether the handler reads it or not.
func TestABodyThatDoesNotArriveEndsItsConnection(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"read":     func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"not read": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(timely(handler, 50*time.Millisecond))
			t.Cleanup(server.Close)
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // It is broken.
			if err := conn.SetDeadline(time.Now().Add(tier.LongestWait)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("the connection does not end: %v", err)
			}
		})
	}
}

// TestAnAnswerMayTakeLongerThanItsBody: the deadline of the body does not end the request.
func TestAnAnswerMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	const timeout = 100 * time.Millisecond
	server := httptest.NewServer(timely(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(3 * timeout):
		}
		ended <- context.Cause(r.Context())
	}), timeout))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL,
		io.LimitReader(neverEnding{}, 1000))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if err := <-ended; err != nil {
		t.Errorf("the request was ended: %v", err)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

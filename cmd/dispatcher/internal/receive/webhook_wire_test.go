package receive

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/provider"
)

// pipeListener returns in-memory connections, so that timeouts use a bubble's clock.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipeListener) Close() error   { close(p.done); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// TestSlowCallersAreCutOff: callers with a slow header or a slow body are disconnected after the
// timeouts, and so is one that sends nothing after the first answer.
func TestSlowCallersAreCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, begin string
		within      time.Duration
	}{
		{"header", "POST /receipts/a HTTP/1.1\r\nHost: x\r\n", headerTimeout},
		{"body", "POST /receipts/a HTTP/1.1\r\nHost: x\r\nSecret: right\r\nContent-Length: " +
			"1000\r\n\r\n", readTimeout},
		{"idle", "POST /receipts/a HTTP/1.1\r\nHost: x\r\nSecret: right\r\nContent-Length: " +
			"1\r\n\r\nz", idleTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, nil)
				// The real socket is not used here.
				if err := r.webhooks.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				p := &pipeListener{make(chan net.Conn), make(chan struct{})}
				w := *r.webhooks
				w.listener = p
				w.server = &http.Server{
					Handler: &w, ConnContext: withConn, ConnState: follow,
					ReadHeaderTimeout: w.server.ReadHeaderTimeout,
					ReadTimeout:       w.server.ReadTimeout,
					WriteTimeout:      w.server.WriteTimeout, IdleTimeout: w.server.IdleTimeout,
				}
				w.Serve()
				ours, theirs := net.Pipe()
				p.conns <- theirs
				began := time.Now()
				silent := make(chan struct{})
				go func() {
					defer close(silent)
					_, _ = io.WriteString(ours, c.begin)
					for c.name != "idle" {
						<-time.After(time.Second)
						if _, err := io.WriteString(ours, "x"); err != nil {
							return
						}
					}
				}()
				_, _ = io.Copy(io.Discard, ours)
				if took := time.Since(began); took > c.within+2*time.Second {
					t.Errorf("cut off after %s, want %s", took, c.within)
				}
				<-silent
				if err := w.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if got := len(r.booker.list()); c.name != "idle" && got > 0 {
					t.Errorf("%d stored", got)
				}
			})
		})
	}
}

// TestConnectionsAreBounded: one more waits until another has ended, and Close ends the wait.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	p := &pipeListener{make(chan net.Conn, 3), make(chan struct{})}
	b := newBounded(p, 2, 2)
	for range 3 {
		one, _ := net.Pipe()
		p.conns <- one
	}
	first, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	third := make(chan error)
	go func() { _, err := b.Accept(); third <- err }()
	select {
	case err := <-third:
		t.Errorf("a third connection was accepted, %v", err)
	default:
	}
	_ = first.Close()
	if err := <-third; err != nil {
		t.Error(err)
	}
	go func() { _, err := b.Accept(); third <- err }()
	_ = b.Close()
	if err := <-third; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ended with %v", err)
	}
	for range 2 { // the second call has no effect
		_ = second.Close()
	}
	if held := len(b.free); held != 1 {
		t.Errorf("%d connections are held, want the third", held)
	}
}

// TestAnswersRepeatNothingOfTheCaller: neither in body nor in headers.
func TestAnswersRepeatNothingOfTheCaller(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	const number = "447700900123"
	for _, request := range []string{
		"POST /receipts/" + number + "?to=" + number + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
			"0\r\n\r\n",
		"POST /receipts/a?to=" + number + " HTTP/1.1\r\nHost: x\r\nX-To: " + number +
			"\r\nContent-Length: 12\r\n\r\n" + number,
		"OPTIONS * HTTP/1.1\r\nHost: " + number + "\r\n\r\n",
		"GET http://" + number + "/receipts/a HTTP/1.1\r\nHost: x\r\n\r\n",
		"BREW /receipts/a#" + number + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp",
			strings.TrimPrefix(r.webhooks.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		_ = conn.Close()
		if strings.Contains(string(text)+strings.Join(flat(response.Header), " "), number) {
			t.Errorf("%q: got answer %q %v", request, text, response.Header)
		}
		if response.StatusCode == http.StatusOK && !strings.HasPrefix(request, "OPTIONS *") {
			t.Errorf("%q: got status %d", request, response.StatusCode)
		}
	}
	if families, err := r.registry.Gather(); err != nil || strings.Contains(families[0].String(),
		number) {
		t.Errorf("metrics: %v", err)
	}
}

func flat(h http.Header) (all []string) {
	for _, values := range h {
		all = append(all, values...)
	}
	return all
}

// BenchmarkWebhooks measures the listener alone: a hundred callers, storing takes no time.
func BenchmarkWebhooks(b *testing.B) {
	w, err := ListenWebhooks(b.Context(), WebhookConfig{
		Address: "127.0.0.1:0",
		Channels: oneListener{&scriptedListener{read: func(c *provider.Callback) (provider.CallbackContent, error) {
			return provider.CallbackContent{
				Receipts: []provider.Receipt{{Reference: string(c.Body)}}, ReplayID: c.Get("Nonce"),
			}, nil
		}}}, Recorder: &scriptedRecorder{}, Registry: prometheus.NewRegistry(), Trouble: func(string,
			error) {
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	w.Serve()
	defer w.Close(context.Background()) //nolint:errcheck // the end of a benchmark
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPost,
				w.Callback("a"), strings.NewReader("r-1"))
			if err != nil {
				b.Error(err)
				return
			}
			response, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "callbacks/s")
}

package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// clientTLS trusts nothing else.
func clientTLS(trusted *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted}
}

// tunnel is an https proxy that takes CONNECT only.
func tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	var running sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{here: there, there: here} {
		running.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
	}
	running.Wait()
}

// behindTunnel opens a channel to an API over TLS behind a proxy over TLS. Its connections break when they are told to.
func behindTunnel(t testing.TB, answer http.HandlerFunc) (c *web.Channel, conns func() []*brittle) {
	t.Helper()
	api := httptest.NewTLSServer(answer)
	t.Cleanup(api.Close)
	proxy := httptest.NewTLSServer(http.HandlerFunc(tunnel))
	t.Cleanup(proxy.Close)
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(api.Certificate())
	trusted.AddCert(proxy.Certificate())
	var mu sync.Mutex
	var dialled []*brittle // guarded by mu
	c = channel(t, api.URL, http.MethodPost, func(cfg *web.Config) {
		cfg.Proxy, cfg.TLS = through, clientTLS(trusted)
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			dialled = append(dialled, &brittle{Conn: conn})
			return dialled[len(dialled)-1], err
		}
	})
	return c, func() []*brittle {
		mu.Lock()
		defer mu.Unlock()
		return dialled
	}
}

// TestAnAnswerLostBehindAnHTTPSProxyIsUnknown looks through two layers of TLS.
func TestAnAnswerLostBehindAnHTTPSProxyIsUnknown(t *testing.T) {
	t.Parallel()
	c, _ := behindTunnel(t, func(w http.ResponseWriter, r *http.Request) { cut(0, w, r) })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Unknown {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

func TestADeadKeptConnectionBehindAnHTTPSProxyCostsNothing(t *testing.T) {
	t.Parallel()
	c, conns := behindTunnel(t, func(w http.ResponseWriter, r *http.Request) { accept(0, w, r) })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Fatal(r.Err)
	}
	conns()[0].broken.Store(true)
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted || len(conns()) != 2 {
		t.Errorf("%v, %v over %d connections", r.Outcome, r.Err, len(conns()))
	}
}

package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestPrivateAddressesAreRefusedWhereTheyResolve uses names and notations that all lead to this
// machine.
func TestPrivateAddressesAreRefusedWhereTheyResolve(t *testing.T) {
	t.Parallel()
	s := serve(t, accept)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "0.0.0.0",
		"[::]",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			c := channel(t, "http://"+host+":"+u.Port(), method,
				func(cfg *web.Config) { cfg.AllowPrivate = false })
			r := c.Send(t.Context(), message())
			if r.Outcome != provider.Refused || r.Code != "private_address" {
				t.Errorf("%s %s: %v, %q, %v", method, host, r.Outcome, r.Code, r.Err)
			}
		}
	}
	if _, connections := s.seen(); connections != 0 {
		t.Errorf("%d connections came in", connections)
	}
}

func TestAProxyIsUsedOnlyWhenItIsConfigured(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := serve(t, accept)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if r := channel(t, s.URL, method, asIs).Send(t.Context(),
			message()); r.Outcome != provider.Accepted {
			t.Errorf("the environment's proxy: %v", r.Err)
		}
		// The environment's proxy is never used for loopback, so the test needs a name without an
		// address.
		if r := channel(t, "http://api.invalid", method, asIs).Send(t.Context(),
			message()); r.Code != "dns" {
			t.Errorf("the environment's proxy was used: %q, %v", r.Code, r.Err)
		}
		proxy := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pass"))
			if r.Header.Get("Proxy-Authorization") != want || r.URL.Host != "api.example.com" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			accept(n, w, r)
		})
		through, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		through.User = url.UserPassword("user", "pass")
		// A proxy resolves the name itself, and it may be in a private network.
		proxied := func(cfg *web.Config) { cfg.Proxy, cfg.AllowPrivate = through, false }
		if r := channel(t, "http://api.example.com", method, proxied).Send(t.Context(),
			message()); r.Outcome != provider.Accepted {
			t.Errorf("the configured proxy: %v", r.Err)
		}
		through.Host = providertest.NoListener
		r := channel(t, "http://api.example.com", method, proxied).Send(t.Context(), message())
		if r.Outcome != provider.Refused || strings.Contains(r.Err.Error(), "pass") {
			t.Errorf("an unreachable proxy: %v, %v", r.Outcome, r.Err)
		}
	}
}

// TestErrorsShowNoNumberTextOrSecret sends the number and the text in the URL, which errors of
// net/http quote.
func TestErrorsShowNoNumberTextOrSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		outcome provider.Outcome
		code    string
		adjust  func(*web.Config)
	}{
		"no listener": {"http://" + providertest.NoListener, provider.Refused, "dial", asIs},
		"cut":         {serve(t, cut).URL, provider.Unknown, "connection_lost", asIs},
		"no HTTP":     {serve(t, garbage).URL, provider.Unknown, "transport", asIs},
		"no TLS": {
			strings.Replace(serve(t, accept).URL, "http:", "https:", 1), provider.Refused,
			"transport", asIs,
		},
		"no such name": {"http://api.invalid", provider.Refused, "dns", asIs},
		"not allowed": {
			serve(t, accept).URL, provider.Refused, "private_address",
			func(c *web.Config) { c.AllowPrivate = false },
		},
		"no time for it": {
			serve(t, hang).URL, provider.Unknown, "timeout",
			func(c *web.Config) { c.Timeout = 3 * time.Second },
		},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := channel(t, c.address, method, c.adjust).Send(t.Context(), message())
			if r.Outcome != c.outcome || r.Code != c.code {
				t.Errorf("%s, %s: %v, %q, %v, want %v, %q", name, method, r.Outcome, r.Code, r.Err,
					c.outcome, c.code)
			}
			if r.Err == nil {
				t.Errorf("%s, %s: no error", name, method)
				continue
			}
			for _, hidden := range []string{"7700900123", "canary", "4711", "/send"} {
				if strings.Contains(r.Err.Error(), hidden) {
					t.Errorf("%s, %s: the error shows %q", name, method, hidden)
				}
			}
		}
	}
}

// garbage sends an answer that is not HTTP.
func garbage(_ int, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write([]byte("220 ready\r\n"))
	_ = conn.Close()
}

// hang waits until the client has disconnected.
func hang(_ int, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices the disconnect only after the body
	<-r.Context().Done()
}

// clientTLS trusts these certificates alone.
func clientTLS(trusted *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted}
}

// tunnel is an https proxy that accepts CONNECT only.
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

// behindTunnel opens a channel to an API over TLS behind a proxy over TLS. The test can break its
// connections.
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

// TestAnAnswerLostBehindAnHTTPSProxyIsUnknown through two layers of TLS.
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

func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	server, _, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	_, otherAuthority, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	carrier := webtest.Serve(t, webtest.Config{Protocol: plainProtocol{}, TLS: server})
	c := channel(t, carrier.URL(), http.MethodPost, func(cfg *web.Config) { cfg.TLS = otherAuthority })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Refused || r.Code != "tls" {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

// TestNoCompressedAnswerIsAskedFor: without compression one bound limits both wire and memory, and
// a server or proxy that truncates a compressed body cannot make an acceptance unreadable.
func TestNoCompressedAnswerIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		s := serve(t, accept)
		if r := channel(t, s.URL, method, asIs).Send(t.Context(),
			message()); r.Outcome != provider.Accepted {
			t.Fatalf("%s: %v, %v", method, r.Outcome, r.Err)
		}
		s.mu.Lock()
		requests := s.requests
		s.mu.Unlock()
		for _, r := range requests {
			if asked := r.Header.Values("Accept-Encoding"); len(asked) > 0 {
				t.Errorf("%s asks for %q", method, asked)
			}
		}
	}
}

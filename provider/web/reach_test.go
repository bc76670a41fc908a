package web_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// TestPrivateAddressesAreRefusedWhereTheyResolve uses names and spellings that all lead to this machine.
func TestPrivateAddressesAreRefusedWhereTheyResolve(t *testing.T) {
	t.Parallel()
	s := serve(t, accept)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "0.0.0.0", "[::]"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			c := channel(t, "http://"+host+":"+u.Port(), method, func(cfg *web.Config) { cfg.AllowPrivate = false })
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
		if r := channel(t, s.URL, method, asIs).Send(t.Context(), message()); r.Outcome != provider.Accepted {
			t.Errorf("the environment's proxy: %v", r.Err)
		}
		// The environment's proxy never stands before loopback, so a name that has no address shows it.
		if r := channel(t, "http://api.invalid", method, asIs).Send(t.Context(), message()); r.Code != "dns" {
			t.Errorf("the environment's proxy was asked: %q, %v", r.Code, r.Err)
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
		// A proxy resolves the name, and may itself be in a private network.
		proxied := func(cfg *web.Config) { cfg.Proxy, cfg.AllowPrivate = through, false }
		if r := channel(t, "http://api.example.com", method, proxied).Send(t.Context(), message()); r.Outcome != provider.Accepted {
			t.Errorf("the configured proxy: %v", r.Err)
		}
		proxy.Close()
		r := channel(t, "http://api.example.com", method, proxied).Send(t.Context(), message())
		if r.Outcome != provider.Refused || strings.Contains(r.Err.Error(), "pass") {
			t.Errorf("a proxy that is away: %v, %v", r.Outcome, r.Err)
		}
	}
}

// TestErrorsShowNoNumberTextOrSecret sends the number and the text in the URL, which net/http's errors quote.
func TestErrorsShowNoNumberTextOrSecret(t *testing.T) {
	t.Parallel()
	away := serve(t, accept)
	away.Close()
	for name, c := range map[string]struct {
		address string
		outcome provider.Outcome
		code    string
		adjust  func(*web.Config)
	}{
		"nobody there":   {away.URL, provider.Refused, "dial", asIs},
		"cut":            {serve(t, cut).URL, provider.Unknown, "connection_lost", asIs},
		"no HTTP":        {serve(t, garbage).URL, provider.Unknown, "transport", asIs},
		"no TLS":         {strings.Replace(serve(t, accept).URL, "http:", "https:", 1), provider.Refused, "transport", asIs},
		"no such name":   {"http://api.invalid", provider.Refused, "dns", asIs},
		"not allowed":    {serve(t, accept).URL, provider.Refused, "private_address", func(c *web.Config) { c.AllowPrivate = false }},
		"no time for it": {serve(t, hang).URL, provider.Unknown, "timeout", func(c *web.Config) { c.Timeout = time.Second }},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := channel(t, c.address, method, c.adjust).Send(t.Context(), message())
			if r.Outcome != c.outcome || r.Code != c.code {
				t.Errorf("%s, %s: %v, %q, %v, want %v, %q", name, method, r.Outcome, r.Code, r.Err, c.outcome, c.code)
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

// garbage answers with what is no HTTP.
func garbage(_ int, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write([]byte("220 ready\r\n"))
	_ = conn.Close()
}

// hang waits until the caller has gone.
func hang(_ int, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices that it has gone only after the body
	<-r.Context().Done()
}

package web_test

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// versionedShape is a plainShape that fails requests of another protocol than HTTP/2.
type versionedShape struct {
	plainShape
	t     testing.TB
	taken *atomic.Int64
}

func (s versionedShape) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if r.ProtoMajor != 2 || r.TLS == nil {
		s.t.Errorf("a request came over %s, encrypted: %t", r.Proto, r.TLS != nil)
	}
	s.taken.Add(1)
	return s.plainShape.Read(r, body)
}

func TestChannelConformsOverTLSAndHTTP2(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	shape := func() webtest.Shape { return versionedShape{t: t, taken: &taken} }
	h := webtest.SecureHarness(shape, func(t testing.TB, address string, client *tls.Config) provider.Channel {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return web.New(web.Config{BaseURL: base, Timeout: time.Minute, ConnectTimeout: time.Minute, AllowPrivate: true, TLS: client}, plainAPI{http.MethodPost})
	})
	h.Deadline = 2 * time.Second
	t.Cleanup(func() {
		if taken.Load() == 0 {
			t.Error("no request was seen")
		}
	})
	providertest.Run(t, h)
}

// TestGetsStayOnHTTP1 holds GET to a connection of its own: over HTTP/2 net/http would share and repeat it.
func TestGetsStayOnHTTP1(t *testing.T) {
	t.Parallel()
	server, client, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	carrier, err := webtest.Start(webtest.Config{Shape: firstShape{t: t}, TLS: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	c := channel(t, carrier.URL(), http.MethodGet, func(cfg *web.Config) { cfg.TLS = client })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Accepted {
		t.Error(r.Err)
	}
}

// firstShape is a plainShape that fails requests of HTTP/2.
type firstShape struct {
	plainShape
	t testing.TB
}

func (s firstShape) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if r.ProtoMajor != 1 {
		s.t.Errorf("a request came over %s", r.Proto)
	}
	return s.plainShape.Read(r, body)
}

func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	server, _, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	carrier, err := webtest.Start(webtest.Config{Shape: plainShape{}, TLS: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	c := channel(t, carrier.URL(), http.MethodPost, func(cfg *web.Config) { cfg.TLS = stranger })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Refused || r.Code != "tls" {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

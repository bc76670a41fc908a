package web_test

import (
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestGetsStayOnHTTP1 holds GET to a connection of its own: over HTTP/2 net/http would share and repeat it.
func TestGetsStayOnHTTP1(t *testing.T) {
	t.Parallel()
	server, client, err := webtest.TLS()
	if err != nil {
		t.Fatal(err)
	}
	carrier := webtest.Serve(t, webtest.Config{Shape: firstShape{t: t}, TLS: server})
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
	carrier := webtest.Serve(t, webtest.Config{Shape: plainShape{}, TLS: server})
	c := channel(t, carrier.URL(), http.MethodPost, func(cfg *web.Config) { cfg.TLS = stranger })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Refused || r.Code != "tls" {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

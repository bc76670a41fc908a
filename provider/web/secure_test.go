package web_test

import (
	"net/http"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

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
	carrier := webtest.Serve(t, webtest.Config{Protocol: plainShape{}, TLS: server})
	c := channel(t, carrier.URL(), http.MethodPost, func(cfg *web.Config) { cfg.TLS = stranger })
	if r := c.Send(t.Context(), message()); r.Outcome != provider.Refused || r.Code != "tls" {
		t.Errorf("%v, %q, %v", r.Outcome, r.Code, r.Err)
	}
}

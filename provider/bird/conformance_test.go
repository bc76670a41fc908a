package bird_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/bird"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"messages", "channels"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			h := webtest.Harness(func() webtest.Shape { return birdtest.New(account(api)) }, func(t testing.TB, url string) provider.Channel {
				return open(t, settings(api, map[string]any{"base_url": url, "timeout": "1m"}))
			})
			h.Deadline, h.Secrets = 2*time.Second, []string{accessKey, signingKey}
			providertest.Run(t, h)
		})
	}
}

// TestMessagesGoOutOnceOverHTTP2 sends over TLS with the authority from the settings.
func TestMessagesGoOutOnceOverHTTP2(t *testing.T) {
	t.Parallel()
	authority := httptest.NewUnstartedServer(nil)
	authority.StartTLS() // for its certificate, which is good for 127.0.0.1
	t.Cleanup(authority.Close)
	pemFile := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
	protocols := make(chan string, 20)
	carrier, err := webtest.Start(webtest.Config{
		Shape: protocolShape{birdtest.New(account("messages")), protocols},
		TLS:   &tls.Config{Certificates: authority.TLS.Certificates, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	c, err := bird.Open(settings("messages", map[string]any{"base_url": carrier.URL(), "tls_ca_file": "ca"}), web.Opening{
		ReadFile: func(name string) ([]byte, error) {
			if name == "ca" {
				return pemFile, nil
			}
			return readFile(name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	for range 10 {
		if r := c.Send(t.Context(), *submission()); r.Outcome != provider.Accepted {
			t.Fatalf("%v %s: %v", r.Outcome, r.Code, r.Err)
		}
		if p := <-protocols; p != "HTTP/2.0" {
			t.Errorf("sent over %s", p)
		}
	}
	if n := carrier.Requests(); n != 10 {
		t.Errorf("%d requests for 10 messages", n)
	}
}

// protocolShape tells by which protocol submits came.
type protocolShape struct {
	webtest.Shape
	protocols chan<- string
}

func (p protocolShape) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	p.protocols <- r.Proto
	return p.Shape.Read(r, body)
}

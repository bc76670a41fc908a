package bird_test

import (
	"crypto/tls"
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/bird"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"messages", "channels"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			v := webtest.Vendor{
				Protocol: func() webtest.Protocol { return birdtest.New(account(api)) },
				Secrets:  []string{accessKey, signingKey},
				Open: func(t testing.TB,
					reach web.Config) provider.Channel {
					return reaching(t, api, reach)
				},
			}
			if api == "messages" { // the other one takes no validity
				v.Validity = &webtest.Validity{Pattern: `"validity":(\d+)`}
			}
			webtest.CheckConformance(t, v)
		})
	}
}

// reaching makes a channel for an API that is reached like that.
func reaching(t testing.TB, api string, reach web.Config) *bird.Channel {
	t.Helper()
	cfg, err := bird.ParseSettings(settings(api, nil), files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web = reach
	return bird.New(cfg)
}

// TestMessagesGoOutOnceOverTLS sends over TLS with the authority from the settings.
func TestMessagesGoOutOnceOverTLS(t *testing.T) {
	t.Parallel()
	authority := httptest.NewUnstartedServer(nil)
	authority.StartTLS() // for its certificate, which is good for 127.0.0.1
	t.Cleanup(authority.Close)
	pemFile := pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
	carrier := webtest.Serve(t, webtest.Config{
		Protocol: birdtest.New(account("messages")),
		TLS: &tls.Config{
			Certificates: authority.TLS.Certificates, MinVersion: tls.VersionTLS12,
		},
	})
	trusting := webtest.Files{"ca": string(pemFile)}
	maps.Copy(trusting, files)
	c, err := bird.Open(
		settings("messages", map[string]any{"base_url": carrier.URL(), "tls_ca_file": "ca"}),
		trusting.Environment(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	for range 10 {
		if r := c.Send(t.Context(), *submission()); r.Outcome != provider.Accepted {
			t.Fatalf("%v %s: %v", r.Outcome, r.Code, r.Err)
		}
	}
	if n := carrier.Requests(); n != 10 {
		t.Errorf("%d requests for 10 messages", n)
	}
}

package vonage

import (
	"crypto/tls"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		shape := func() webtest.Shape { return vonagetest.New(v.server) }
		plain := webtest.Harness(shape, func(t testing.TB, url string) provider.Channel {
			return New(parse(t, v, url, nil))
		})
		secure := webtest.SecureHarness(shape, func(t testing.TB, url string, client *tls.Config) provider.Channel {
			cfg := parse(t, v, url, nil)
			cfg.Web.TLS = client
			return New(cfg)
		})
		for wire, h := range map[string]providertest.Harness{"HTTP/1.1": plain, "TLS and HTTP/2": secure} {
			t.Run(name+" over "+wire, func(t *testing.T) {
				t.Parallel()
				h.Deadline, h.Secrets = 400*time.Millisecond, []string{apiSecret, secret}
				providertest.Run(t, h)
			})
		}
	}
}

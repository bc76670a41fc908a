package sinch

import (
	"crypto/tls"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.Conform(t, webtest.Vendor{
		Shape: shape, Secrets: []string{token, secret},
		Open: func(t testing.TB, address string, trust *tls.Config) provider.Channel {
			cfg := parse(t, address, public, nil)
			cfg.Web.TLS = trust
			return New(cfg)
		},
	})
}

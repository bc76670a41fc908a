package sinch

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: shape, Secrets: []string{token, secret},
		Open: func(t testing.TB,
			reach web.Config) provider.Channel {
			return open(t, reach, public, nil)
		},
	})
}

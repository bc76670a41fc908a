package vonage

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			webtest.Conform(t, webtest.Vendor{
				Shape: func() webtest.Shape { return vonagetest.New(v.server) }, Secrets: []string{apiSecret, secret},
				Open: func(t testing.TB, reach web.Config) provider.Channel { return open(t, v, reach, "", nil) },
			})
		})
	}
}

package vonage

import (
	"testing"
	"time"

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
			validity := &webtest.Validity{Pattern: `"ttl":(\d+)`}
			if v.server.SMS {
				validity = &webtest.Validity{Pattern: `\bttl=(\d+)`, Unit: time.Millisecond}
			}
			webtest.CheckConformance(t, webtest.Vendor{
				Protocol: func() webtest.Protocol { return vonagetest.New(v.server) },
				Secrets:  []string{apiSecret, secret},
				Open: func(t testing.TB,
					reach web.Config) provider.Channel {
					return open(t, v, reach, "", nil)
				},
				Validity: validity,
			})
		})
	}
}

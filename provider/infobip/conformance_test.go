package infobip

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	webtest.CheckConformance(t, webtest.Vendor{
		Protocol: func() webtest.Protocol {
			return infobiptest.New(infobiptest.Config{
				Key: apiKey,
			})
		}, Secrets: []string{apiKey, secret},
		Open: func(t testing.TB,
			reach web.Config) provider.Channel {
			return open(t, reach, public, nil)
		},
		Validity: &webtest.Validity{Pattern: `"validityPeriod":\{"amount":(\d+)`},
	})
}

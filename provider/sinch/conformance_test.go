package sinch

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/sinch/sinchtest"
	"dispatcher/provider/web/webtest"
)

func shape() webtest.Shape {
	return sinchtest.New(sinchtest.Config{Plan: plan, Token: token, Secret: secret})
}

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	h := webtest.Harness(shape, func(t testing.TB, url string) provider.Channel {
		return open(t, url, "https://sms.example.com/receipts/sinch", nil)
	})
	h.Deadline, h.Secrets = 400*time.Millisecond, []string{token, secret}
	providertest.Run(t, h)
}

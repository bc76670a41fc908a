package infobip

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

func TestChannelConforms(t *testing.T) {
	t.Parallel()
	h := webtest.Harness(func() webtest.Shape { return infobiptest.New(infobiptest.Config{Key: apiKey}) },
		func(t testing.TB, url string) provider.Channel { return open(t, url, public, nil) })
	h.Deadline, h.Secrets = 400*time.Millisecond, []string{apiKey, secret}
	providertest.Run(t, h)
}

package telnyx_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a text that Telnyx blocks, or a sender of the message's
// own that it does not take, leaves the channel to the messages of others; a sender that the
// profile has lost does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/answers/*.txt",
		func(_ testing.TB, reach web.Config) provider.Channel {
			return breaker.New(open(reach, ""), breaker.Config{Name: "telnyx"})
		}, map[string]web.Blame{
			"number_code": web.OnMessage, "region": web.OnMessage,
			"inactive_recipient": web.OnMessage,
			"sender":             web.OnSender, "inactive_number": web.OnSender,
			"invalid_number_e164": web.OnSender,
			"funds":               web.OnChannel, "profile_disabled": web.OnChannel,
			"credentials": web.OnChannel,
		})
}

package twilio_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a country that does not take a sender, or a sender of
// the message's own that is refused, leaves the channel to the messages of others; a number that
// the account has lost does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/answers/*.txt",
		func(_ testing.TB, reach web.Config) provider.Channel {
			return breaker.New(open(reach, ""), breaker.Config{Name: "twilio"})
		}, map[string]web.Blame{
			"region": web.OnMessage, "no_route": web.OnMessage,
			"sender_of_no_use_there": web.OnMessage, "pair_flooded": web.OnMessage,
			"sender":      web.OnSender,
			"credentials": web.OnChannel, "day_used_up": web.OnChannel,
			"unlisted_code": web.OnChannel,
		})
}

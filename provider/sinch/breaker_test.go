package sinch

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a number of a type that a region does not take, or a
// sender of the message's own, leaves the channel to the messages of others; a sender that the
// service plan has lost does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/answers/*.http",
		func(t testing.TB, reach web.Config) provider.Channel {
			return breaker.New(open(t, reach, "", nil), breaker.Config{Name: "sinch"})
		}, map[string]web.Blame{
			"illegal_number_type": web.OnMessage, "llegal_number_type": web.OnMessage,
			"bad_body":   web.OnMessage,
			"bad_sender": web.OnSender, "unknown_campaign": web.OnSender,
			"blocked_account": web.OnChannel, "forbidden": web.OnChannel,
			"bad_expiry": web.OnChannel, "no_credit": web.OnChannel,
		})
}

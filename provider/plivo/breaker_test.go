package plivo_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a country, a text, or a sender of the message's own
// that is refused leaves the channel to the messages of others; a sender that the account has lost
// does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/answers/*.txt",
		func(_ testing.TB, reach web.Config) provider.Channel {
			return breaker.New(open(reach, ""), breaker.Config{Name: "plivo"})
		}, map[string]web.Blame{
			"destination_country": web.OnMessage, "destination_not_enabled": web.OnMessage,
			"text":                 web.OnMessage,
			"recipient_and_sender": web.OnMessage, "sender_for_country": web.OnMessage,
			"sender_for_destination": web.OnMessage,
			"sender":                 web.OnSender, "caller": web.OnSender,
			"sender_of_another_account": web.OnSender,
			"credit":                    web.OnChannel, "callback": web.OnChannel,
			"unlisted": web.OnChannel, "payment": web.OnChannel,
		})
}

package aws_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a country, also one that does not take the sender, a
// text, or a sender of the message's own that is refused leaves the channel to the messages of
// others; a number that the account has lost, or the want of any, does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/*.http",
		func(t testing.TB, reach web.Config) provider.Channel {
			return breaker.New(reaching(t, reach), breaker.Config{Name: "aws"})
		}, map[string]web.Blame{
			"country_blocked": web.OnMessage, "country_protected": web.OnMessage,
			"identity_for_country": web.OnMessage,
			"sender_not_there":     web.OnMessage, "bad_text": web.OnMessage,
			"bad_sender": web.OnSender, "bad_number_and_sender": web.OnSender,
			"no_such_sender": web.OnSender,
			"no_identities":  web.OnSender, "no_capability": web.OnSender,
			"no_such_pool": web.OnChannel, "spend_limit": web.OnChannel, "disabled": web.OnChannel,
			"message_type": web.OnChannel,
		})
}

package infobip

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a prefix, a text, or a sender of the message's own that
// is refused leaves the channel to the messages of others; a sender that is not registered on the
// account, and that the channel gives to all, does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	webtest.CheckBreaker(t, "testdata/answers/*.http",
		func(t testing.TB, reach web.Config) provider.Channel {
			return breaker.New(open(t, reach, "", nil), breaker.Config{Name: "infobip"})
		}, map[string]web.Blame{
			"rejected_prefix": web.OnMessage, "bad_text": web.OnMessage,
			"bad_recipient_and_text": web.OnMessage,
			"rejected_source":        web.OnSender, "bad_sender": web.OnSender,
			"bad_sender_and_text": web.OnSender,
			"rejected_credits":    web.OnChannel, "bad_sender_and_webhook": web.OnChannel,
			"rejected_in_a_new_way": web.OnChannel,
		})
}

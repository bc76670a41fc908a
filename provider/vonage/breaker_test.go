package vonage

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a prefix, a text, or a sender of the message's own that
// is refused leaves the channel to the messages of others; a number that the account has lost does
// not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	for api, c := range map[string]struct {
		files  string
		blames map[string]web.Blame
	}{
		"Messages API": {"testdata/answers/messages_*.http", map[string]web.Blame{
			"unknown_prefix": web.OnMessage, "too_long": web.OnMessage,
			"invalid_sender": web.OnSender,
			"no_credit":      web.OnChannel, "invalid_parameter": web.OnChannel,
		}},
		"SMS API": {"testdata/answers/sms_*.http", map[string]web.Blame{
			"unknown_prefix": web.OnMessage, "too_long": web.OnMessage,
			"illegal_sender": web.OnSender,
			"no_credit":      web.OnChannel, "invalid_parameter": web.OnChannel,
		}},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			webtest.CheckBreaker(t, c.files, func(t testing.TB, reach web.Config) provider.Channel {
				return breaker.New(open(t, variants()[api], reach, "", nil),
					breaker.Config{Name: "vonage"})
			}, c.blames)
		})
	}
}

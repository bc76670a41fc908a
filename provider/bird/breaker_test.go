package bird_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheChannelOpenTheBreaker: a text, or a sender of the message's own that is
// refused, leaves the channel to the messages of others; an originator that the account has lost
// does not.
func TestOnlyFaultsOfTheChannelOpenTheBreaker(t *testing.T) {
	t.Parallel()
	for api, blames := range map[string]map[string]web.Blame{
		"messages": {
			"bad_body": web.OnMessage, "bad_originator": web.OnSender,
			"no_balance": web.OnChannel, "wrong_key": web.OnChannel, "not_found": web.OnChannel,
		},
		"channels": {
			"bad_body": web.OnMessage, "bad_sender": web.OnSender,
			"bad_receiver_and_sender": web.OnSender,
			"invalid_without_details": web.OnChannel, "forbidden": web.OnChannel,
		},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			webtest.CheckBreaker(t, "testdata/"+api+"_*.http",
				func(t testing.TB, reach web.Config) provider.Channel {
					return breaker.New(reaching(t, api, reach), breaker.Config{Name: "bird"})
				}, blames)
		})
	}
}

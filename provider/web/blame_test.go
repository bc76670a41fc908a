package web_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt: what is on the message always is, what is on the channel never.
func TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt(t *testing.T) {
	t.Parallel()
	for blame, want := range map[web.Blame]struct{ own, channels bool }{
		web.OnChannel: {false, false}, web.OnSender: {true, false}, web.OnMessage: {true, true},
	} {
		for own, want := range map[bool]bool{true: want.own, false: want.channels} {
			a := &web.Answer{Status: 400, OwnSender: own}
			r := a.Refused(blame, "7", "it says so")
			if r.Outcome != provider.Refused || r.Unfit != want || r.Code != "400/7" || r.Err == nil || a.Unfit(blame) != want {
				t.Errorf("on %v, its own sender %v: %+v", blame, own, r)
			}
		}
	}
}

package web_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt: what is on the message always is, what is on the channel never.
func TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt(t *testing.T) {
	t.Parallel()
	for v, want := range map[web.Meaning]struct{ own, channels bool }{
		web.Refused("it says so"): {false, false}, web.BadSender("it says so"): {true, false}, web.Unfit("it says so"): {true, true},
	} {
		for own, want := range map[bool]bool{true: want.own, false: want.channels} {
			r := (&web.Answer{Status: 400, OwnSender: own}).Result(v, "7")
			if r.Outcome != provider.Refused || r.Unfit != want || r.Code != "400/7" || r.Err == nil {
				t.Errorf("on %v, its own sender %v: %+v", v.Blame, own, r)
			}
		}
	}
}

// TestOnlyARefusalMakesAMessageUnfit: what is blamed means nothing beside another outcome.
func TestOnlyARefusalMakesAMessageUnfit(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400, OwnSender: true}
	for _, o := range []provider.Outcome{provider.Unknown, provider.Rejected, provider.Throttled} {
		for _, b := range []web.Blame{web.OnChannel, web.OnSender, web.OnMessage} {
			if r := a.Result(web.Meaning{Outcome: o, Why: "it says so", Blame: b}, ""); r.Unfit || r.Outcome != o {
				t.Errorf("%v, on %v: %+v", o, b, r)
			}
		}
	}
}

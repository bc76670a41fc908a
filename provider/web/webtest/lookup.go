package webtest

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Lookup is what a lookup makes of a submission that the carrier decided about.
type Lookup struct {
	Reply providertest.Reply
	// Certain is whether a message that is not found counts as not taken.
	Certain bool
	Want    provider.LookupState
}

// Finder is a channel that looks submissions up.
type Finder interface {
	provider.Channel
	provider.Finder
}

// CheckLookups sends a message under each verdict, and looks it up. open makes a channel whose carrier behaves like that.
func CheckLookups(t *testing.T, open func(t *testing.T, b Behaviour, certain bool) Finder, cases map[string]Lookup) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channel := open(t, Behaviour{Decide: func(int, Submit) providertest.Answer {
				return providertest.Answer{Reply: c.Reply}
			}}, c.Certain)
			channel.Send(t.Context(), Message())
			known(t, channel.Find(t.Context(), Key), c.Want)
		})
	}
}

// known fails unless a lookup found that, with a reference when the message was taken and an error when nobody knows.
func known(t testing.TB, got provider.LookupResult, want provider.LookupState) {
	t.Helper()
	if got.State != want || (got.Reference != "") != (want == provider.Taken) || (got.Err != nil) != (want == provider.Unanswered) {
		t.Errorf("%+v, want %v", got, want)
	}
}

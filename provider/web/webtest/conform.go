package webtest

import (
	"slices"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Harness runs the conformance suite of providers over an adapter: open brings up its channel for an API that
// begins at url, with private addresses allowed.
func Harness(shape func() Shape, open func(t testing.TB, url string) provider.Channel) providertest.Harness {
	return providertest.Harness{
		Connectionless: true, RetryAfter: true,
		Start: func(t testing.TB, play providertest.Script) providertest.Instance {
			carrier, err := Start(Config{Shape: shape(), Log: -1, Behaviour: Behaviour{
				Decide: func(n int, s Submit) providertest.Answer { return play(n, suiteSubmit(s)) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(carrier.Close)
			if play == nil {
				carrier.Close()
			}
			channel := open(t, carrier.URL())
			t.Cleanup(func() { _ = channel.Close(t.Context()) }) // most checks have closed it
			t.Cleanup(func() {
				if unread := carrier.Unread(); len(unread) > 0 {
					t.Errorf("the carrier could not read %d requests: %q", len(unread), slices.Compact(unread))
				}
			})
			return providertest.Instance{Channel: channel, Submits: func() []providertest.Submit {
				var list []providertest.Submit
				for _, s := range carrier.Submits() {
					list = append(list, suiteSubmit(s))
				}
				return list
			}}
		},
	}
}

func suiteSubmit(s Submit) providertest.Submit {
	return providertest.Submit{To: s.To, Reference: s.Reference}
}

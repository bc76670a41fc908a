package webtest

import (
	"crypto/tls"
	"slices"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Harness runs the conformance suite of providers over an adapter: open brings up its channel for an API that
// begins at url, with private addresses allowed.
func Harness(shape func() Shape, open func(t testing.TB, url string) provider.Channel) providertest.Harness {
	return harness(func(testing.TB) (Config, func(testing.TB, string) provider.Channel) {
		return Config{Shape: shape()}, open
	})
}

// SecureHarness is a Harness over TLS and HTTP/2. The channel has to trust what client trusts.
func SecureHarness(shape func() Shape, open func(t testing.TB, url string, client *tls.Config) provider.Channel) providertest.Harness {
	return harness(func(t testing.TB) (Config, func(testing.TB, string) provider.Channel) {
		server, client, err := TLS()
		if err != nil {
			t.Fatal(err)
		}
		return Config{Shape: shape(), TLS: server}, func(t testing.TB, url string) provider.Channel { return open(t, url, client) }
	})
}

func harness(prepare func(testing.TB) (Config, func(testing.TB, string) provider.Channel)) providertest.Harness {
	return providertest.Harness{
		Connectionless: true, RetryAfter: true,
		Start: func(t testing.TB, play providertest.Script) providertest.Instance {
			cfg, open := prepare(t)
			cfg.Log, cfg.Behaviour.Decide = -1, func(n int, s Submit) providertest.Answer { return play(n, suiteSubmit(s)) }
			carrier, err := Start(cfg)
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

package webtest

import (
	"maps"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// CheckPromises fails unless a channel of such settings promises what is wanted where it has a callback, and no receipts
// without one. The setting secret, if named, is what verifies callbacks: without it there are none either.
func CheckPromises(t *testing.T, open web.OpenFunc, values map[string]any, o web.Environment, secret string, want provider.Capabilities) {
	t.Helper()
	promises(t, open, values, o, want)
	want.Receipts, want.KeyInReceipt = false, false
	promises(t, open, values, web.Environment{ReadFile: o.ReadFile}, want)
	if secret != "" {
		values = maps.Clone(values)
		delete(values, secret)
		promises(t, open, values, o, want)
	}
}

// promises fails unless a channel of such settings promises what is wanted.
func promises(t testing.TB, open web.OpenFunc, values map[string]any, o web.Environment, want provider.Capabilities) {
	t.Helper()
	channel, err := open(values, o)
	if err != nil {
		t.Error(err)
		return
	}
	if got := channel.(provider.Capable).Capabilities(); got != want {
		t.Errorf("with callback %q and %v it promises %+v, want %+v", o.Callback, values, got, want)
	}
	if err := channel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

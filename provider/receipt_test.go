package provider_test

import (
	"testing"

	"dispatcher/provider"
)

func TestOnlyDeliveredAndUndeliveredAreAnEnd(t *testing.T) {
	t.Parallel()
	if got := (provider.Receipt{}).State; got != provider.Pending {
		t.Errorf("a receipt that nobody classified is %s", got)
	}
	for state, want := range map[provider.ReceiptState]struct {
		word  string
		final bool
	}{
		provider.Pending: {"pending", false}, provider.Delivered: {"delivered", true},
		provider.Undelivered: {"undelivered", true}, 9: {"ReceiptState(9)", false},
	} {
		if state.String() != want.word || state.Final() != want.final {
			t.Errorf("%s is final: %t, want %s, %t", state, state.Final(), want.word, want.final)
		}
	}
}

package provider_test

import (
	"testing"

	"dispatcher/provider"
)

func TestUnreadyKnowsTheWordsBesideFalseAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		provider.Connecting, provider.Unbound, provider.BindRefused, provider.Closed, provider.BreakerOpen, provider.Misconfigured,
		provider.Busy,
	} {
		if !provider.Unready(word) {
			t.Errorf("%q is not known", word)
		}
	}
	for _, word := range []string{"", provider.Probing, "late"} {
		if provider.Unready(word) {
			t.Errorf("%q is known", word)
		}
	}
}

package admission_test

import (
	"testing"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

func TestScopeReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.Just(admission.Scope{}),
			rapid.Map(rapid.StringN(1, 30, -1), func(name string) admission.Scope { return admission.Scope{Tenant: name} }),
			rapid.Map(rapid.StringMatching(`\+[1-9][0-9]{0,14}`), func(prefix string) admission.Scope { return admission.Scope{Prefix: prefix} }),
		).Draw(t, "scope")
		if got, err := admission.ParseScope(s.String()); err != nil || got != s {
			t.Fatalf("%q: %+v, %v", s, got, err)
		}
	})
}

func TestScopeRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "tenant:", "prefix:", "shop", "Channel", "channel "} {
		if s, err := admission.ParseScope(text); err == nil {
			t.Errorf("%q became %+v", text, s)
		}
	}
}

func TestScopeCoversItsMessagesOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		scope          admission.Scope
		tenant, number string
		want           bool
	}{
		{admission.Scope{}, "", "+447700900123", true},
		{admission.Scope{}, "shop", "+15550100", true},
		{admission.Scope{Tenant: "shop"}, "shop", "+15550100", true},
		{admission.Scope{Tenant: "shop"}, "shop2", "+15550100", false},
		{admission.Scope{Tenant: "shop"}, "", "+15550100", false},
		{admission.Scope{Prefix: "+44"}, "shop", "+447700900123", true},
		{admission.Scope{Prefix: "+44"}, "", "+15550144", false},
		{admission.Scope{Prefix: "+447700"}, "", "+44770", false},
	} {
		if got := tc.scope.Covers(tc.tenant, tc.number); got != tc.want {
			t.Errorf("%s covers %q, %s: %t", tc.scope, tc.tenant, tc.number, got)
		}
	}
}

func TestWhichLimitItIsReadsBack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		channel string
		key     admission.Key
	}{
		"alpha 1s messages":                  {"alpha", admission.Key{Window: admission.Second}},
		"alpha tenant:two words 1d segments": {"alpha", admission.Key{Scope: admission.Scope{Tenant: "two words"}, Window: admission.Day, Unit: admission.Segments}},
		"tenant:shop 1d money":               {"", admission.Key{Scope: admission.Scope{Tenant: "shop"}, Window: admission.Day, Unit: admission.Money}},
		"prefix:+44 1m messages":             {"", admission.Key{Scope: admission.Scope{Prefix: "+44"}, Window: admission.Minute}},
	} {
		if got := want.key.On(want.channel); got != text {
			t.Errorf("%q, want %q", got, text)
		}
		if channel, key, ok := admission.ParseOn(text); !ok || channel != want.channel || key != want.key {
			t.Errorf("%q reads as %q, %v, %v", text, channel, key, ok)
		}
	}
	for _, text := range []string{"", "alpha", "alpha 1s", "alpha 2s messages", "alpha 1s ", "1s messages", " 1s messages", "alpha country:gb 1d money"} {
		if _, _, ok := admission.ParseOn(text); ok {
			t.Errorf("%q was read as a limit", text)
		}
	}
}

package provider_test

import (
	"testing"

	"dispatcher/provider"
)

func TestZeroResultIsUnknown(t *testing.T) {
	t.Parallel()
	if got := (provider.Result{}).Outcome; got != provider.Unknown {
		t.Errorf("a result that nobody classified is %s", got)
	}
}

func TestWordsOfOutcomesReadBack(t *testing.T) {
	t.Parallel()
	for o, word := range map[provider.Outcome]string{
		provider.Unknown: "unknown", provider.Accepted: "accepted", provider.Rejected: "rejected",
		provider.Refused: "refused", provider.Throttled: "throttled",
	} {
		if back, err := provider.ParseOutcome(word); o.String() != word || err != nil || back != o {
			t.Errorf("%s reads back as %s, %v; want %s", o, back, err, word)
		}
	}
	if o, err := provider.ParseOutcome("sent"); err == nil || o != provider.Unknown {
		t.Errorf("an unknown word was read as %s, %v", o, err)
	}
}

// TestCombineLeansToTheSafeSide folds parts: what may have been taken wins, then what
// ends the message, then what is missing.
func TestCombineLeansToTheSafeSide(t *testing.T) {
	t.Parallel()
	const a, r, f, s, u = provider.Accepted, provider.Rejected, provider.Refused, provider.Throttled, provider.Unknown
	for _, tc := range []struct {
		parts []provider.Outcome
		want  provider.Outcome
	}{
		{[]provider.Outcome{a}, a},
		{[]provider.Outcome{a, a}, a},
		{[]provider.Outcome{a, u, r}, u},
		{[]provider.Outcome{a, r, s}, r},
		{[]provider.Outcome{a, f, s}, s},
		{[]provider.Outcome{f, a}, f},
	} {
		parts := make([]provider.Part, len(tc.parts))
		for i, o := range tc.parts {
			parts[i] = provider.Part{Index: i, Outcome: o}
		}
		if got := provider.Combine(parts); got != tc.want {
			t.Errorf("%v make %s, want %s", tc.parts, got, tc.want)
		}
	}
}

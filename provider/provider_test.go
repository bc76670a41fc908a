package provider_test

import (
	"testing"
	"time"

	"dispatcher/provider"
)

func TestASubmissionIsTooLateFromItsLatestOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		latest time.Time
		want   bool
	}{
		{time.Time{}, false}, {now.Add(1), false}, {now, true}, {now.Add(-time.Hour), true},
	} {
		if s := (provider.Submission{Latest: c.latest}); s.TooLate(now) != c.want {
			t.Errorf("latest in %v: TooLate = %t", c.latest.Sub(now), !c.want)
		}
	}
}

func TestUnreadyKnowsTheWordsBesideFalseAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		provider.Connecting, provider.Unbound, provider.BindRefused, provider.Closed,
		provider.BreakerOpen, provider.Misconfigured,
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

func TestZeroResultIsUnknown(t *testing.T) {
	t.Parallel()
	if got := (provider.Result{}).Outcome; got != provider.Unknown {
		t.Errorf("the zero Result is %s", got)
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

// TestCombineLeansToTheSafeSide combines the outcomes of parts. The order of precedence: parts that
// may have been accepted, outcomes that end the message, missing parts.
func TestCombineLeansToTheSafeSide(t *testing.T) {
	t.Parallel()
	const a, r, f, s, u = provider.Accepted, provider.Rejected, provider.Refused,
		provider.Throttled, provider.Unknown
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
			t.Errorf("%v combine to %s, want %s", tc.parts, got, tc.want)
		}
	}
}

func TestOnlyDeliveredAndUndeliveredAreAnEnd(t *testing.T) {
	t.Parallel()
	if got := (provider.Receipt{}).State; got != provider.Pending {
		t.Errorf("the zero Receipt is %s", got)
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

package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// ambiguousAttempt returns an attempt of a lane that resolves ambiguities for ten minutes, at a
// provider with all capabilities for that.
func ambiguousAttempt(change func(*Attempt)) *Attempt {
	a := testFlight()
	a.Submission.Key = "key"
	a.Search = search{
		steps: []string{"same_key", "lookup", "receipt"}, within: 10 * time.Minute,
		Begun: noon, reach: 10 * time.Second, account: "acme",
		Can: provider.Capabilities{
			SameKeyFor: time.Hour, LookupFor: time.Hour, Receipts: true,
			KeyInReceipt: true,
		},
	}
	if change != nil {
		change(a)
	}
	return a
}

func TestNoAnswerLeadsToTheFirstStepThatLaneAndProviderHave(t *testing.T) {
	t.Parallel()
	type want struct {
		State   ledger.State
		Reason  string
		Step    ledger.Step
		Verdict ledger.ResolvedAs
		Next    time.Duration
		Until   time.Duration
		Pinned  string
		Flagged bool
	}
	parts := []provider.Part{{Outcome: provider.Accepted}, {Index: 1}}
	for name, tc := range map[string]struct {
		change func(*Attempt)
		result provider.Result
		want   want
	}{
		"the same key": {
			nil,
			provider.Result{},
			want{
				ledger.Retry, "same_key", ledger.SameKey, "", 10 * time.Minute, 10 * time.Minute,
				"a", false,
			},
		},
		"a lookup": {
			func(a *Attempt) { a.Search.Can.SameKeyFor = 0 },
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.Lookup, "", 5 * time.Second, 10 * time.Minute,
				"", false,
			},
		},
		"a lookup, because the lane has it first": {
			func(a *Attempt) { a.Search.steps = []string{"lookup", "same_key"} },
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.Lookup, "", 5 * time.Second, 10 * time.Minute,
				"", false,
			},
		},
		"a lookup for as long as the provider can be asked": {
			func(a *Attempt) { a.Search.Can.SameKeyFor, a.Search.Can.LookupFor = 0, time.Minute },
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.Lookup, "", 5 * time.Second, time.Minute,
				"", false,
			},
		},
		"a receipt when the provider cannot be asked any more": {
			func(a *Attempt) {
				a.Search.Can.SameKeyFor, a.Search.Begun = 0, noon.Add(-time.Hour)
			},
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.AwaitReceipt, "", 10 * time.Minute, 10 * time.Minute,
				"", false,
			},
		},
		"a receipt": {
			func(a *Attempt) { a.Search.Can.SameKeyFor, a.Search.Can.LookupFor = 0, 0 },
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.AwaitReceipt, "", 10 * time.Minute, 10 * time.Minute,
				"", false,
			},
		},
		"a receipt, because one key stands for several parts": {
			nil,
			provider.Result{Parts: parts},
			want{
				ledger.Unknown, "", ledger.AwaitReceipt, "", 10 * time.Minute, 10 * time.Minute,
				"", false,
			},
		},
		"no receipt without the key in it": {
			func(a *Attempt) { a.Search.Can = provider.Capabilities{Receipts: true} },
			provider.Result{},
			want{
				ledger.Unknown, "ambiguous_final", ledger.NoStep, ledger.Unresolved, 0,
				10 * time.Minute, "", false,
			},
		},
		"one resend when there is nothing to ask": {
			func(a *Attempt) { a.Search.Can, a.Search.resendOnce = provider.Capabilities{}, true },
			provider.Result{},
			want{
				ledger.Retry, "resend", ledger.NoStep, ledger.Resent, 0, 10 * time.Minute,
				"", true,
			},
		},
		"half of what is left when it is to be sent again": {
			func(a *Attempt) { a.Search.resendOnce, a.Expires = true, noon.Add(time.Minute) },
			provider.Result{},
			want{
				ledger.Retry, "same_key", ledger.SameKey, "", 30 * time.Second, 30 * time.Second,
				"a", false,
			},
		},
		"the same key for as long as the provider knows it": {
			func(a *Attempt) { a.Search.Can.SameKeyFor = time.Minute },
			provider.Result{},
			want{
				ledger.Retry, "same_key", ledger.SameKey, "", 50 * time.Second, 50 * time.Second,
				"a", false,
			},
		},
		"a lookup when the key is about to be forgotten": {
			func(a *Attempt) {
				a.Search.Can.SameKeyFor, a.Search.Begun = time.Minute, noon.Add(-50*time.Second)
			},
			provider.Result{},
			want{
				ledger.Unknown, "", ledger.Lookup, "", 5 * time.Second, 10 * time.Minute,
				"", false,
			},
		},
		"no resend of what is known to be taken in part": {
			func(a *Attempt) { a.Search.Can, a.Search.resendOnce = provider.Capabilities{}, true },
			provider.Result{Parts: parts},
			want{
				ledger.Unknown, "ambiguous_final", ledger.NoStep, ledger.Unresolved, 0,
				10 * time.Minute, "", false,
			},
		},
		"no resend of the rest of a message": {
			func(a *Attempt) {
				a.Search.Can, a.Search.resendOnce, a.Submission.Parts = provider.Capabilities{},
					true, []int{2}
			},
			provider.Result{},
			want{
				ledger.Unknown, "ambiguous_final", ledger.NoStep, ledger.Unresolved, 0,
				10 * time.Minute, "", false,
			},
		},
		"nothing when a repeat found no answer in time": {
			func(a *Attempt) { a.RepeatUntil = noon },
			provider.Result{},
			want{
				ledger.Unknown, "ambiguous_final", ledger.SameKey, ledger.Unresolved, 0, 0,
				"", false,
			},
		},
		"another repeat when there is time": {
			func(a *Attempt) { a.RepeatUntil = noon.Add(time.Minute) },
			provider.Result{},
			want{
				ledger.Retry, "same_key", ledger.SameKey, "", time.Minute, time.Minute,
				"a", false,
			},
		},
		"another repeat when the provider is not there": {
			func(a *Attempt) { a.RepeatUntil = noon.Add(time.Minute) },
			provider.Result{Outcome: provider.Refused, Code: "dial"},
			want{
				ledger.Retry, "same_key", ledger.SameKey, "", time.Minute, time.Minute,
				"a", false,
			},
		},
		"certainty when a repeat is accepted": {
			func(a *Attempt) { a.RepeatUntil = noon.Add(time.Minute) },
			provider.Result{Outcome: provider.Accepted},
			want{ledger.Accepted, "", ledger.SameKey, ledger.Taken, 0, time.Minute, "", false},
		},
		"certainty when a repeat is rejected": {
			func(a *Attempt) { a.RepeatUntil = noon.Add(time.Minute) },
			provider.Result{Outcome: provider.Rejected, Code: "bad"},
			want{
				ledger.Rejected, "bad", ledger.SameKey, ledger.NotTaken, 0, time.Minute,
				"", false,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settle(ambiguousAttempt(tc.change), &tc.result, noon)
			got := want{
				State: s.State, Reason: s.Reason, Pinned: s.Pinned,
				Flagged: s.PossibleDuplicate,
			}
			if a := s.Ambiguity; a != nil {
				got.Step, got.Verdict, got.Until = a.Step, a.ResolvedAs, a.Until.Sub(noon)
				if !a.NextAt.IsZero() {
					got.Next = a.NextAt.Sub(noon)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOnlyACertainAnswerEndsAnAmbiguity tries every outcome of a repeated submission. Unless it is
// a certain yes or no, the repeats continue under the same key or end, and never lead to another
// channel without the flag.
func TestOnlyACertainAnswerEndsAnAmbiguity(t *testing.T) {
	t.Parallel()
	for _, resend := range []bool{false, true} {
		for outcome := provider.Unknown; outcome <= provider.Throttled; outcome++ {
			for _, left := range []time.Duration{-time.Second, time.Minute} {
				a := ambiguousAttempt(func(a *Attempt) {
					a.RepeatUntil, a.Search.resendOnce = noon.Add(left), resend
				})
				s := settle(a, &provider.Result{Outcome: outcome}, noon)
				certain := outcome == provider.Accepted || outcome == provider.Rejected
				elsewhere := s.State == ledger.Retry && s.Pinned != a.Channel
				if !certain && elsewhere && !s.PossibleDuplicate {
					t.Errorf("%s with %s left: %s without a flag", outcome, left, s.Reason)
				}
				if s.Ambiguity == nil {
					t.Errorf("%s with %s left has no resolution of the ambiguity", outcome, left)
				}
				if !certain && (s.Outcome != provider.Unknown || s.Segments != 3 ||
					s.PriceMicros != 90) {
					t.Errorf("%s with %s left is settled as %s for %d segments", outcome, left,
						s.Outcome, s.Segments)
				}
			}
		}
	}
}

// TestWhatMayHaveBeenSentFailsForNoOtherReason: a message whose submission will be repeated under
// its key is not failed as one that no channel can take.
func TestWhatMayHaveBeenSentFailsForNoOtherReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture, *ledger.Message)
		want   ledger.State
		at     time.Time
	}{
		"it is its turn": {func(*fixture, *ledger.Message) {}, ledger.Sending, time.Time{}},
		"after many attempts": {func(_ *fixture, m *ledger.Message) {
			m.Attempts = maxAttempts
		}, ledger.Sending, time.Time{}},
		"its text has become too long": {func(w *fixture, _ *ledger.Message) {
			w.routing.Routes[0].MaxSegments = 0
		}, ledger.Waiting, noon.Add(lookForRoute)},
		"its deadline passes": {func(_ *fixture, m *ledger.Message) {
			m.ExpiresAt = noon
		}, ledger.Waiting, noon.Add(time.Minute)},
		"the search is over": {func(_ *fixture, m *ledger.Message) {
			m.SameKeyUntil = noon
		}, ledger.Waiting, noon.Add(time.Second)},
		"the channel is another account": {func(w *fixture, _ *ledger.Message) {
			w.routing.Channels[0].Account = "other"
		}, ledger.Waiting, noon.Add(time.Minute)},
		"neither account is certain": {func(w *fixture, m *ledger.Message) {
			w.routing.Channels[0].Account, m.SameKeyAccount = "", ""
		}, ledger.Waiting, noon.Add(time.Minute)},
		"the channel has left the routing": {func(_ *fixture, m *ledger.Message) {
			m.Pinned = "gone"
		}, ledger.Waiting, noon.Add(time.Minute)},
	} {
		w := inMode(t, Weighted, LoadRatio)
		row := storedRow(ledger.Retry, 1)
		row.Pinned, row.SameKey, row.SameKeyUntil = "a", "key", noon.Add(time.Minute)
		w.routing.Channels[0].Account, row.SameKeyAccount = "me", "me"
		tc.change(w, &row)
		_, d := w.decideDue(row)
		if d.State != tc.want || d.State == ledger.Sending && d.Attempt.Channel != "a" ||
			d.State == ledger.Waiting && !d.NextAt.Equal(tc.at) {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

// TestARefusedRepeatDeniesNoID: the attempt is settled as unknown, and a row for the id in the
// refusal would count as proof.
func TestARefusedRepeatDeniesNoID(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := ambiguousAttempt(func(a *Attempt) { a.RepeatUntil = now.Add(time.Minute) })
	for _, outcome := range []provider.Outcome{provider.Refused, provider.Throttled} {
		s := settle(a, &provider.Result{Outcome: outcome, Reference: "7F"}, now)
		if s.Outcome != provider.Unknown || s.Denied != "" || s.DeniedParts != 0 || !s.Repeats {
			t.Errorf("%s: settled as %s, denied %q, %d parts, repeats %v", outcome, s.Outcome,
				s.Denied, s.DeniedParts, s.Repeats)
		}
	}
}

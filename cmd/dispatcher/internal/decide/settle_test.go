package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/provider"
)

func testFlight() *Attempt {
	return &Attempt{
		Seq: 1, Channel: "a", Expires: noon.Add(time.Hour), Segments: 3, Price: 90, Lane: "bulk",
		Submission: provider.Submission{ID: "m", Attempt: 1},
	}
}

func TestSettleDecidesTheNextStep(t *testing.T) {
	t.Parallel()
	parts := func(outcomes ...provider.Outcome) []provider.Part {
		out := make([]provider.Part, len(outcomes))
		for i, o := range outcomes {
			out[i] = provider.Part{Index: i, Outcome: o, Reference: "r"}
		}
		return out
	}
	restOf := func(a *Attempt) {
		a.pinned, a.Submission.Parts, a.Submission.Cut, a.Segments, a.Price = "a", []int{1, 2},
			"k", 2, 60
	}
	const accepted, refused, slow, unknown, rejected = provider.Accepted, provider.Refused,
		provider.Throttled, provider.Unknown, provider.Rejected
	type want struct {
		State     ledger.State
		Reason    string
		In        time.Duration // NextAt after noon; 0 is at once
		Tried     bool
		Pinned    string
		PartsLeft []int
		PartsCut  string
		Duplicate bool
		Segments  int
		Price     int64
	}
	for name, tc := range map[string]struct {
		change func(*Attempt)
		result provider.Result
		want   want
	}{
		"accepted": {
			nil,
			provider.Result{Outcome: accepted, Reference: "r"},
			want{State: ledger.Accepted, Segments: 3, Price: 90},
		},
		"rejected ends it": {
			nil,
			provider.Result{Outcome: rejected, Code: "0x0b"},
			want{State: ledger.Rejected, Reason: "0x0b"},
		},
		"unknown ends it": {
			nil,
			provider.Result{Outcome: unknown, Code: "timeout"},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Segments: 3, Price: 90},
		},
		"unknown is resent once": {
			func(a *Attempt) {
				a.Search.resendOnce = true
			},
			provider.Result{Outcome: unknown},
			want{
				State: ledger.Retry, Reason: "resend", Tried: true, Duplicate: true, Segments: 3,
				Price: 90,
			},
		},
		"but not twice": {
			func(a *Attempt) {
				a.Search.resendOnce, a.duplicate = true, true
			},
			provider.Result{Outcome: unknown},
			want{
				State: ledger.Unknown, Reason: "ambiguous_final", Duplicate: true, Segments: 3,
				Price: 90,
			},
		},
		"but not after its deadline": {
			func(a *Attempt) {
				a.Search.resendOnce, a.Expires = true, noon
			},
			provider.Result{Outcome: unknown},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Segments: 3, Price: 90},
		},
		"rejected when it was sent once more": {
			func(a *Attempt) {
				a.duplicate, a.mayBeTaken = true, true
			},
			provider.Result{Outcome: rejected, Code: "0x0b"},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Duplicate: true},
		},
		"refused after its deadline, sent once more": {
			func(a *Attempt) { a.duplicate, a.mayBeTaken, a.Expires = true, true, noon },
			provider.Result{Outcome: refused},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Tried: true, Duplicate: true},
		},
		"refused goes to the next": {
			nil,
			provider.Result{Outcome: refused},
			want{State: ledger.Retry, Reason: "refused", Tried: true},
		},
		"refused after its deadline": {
			func(a *Attempt) {
				a.Expires = noon
			},
			provider.Result{Outcome: refused},
			want{State: ledger.Failed, Reason: "expired", Tried: true},
		},
		"stopped here, not tried": {
			nil, NotSent(CodeStopping),
			want{State: ledger.Retry, Reason: "refused"},
		},
		"late, not tried, at once": {func(a *Attempt) {
			a.pinned = "a"
		}, NotSent(CodeLate), want{State: ledger.Retry, Reason: "late", Pinned: "a"}},
		"late with parts left": {func(a *Attempt) {
			a.pinned, a.Submission.Parts, a.Submission.Cut = "a", []int{1}, "k"
		}, NotSent(CodeLate), want{
			State: ledger.Retry, Reason: "late", Pinned: "a",
			PartsLeft: []int{1}, PartsCut: "k",
		}},
		"throttled goes to the next": {
			nil,
			provider.Result{Outcome: slow, RetryAfter: time.Minute},
			want{State: ledger.Retry, Reason: "throttled"},
		},
		"throttled is held": {
			func(a *Attempt) {
				a.holdThrottled = true
			},
			provider.Result{Outcome: slow, RetryAfter: time.Minute},
			want{State: ledger.Retry, Reason: "throttled", In: time.Minute, Pinned: "a"},
		},
		"an absurd Retry-After": {
			func(a *Attempt) {
				a.holdThrottled = true
			},
			provider.Result{Outcome: slow, RetryAfter: 1000 * time.Hour},
			want{State: ledger.Retry, Reason: "throttled", In: LongestRetryAfter, Pinned: "a"},
		},
		"all parts accepted": {
			nil,
			provider.Result{Outcome: accepted, Parts: parts(accepted, accepted, accepted)},
			want{State: ledger.Accepted, Segments: 3, Price: 90},
		},
		"some parts throttled": {
			nil,
			provider.Result{Outcome: slow, Cut: "k", Parts: parts(accepted, slow, accepted)},
			want{
				State: ledger.Retry, Reason: "throttled", In: time.Second, Pinned: "a",
				PartsLeft: []int{1}, PartsCut: "k", Segments: 2, Price: 60,
			},
		},
		"some parts refused": {
			nil,
			provider.Result{Outcome: refused, Cut: "k", Parts: parts(refused, refused, accepted)},
			want{
				State: ledger.Retry, Reason: "refused", In: time.Second, Pinned: "a",
				PartsLeft: []int{0, 1}, PartsCut: "k", Segments: 1, Price: 30,
			},
		},
		"no part accepted": {
			nil,
			provider.Result{Outcome: refused, Cut: "k", Parts: parts(refused, refused, refused)},
			want{State: ledger.Retry, Reason: "refused", Tried: true},
		},
		"a part unknown": {
			func(a *Attempt) {
				a.Search.resendOnce = true
			},
			provider.Result{Outcome: unknown, Parts: parts(accepted, unknown, refused)},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Segments: 2, Price: 60},
		},
		"a part accepted, one unknown": {
			func(a *Attempt) {
				a.Search.resendOnce = true
			},
			provider.Result{Outcome: unknown, Parts: parts(accepted, unknown)},
			want{State: ledger.Unknown, Reason: "ambiguous_final", Segments: 2, Price: 60},
		},
		"held for its channel, then refused": {
			func(a *Attempt) {
				a.holdThrottled, a.pinned = true, "a"
			},
			provider.Result{Outcome: refused, Code: "dial"},
			want{State: ledger.Retry, Reason: "refused", Tried: true},
		},
		"a part rejected, others billed": {
			nil,
			provider.Result{
				Outcome: rejected, Code: "x",
				Parts: parts(accepted, rejected, accepted),
			},
			want{State: ledger.Rejected, Reason: "x", Segments: 2, Price: 60},
		},
		"the rest refused again": {
			restOf,
			provider.Result{Outcome: refused, Code: "dial"},
			want{
				State: ledger.Retry, Reason: "refused", In: time.Second, Pinned: "a",
				PartsLeft: []int{1, 2}, PartsCut: "k",
			},
		},
		"the rest refused, because it was cut otherwise": { // the next claim finds out
			restOf,
			provider.Result{Outcome: refused, Code: provider.Uncomposed},
			want{
				State: ledger.Retry, Reason: "refused", In: time.Second, Pinned: "a",
				PartsLeft: []int{1, 2}, PartsCut: "k",
			},
		},
		"a part of the rest": {
			restOf,
			provider.Result{
				Outcome: slow, Cut: "k",
				Parts: []provider.Part{{Index: 1, Outcome: accepted}, {Index: 2, Outcome: slow}},
			},
			want{
				State: ledger.Retry, Reason: "throttled", In: time.Second, Pinned: "a",
				PartsLeft: []int{2}, PartsCut: "k", Segments: 1, Price: 30,
			},
		},
		"the rest accepted": {
			restOf,
			provider.Result{
				Outcome: accepted,
				Parts: []provider.Part{
					{Index: 1, Outcome: accepted},
					{Index: 2, Outcome: accepted},
				},
			},
			want{State: ledger.Accepted, PartsCut: "k", Segments: 2, Price: 60},
		},
	} {
		a := testFlight()
		if tc.change != nil {
			tc.change(a)
		}
		s := settle(a, &tc.result, noon)
		got := want{
			s.State, s.Reason, 0, s.Tried, s.Pinned, s.PartsLeft, s.PartsCut,
			s.PossibleDuplicate, s.Segments, s.PriceMicros,
		}
		if !s.NextAt.IsZero() {
			got.In = s.NextAt.Sub(noon)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoOutcomeButThoseSureOfItLeadsToAnotherSend tries every outcome and lane policy: what may
// have been accepted is never sent again without the flag.
func TestNoOutcomeButThoseSureOfItLeadsToAnotherSend(t *testing.T) {
	t.Parallel()
	for outcome := provider.Unknown; outcome <= provider.Throttled; outcome++ {
		for _, resend := range []bool{false, true} {
			a := testFlight()
			a.Search.resendOnce = resend
			s := settle(a, &provider.Result{Outcome: outcome}, noon)
			again := s.State == ledger.Retry
			sure := outcome == provider.Refused || outcome == provider.Throttled
			flagged := outcome == provider.Unknown && resend && s.PossibleDuplicate
			if again && !sure && !flagged {
				t.Errorf("%s, resend %v: sent again", outcome, resend)
			}
		}
	}
}

// TestSlotsAreHeldForReceiptsAndForRetriesOnTheSameChannel: for no other outcome is a slot held.
func TestSlotsAreHeldForReceiptsAndForRetriesOnTheSameChannel(t *testing.T) {
	t.Parallel()
	const hold = 5 * time.Minute
	partly := []provider.Part{
		{Index: 0, Outcome: provider.Accepted},
		{Index: 1, Outcome: provider.Throttled},
		{Index: 2, Outcome: provider.Refused},
	}
	for name, tc := range map[string]struct {
		change func(*Attempt)
		result provider.Result
		want   time.Duration
	}{
		"accepted": {nil, provider.Result{Outcome: provider.Accepted}, 0},
		"accepted, until receipt": {func(a *Attempt) {
			a.untilReceipt = true
		}, provider.Result{Outcome: provider.Accepted}, hold},
		"unknown, until receipt": {func(a *Attempt) {
			a.untilReceipt = true
		}, provider.Result{Outcome: provider.Unknown}, 0},
		"rejected, until receipt": {func(a *Attempt) {
			a.untilReceipt = true
		}, provider.Result{Outcome: provider.Rejected}, 0},
		"throttled, goes on": {nil, provider.Result{Outcome: provider.Throttled}, 0},
		"throttled, waits": {func(a *Attempt) {
			a.holdThrottled = true
		}, provider.Result{Outcome: provider.Throttled}, hold},
		"parts left": {nil, provider.Result{
			Outcome: provider.Throttled,
			Parts:   partly,
		}, hold},
		"late, comes back": {func(a *Attempt) { a.pinned = "a" }, NotSent(CodeLate), hold},
		"late":             {nil, NotSent(CodeLate), 0},
		"waits beyond its end": {func(a *Attempt) {
			a.holdThrottled, a.Expires = true, noon
		}, provider.Result{Outcome: provider.Throttled}, 0},
		"refused": {func(a *Attempt) {
			a.pinned = "a"
		}, provider.Result{Outcome: provider.Refused}, 0},
	} {
		a := testFlight()
		a.hold = hold
		if tc.change != nil {
			tc.change(a)
		}
		if s := settle(a, &tc.result, noon); s.Hold != tc.want {
			t.Errorf("%s: the slot is held for %s, want %s", name, s.Hold, tc.want)
		}
	}
}

// TestWhatIsNotBilledGoesBackToTheLimitsInMoney: money that may have been spent does not.
func TestWhatIsNotBilledGoesBackToTheLimitsInMoney(t *testing.T) {
	t.Parallel()
	two := []provider.Part{
		{Index: 0, Outcome: provider.Accepted},
		{Index: 1, Outcome: provider.Unknown},
		{Index: 2, Outcome: provider.Refused},
	}
	for name, tc := range map[string]struct {
		result provider.Result
		want   int64
	}{
		"accepted":             {provider.Result{Outcome: provider.Accepted}, 0},
		"unknown":              {provider.Result{Outcome: provider.Unknown}, 0},
		"rejected":             {provider.Result{Outcome: provider.Rejected}, 90},
		"throttled":            {provider.Result{Outcome: provider.Throttled}, 90},
		"late":                 {NotSent(CodeLate), 90},
		"one of three refused": {provider.Result{Outcome: provider.Unknown, Parts: two}, 30},
	} {
		a := testFlight()
		a.refunds = []ledger.Refund{
			{ScopeRef: ledger.ScopeRef{Channel: "a"}, Window: admission.Day, Micros: 90},
			{
				ScopeRef: ledger.ScopeRef{Scope: admission.Scope{Tenant: "shop"}},
				Window:   admission.Day, Micros: 90,
			},
		}
		s := settle(a, &tc.result, noon)
		var want []ledger.Refund
		if tc.want > 0 {
			want = slices.Clone(a.refunds)
			want[0].Micros, want[1].Micros = tc.want, tc.want
		}
		if diff := cmp.Diff(want, s.Refunds); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if a.refunds[0].Micros != 90 {
			t.Errorf("%s changed the attempt", name)
		}
	}
}

func TestOnlyAThrottledAnswerSlowsTheChannelDown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		result provider.Result
		want   *ledger.Slow
	}{
		{provider.Result{Outcome: provider.Throttled}, &ledger.Slow{}},
		{
			provider.Result{Outcome: provider.Throttled, RetryAfter: 7 * time.Second},
			&ledger.Slow{RetryAfter: 7 * time.Second},
		},
		{
			provider.Result{Outcome: provider.Throttled, RetryAfter: time.Hour},
			&ledger.Slow{RetryAfter: LongestRetryAfter},
		},
		{provider.Result{Outcome: provider.Throttled, RetryAfter: -time.Hour}, &ledger.Slow{}},
		{provider.Result{Outcome: provider.Refused, RetryAfter: time.Second}, nil},
		{provider.Result{Outcome: provider.Accepted}, nil},
		{provider.Result{Outcome: provider.Unknown}, nil},
		{NotSent(CodeLate), nil},
	} {
		if diff := cmp.Diff(tc.want, settle(testFlight(), &tc.result, noon).Slow); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.result.Outcome, diff)
		}
	}
}

// TestReceiptsAreExpectedForWhateverWasAccepted: a message of which only some parts were accepted,
// or one is unknown, has references, too.
func TestReceiptsAreExpectedForWhateverWasAccepted(t *testing.T) {
	t.Parallel()
	for _, outcome := range []provider.Outcome{
		provider.Accepted, provider.Unknown,
		provider.Throttled, provider.Refused,
	} {
		a := &Attempt{Await: 72 * time.Hour, Segments: 2, Expires: time.Now().Add(time.Hour)}
		res := provider.Result{
			Outcome: outcome,
			Parts: []provider.Part{
				{Outcome: provider.Accepted, Reference: "r1"},
				{Index: 1, Outcome: outcome},
			},
		}
		if s := settle(a, &res, time.Now()); s.Await != a.Await {
			t.Errorf("%s: receipts are expected for %s", outcome, s.Await)
		}
	}
}

// TestIDsOfWhatWasDeniedAreKeptApart: they are no references of accepted parts. Nothing is known
// before all answers have come.
func TestIDsOfWhatWasDeniedAreKeptApart(t *testing.T) {
	t.Parallel()
	part := func(index int, outcome provider.Outcome, reference string) provider.Part {
		return provider.Part{Index: index, Outcome: outcome, Reference: reference}
	}
	for name, test := range map[string]struct {
		result            provider.Result
		reference, denied string
		parts             int
	}{
		"refused":  {provider.Result{Outcome: provider.Refused, Reference: "7F"}, "", "7F", 0},
		"accepted": {provider.Result{Outcome: provider.Accepted, Reference: "7F"}, "7F", "", 0},
		"a part of two": {provider.Result{
			Outcome: provider.Refused,
			Parts: []provider.Part{
				part(0, provider.Accepted, "1"),
				part(1, provider.Refused, "2"),
			},
		}, "1", "2", 1},
		"both, one silent": {
			provider.Result{
				Outcome: provider.Rejected,
				Parts: []provider.Part{
					part(0, provider.Rejected, "1"),
					part(1, provider.Refused, ""),
				},
			},
			"", "1", 2,
		},
		"nobody knows": {
			provider.Result{
				Outcome: provider.Unknown,
				Parts: []provider.Part{
					part(0, provider.Unknown, ""),
					part(1, provider.Refused, "2"),
				},
			},
			"", "", 0,
		},
	} {
		a := &Attempt{
			Segments: 2, Price: 2, Expires: time.Now().Add(time.Hour),
			Submission: provider.Submission{Attempt: 1},
		}
		s := settle(a, &test.result, time.Now())
		if got := strings.TrimSpace(s.Reference); got != test.reference ||
			strings.TrimSpace(s.Denied) != test.denied || s.DeniedParts != test.parts {
			t.Errorf("%s: reference %q, denied %q of %d", name, s.Reference, s.Denied,
				s.DeniedParts)
		}
	}
}

// TestAnExpiredAttemptEndsItsMessage: it costs nothing. Parts that were accepted before are billed.
func TestAnExpiredAttemptEndsItsMessage(t *testing.T) {
	t.Parallel()
	parts := func(outcomes ...provider.Outcome) (out []provider.Part) {
		for i, o := range outcomes {
			out = append(out, provider.Part{Index: i, Outcome: o, Code: CodeExpired})
		}
		return out
	}
	for name, tc := range map[string]struct {
		parts  []provider.Part
		micros int64
	}{
		"a whole message":      {nil, 0},
		"parts, and none left": {parts(provider.Refused, provider.Refused, provider.Refused), 0},
		"one part of three did": {parts(provider.Accepted, provider.Refused,
			provider.Refused), 100},
		"the clock is a bit behind": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &Attempt{
				Channel: "a", Submission: provider.Submission{ID: "m", Attempt: 1}, Segments: 3,
				Price:   300,
				Expires: noon.Add(time.Millisecond), // by this process's clock it is settled before
			}
			s := settle(a, &provider.Result{
				Outcome: provider.Refused, Code: CodeExpired,
				Parts: tc.parts, Cut: "x",
			}, noon)
			if s.State != ledger.Failed || s.Reason != reasonExpired ||
				s.PriceMicros != tc.micros || s.Tried {
				t.Errorf("got %+v, want State %v, Reason %v, PriceMicros %v and no Tried",
					s, ledger.Failed, reasonExpired, tc.micros)
			}
		})
	}
}

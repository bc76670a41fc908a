package decide

import (
	"testing"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestEachPartThatMayHaveBeenTakenOwesAReceipt(t *testing.T) {
	t.Parallel()
	taken, nameless := provider.Part{Outcome: provider.Accepted, Reference: "r1"},
		provider.Part{Outcome: provider.Accepted}
	other := provider.Part{Outcome: provider.Accepted, Reference: "r2"}
	silent, unsent, full := provider.Part{}, provider.Part{Outcome: provider.Refused},
		provider.Part{Outcome: provider.Throttled}
	type want struct {
		receipts int
		cut      bool
	}
	apart := func(a *Attempt) { a.Search.Can.PartReceipts = true }
	for name, tc := range map[string]struct {
		change func(*Attempt)
		result provider.Result
		want   want
	}{
		"nobody answered, one receipt for the whole": {nil, provider.Result{}, want{1, false}},
		"nobody answered, one for each part":         {apart, provider.Result{}, want{3, false}},
		"nobody answered for a text in one piece": {
			apart, provider.Result{Receipts: 1}, want{1, false},
		},
		"nobody answered for the rest of a message": {
			func(a *Attempt) {
				apart(a)
				a.Submission.Parts, a.Segments = []int{1, 2}, 2
			}, provider.Result{}, want{2, false},
		},
		"nobody answered for any part": {
			nil,
			provider.Result{Parts: []provider.Part{silent, silent, silent}},
			want{3, false},
		},
		"a part was answered for": {
			nil,
			provider.Result{Parts: []provider.Part{taken, silent, silent}},
			want{3, false},
		},
		"a part has no id": {
			nil,
			provider.Result{Parts: []provider.Part{nameless, silent, silent}},
			want{3, false},
		},
		"the last one never left": {
			nil,
			provider.Result{Parts: []provider.Part{taken, silent, unsent}},
			want{2, true},
		},
		"the last one was not taken": {
			nil,
			provider.Result{Parts: []provider.Part{silent, silent, full}},
			want{2, true},
		},
		"a number, whole": {
			nil,
			provider.Result{Outcome: provider.Accepted, Reference: "r1"},
			want{1, false},
		},
		"all were taken": {
			nil,
			provider.Result{Outcome: provider.Accepted, Parts: []provider.Part{taken, other}},
			want{2, false},
		},
		"all were taken under one id": {
			nil,
			provider.Result{Outcome: provider.Accepted, Parts: []provider.Part{taken, taken}},
			want{1, false},
		},
		"all were taken, one without an id": {
			nil,
			provider.Result{Outcome: provider.Accepted, Parts: []provider.Part{taken, nameless}},
			want{2, false},
		},
		"the rest goes to the channel later": {
			nil,
			provider.Result{Outcome: provider.Throttled, Parts: []provider.Part{taken, full}},
			want{1, false},
		},
		"nothing was taken": {nil, provider.Result{Outcome: provider.Refused}, want{0, false}},
		"one segment, which owes one in any case": {
			func(a *Attempt) {
				a.Segments = 1
			}, provider.Result{Outcome: provider.Accepted, Reference: "r1"}, want{0, false},
		},
	} {
		s := settle(ambiguousAttempt(tc.change), &tc.result, noon)
		if got := (want{s.Receipts, s.CutShort}); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestWhatIsKnownOfPartsIsKeptWithTheAmbiguity: a part without an id was accepted, too.
func TestWhatIsKnownOfPartsIsKeptWithTheAmbiguity(t *testing.T) {
	t.Parallel()
	silent := provider.Part{Index: 1}
	for name, tc := range map[string]struct {
		change func(*Attempt)
		parts  []provider.Part
		want   bool
	}{
		"nothing":             {nil, nil, false},
		"nothing of any part": {nil, []provider.Part{{}, silent}, false},
		"a part with an id": {
			nil,
			[]provider.Part{{Outcome: provider.Accepted, Reference: "r1"}, silent},
			true,
		},
		"a part without an id": {nil, []provider.Part{{Outcome: provider.Accepted}, silent}, true},
		"parts of an earlier attempt": {func(a *Attempt) {
			a.Submission.Parts = []int{1}
		}, []provider.Part{silent}, true},
	} {
		s := settle(ambiguousAttempt(tc.change), &provider.Result{Parts: tc.parts}, noon)
		if s.Ambiguity == nil || s.Ambiguity.Partly != tc.want {
			t.Errorf("%s: got %+v", name, s.Ambiguity)
		}
	}
}

func TestAVerdictSaysNoMoreOfPartsThanWasKnown(t *testing.T) {
	t.Parallel()
	o := &ledger.OpenAmbiguity{
		Ambiguity: ledger.Ambiguity{Key: "key"},
		Message:   ledger.Message{Seq: 1, ID: "m", ExpiresAt: noon},
		Attempt:   ledger.Attempt{Number: 1, Channel: "a", Segments: 3, PriceMicros: 90},
		Reference: "r1", Await: 4e9,
	}
	r := Resolve(o, ledger.Taken, "operator", "r2", noon)
	if s := r.Settlement; s.Receipts != 0 || s.CutShort || s.Reference != "r1 r2" ||
		s.Await != o.Await || s.Segments != 3 {
		t.Errorf("got %+v, want Receipts %v, no CutShort, Reference %v, Await %v and Segments %v",
			s, 0, "r1 r2", o.Await, 3)
	}
}

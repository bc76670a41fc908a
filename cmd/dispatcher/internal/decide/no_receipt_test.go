package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
)

const unreceipted = 10 * time.Minute

// TestAnAcceptedMessageGoesOnOnlyWhereItsRouteAsks: the wait begins with an accepting answer of a
// channel whose receipts are expected for longer than the wait. Otherwise the message is settled as
// usual.
func TestAnAcceptedMessageGoesOnOnlyWhereItsRouteAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *fixture, t *Task)
		goesOn bool
	}{
		"it asks": {func(*fixture, *Task) {}, true},
		"it does not": {
			func(w *fixture, _ *Task) { w.routing.Routes[0].NoReceipt = nil }, false,
		},
		"no receipts": {
			func(w *fixture, _ *Task) { w.routing.Channels[0].AwaitReceipts = 0 }, false,
		},
		"not awaited so long": {
			func(w *fixture, _ *Task) { w.routing.Channels[0].AwaitReceipts = unreceipted }, false,
		},
		"its deadline is before": {
			func(_ *fixture, t *Task) { t.Row.ExpiresAt = noon.Add(unreceipted) }, false,
		},
		"sent once more after no answer": {
			func(_ *fixture, t *Task) { t.Row.PossibleDuplicate = true }, false,
		},
		"the rest of a message": {
			func(_ *fixture, t *Task) { t.Row.Pinned, t.Row.PartsLeft = "a", []int{1} }, false,
		},
		"a further attempt": {
			func(_ *fixture, t *Task) { t.was, t.Row.PossibleDuplicate = ledger.Accepted, true }, true,
		},
	} {
		w := withNoReceipt(t)
		task := w.task("a")
		c.change(w, task)
		d := decision{
			Decision: ledger.Decision{Attempt: ledger.Attempt{Number: 1, Channel: "a", Segments: 1}},
			channel:  &w.routing.Channels[0],
		}
		a := newAttempt(task, &d)
		s := Settle(&a, &provider.Result{Outcome: provider.Accepted, Reference: "r"}, noon)
		want := time.Time{}
		if c.goesOn {
			want = noon.Add(unreceipted)
		}
		if s.State != ledger.Accepted || !s.NextAt.Equal(want) || s.Tried != c.goesOn {
			t.Errorf("%s: settled as %s, next at %s, tried %t", name, s.State, s.NextAt, s.Tried)
		}
		a.Await = 0 // the adapter has no receipts
		s = Settle(&a, &provider.Result{Outcome: provider.Accepted, Reference: "r"}, noon)
		if !s.NextAt.IsZero() {
			t.Errorf("%s: goes on at %s, although no receipt can come", name, s.NextAt)
		}
	}
}

// withNoReceipt returns a fixture whose route has no_receipt.
func withNoReceipt(t testing.TB) *fixture {
	t.Helper()
	w := newFixture(t)
	w.routing.Routes[0].NoReceipt = &config.NoReceipt{After: unreceipted}
	for i := range w.routing.Channels {
		w.routing.Channels[i].AwaitReceipts = time.Hour
	}
	return w
}

// takenRow returns a due row that channel c accepted that long ago.
func takenRow(ago time.Duration) ledger.Message {
	row := storedRow(ledger.Accepted, 1)
	row.Tried, row.TakenAt = []string{"c"}, noon.Add(-ago)
	return row
}

// TestAMessageGoesOnWhenItsTimeIsOver: to a channel that was not tried, under the rules of a retry.
// In every other case it stays accepted.
func TestAMessageGoesOnWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	all := func(w *fixture, why string) {
		for i := range w.unready {
			w.unready[i] = why
		}
	}
	for name, c := range map[string]struct {
		change func(w *fixture, row *ledger.Message)
		sent   bool
		again  time.Duration // until it is planned again; 0 for never
	}{
		"its time is over": {func(*fixture, *ledger.Message) {}, true, 0},
		"a receipt came":   {func(_ *fixture, m *ledger.Message) { m.ReceiptCame = true }, false, 0},
		"the route does not ask any more": {
			func(w *fixture, _ *ledger.Message) { w.routing.Routes[0].NoReceipt = nil }, false, 0,
		},
		"the route waits longer by now": {
			func(w *fixture, _ *ledger.Message) {
				w.routing.Routes[0].NoReceipt = &config.NoReceipt{After: 2 * unreceipted}
			}, false, unreceipted - settleTolerance,
		},
		"its deadline has passed": {
			func(_ *fixture, m *ledger.Message) { m.ExpiresAt = noon }, false, 0,
		},
		"every channel had it": {
			func(_ *fixture, m *ledger.Message) { m.Tried = []string{"a", "b", "c"} }, false, 0,
		},
		"the others cost too much": {
			func(w *fixture, _ *ledger.Message) { w.routing.Routes[0].PriceCap = map[string]int64{"GBP": 1} },
			false, 0,
		},
		"the others are not ready": {
			func(w *fixture, _ *ledger.Message) { all(w, "connecting") }, false, lookForRoute,
		},
		"the others are switched off": {
			func(w *fixture, _ *ledger.Message) {
				w.routing.Channels[0].State, w.routing.Channels[1].State = Disabled, Draining
			}, false, lookForRoute,
		},
		"it is paused": {
			func(w *fixture, _ *ledger.Message) { w.routing.Paused = config.Paused{Lanes: []string{"bulk"}} },
			false, lookForRoute,
		},
		"a message that may be in flight twice already": {
			func(_ *fixture, m *ledger.Message) { m.PossibleDuplicate, m.MayBeTaken = true, true }, true, 0,
		},
		"the same at its deadline": {
			func(_ *fixture, m *ledger.Message) {
				m.PossibleDuplicate, m.MayBeTaken, m.ExpiresAt = true, true, noon
			}, false, 0,
		},
	} {
		w, row := withNoReceipt(t), takenRow(unreceipted)
		c.change(w, &row)
		_, d := w.decideDue(row)
		if c.sent {
			if d.State != ledger.Sending || d.Attempt.Reason != ledger.ByNoReceipt ||
				d.Attempt.Channel == "c" || d.Attempt.Number != 2 || d.Attempt.Ranking == nil {
				t.Errorf("%s: got %+v", name, d.Decision)
			}
			continue
		}
		want := ledger.Decision{State: ledger.Accepted, Plan: row.Plan}
		if c.again > 0 {
			want.NextAt = noon.Add(c.again)
		}
		if diff := cmp.Diff(want, d.Decision); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	w := withNoReceipt(t)
	row := takenRow(time.Hour)
	w.seen.Messages, w.seen.Intakes = []ledger.Message{row}, []ledger.Intake{ledger.Due}
	back := noon.Add(-unreceipted / 2) // after an outage of an hour
	after, err := Batch(NewPlan(w.routing, testKeys, noon, nil), w.seen,
		&Snapshot{Unready: w.unready, ReceiptsSince: back})
	if want := back.Add(unreceipted - settleTolerance); err != nil ||
		after.Decisions[0].State != ledger.Accepted || !after.Decisions[0].NextAt.Equal(want) {
		t.Errorf("after an outage: got %+v, %v, want it to wait until %s", after.Decisions[0],
			err, want)
	}
	w = withNoReceipt(t)
	w.seen.Messages = []ledger.Message{takenRow(unreceipted)}
	w.seen.Intakes, w.seen.OptedOut = []ledger.Intake{ledger.Due}, []bool{true}
	p := NewPlan(w.routing, testKeys, noon, nil)
	got, err := Batch(p, w.seen, &Snapshot{Unready: w.unready})
	if err != nil || got.Decisions[0].State != ledger.Accepted || !got.Decisions[0].NextAt.IsZero() {
		t.Errorf("after an opt-out: got %+v, %v", got, err)
	}
	if notices := got.Notices(); len(notices) > 0 {
		t.Errorf("got an event for a message that stays accepted: %s", notices[0].Value)
	}
}

// TestAMessageStaysAcceptedWhateverTheNextChannelAnswers: it goes on at once if that channel
// certainly has nothing of it, and is flagged if it may have.
func TestAMessageStaysAcceptedWhateverTheNextChannelAnswers(t *testing.T) {
	t.Parallel()
	const never = -1
	part := func(outcomes ...provider.Outcome) (all []provider.Part) {
		for i, o := range outcomes {
			all = append(all, provider.Part{Index: i, Outcome: o, Reference: "r"})
		}
		return all
	}
	for name, c := range map[string]struct {
		result provider.Result
		lost   bool
		next   time.Duration
		tried  bool
		flags  bool
		reason string
	}{
		"accepted": {
			provider.Result{Outcome: provider.Accepted, Reference: "r"},
			false, unreceipted, true, true,
			"no_receipt",
		},
		"rejected": {provider.Result{Outcome: provider.Rejected}, false, never, false, false, ""},
		"refused":  {provider.Result{Outcome: provider.Refused}, false, 0, true, false, ""},
		"late": {
			provider.Result{Outcome: provider.Refused, Code: CodeLate}, false, 0, false, false, "",
		},
		"expired": {
			provider.Result{Outcome: provider.Refused, Code: CodeExpired}, false, never, false, false, "",
		},
		"throttled": {
			provider.Result{Outcome: provider.Throttled}, false, 250 * time.Millisecond, false, false, "",
		},
		"no answer": {
			provider.Result{Outcome: provider.Unknown, Code: "timeout"},
			false, never, false, true,
			"ambiguous_final",
		},
		"its process is gone": {provider.Result{}, true, never, false, true, "ambiguous_final"},
		"taken in part": {
			provider.Result{
				Outcome: provider.Refused,
				Parts:   part(provider.Accepted, provider.Refused, provider.Refused),
			}, false, never, false, true, "ambiguous_final",
		},
	} {
		a := testFlight()
		a.further, a.goesOn, a.Await, a.Search.resendOnce = true, unreceipted, time.Hour, true
		a.holdThrottled, a.untilReceipt, a.hold = true, true, time.Minute
		a.Search.steps, a.Submission.Key = []string{"same_key", "lookup", "receipt"}, "key"
		a.Search.Can = provider.Capabilities{SameKeyFor: time.Hour, LookupFor: time.Hour}
		s := Settle(a, &c.result, noon)
		if c.lost {
			s = SettleLost(a, noon)
		}
		want := time.Time{}
		if c.next != never {
			want = noon.Add(c.next)
		}
		if s.State != ledger.Accepted || !s.NextAt.Equal(want) || s.Pinned != "" ||
			s.PartsLeft != nil || s.Ambiguity != nil || s.PossibleDuplicate != c.flags ||
			s.Reason != c.reason || (s.Notice != nil) != (c.reason != "") {
			t.Errorf("%s: got %+v", name, s)
		}
		for _, part := range []string{
			`"state":"accepted"`, `"possible_duplicate":true`, `"reason":"` + c.reason + `"`,
		} {
			if n := s.Notice; n != nil && !strings.Contains(string(n.Value), part) {
				t.Errorf("%s: the event %s", name, n.Value)
			}
		}
		if c.result.Outcome == provider.Throttled && s.Hold != 0 {
			t.Errorf("%s: a slot is held for %s", name, s.Hold)
		}
		if s.Tried != c.tried && c.next != never {
			t.Errorf("%s: tried %t", name, s.Tried)
		}
	}
}

// TestARecordedFurtherAttemptIsKnownByItsReason: the attempt of a lost instance is closed as the
// instance itself would have closed it.
func TestARecordedFurtherAttemptIsKnownByItsReason(t *testing.T) {
	t.Parallel()
	row := storedRow(ledger.Sending, 2)
	for reason, want := range map[ledger.AttemptReason]ledger.State{
		ledger.ByNoReceipt: ledger.Accepted, ledger.ByFallback: ledger.Unknown,
	} {
		a := ledger.Attempt{Number: 2, Channel: "a", Reason: reason, Segments: 1}
		attempt := RecordedAttempt(&row, &a, &Lane{})
		if s := SettleLost(attempt, noon); s.State != want {
			t.Errorf("%s: got %+v, want State %v", reason, s, want)
		}
	}
}

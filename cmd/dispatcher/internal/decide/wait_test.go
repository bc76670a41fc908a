package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// qualityAbove requires a quality above n, until expiresAfter unless that is 0.
func qualityAbove(n float64, expiresAfter time.Duration) selector.Selector {
	return selector.Selector{
		Key: "quality", Operator: selector.GreaterThan,
		Value: selector.NumberValue(n), ExpiresAfter: expiresAfter,
	}
}

func TestMessageWaitsForItsSelectorsToExpire(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		selectors []selector.Selector
		age       time.Duration
		change    func(*fixture, *Task)
		state     ledger.State
		reason    string
		next      time.Duration
		round     bool
	}{
		"the wish still counts": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			10 * time.Second, nil, ledger.Waiting, unfit, 20 * time.Second, false,
		},
		"to the last moment": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			30*time.Second - time.Microsecond, nil, ledger.Waiting, unfit, time.Microsecond, false,
		},
		"it has expired": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			30 * time.Second, nil, ledger.Sending, "", 0, false,
		},
		"one stays for ever": {[]selector.Selector{
			qualityAbove(5, 30*time.Second),
			qualityAbove(6, 0),
		}, 0, nil, ledger.Failed, reasonNoChannel, 0, false},
		"a wish for ever that is met": {[]selector.Selector{
			qualityAbove(5, 30*time.Second),
			qualityAbove(1, 0),
		}, 0, nil, ledger.Waiting, unfit, 30 * time.Second, false},
		"the earliest of several": {[]selector.Selector{
			qualityAbove(5, 30*time.Second),
			qualityAbove(6, 20*time.Second),
		}, 0, nil, ledger.Waiting, unfit, 20 * time.Second, false},
		"one that is met is not waited for": {[]selector.Selector{
			qualityAbove(5, 30*time.Second),
			qualityAbove(1, 10*time.Second),
		}, 0, nil, ledger.Waiting, unfit, 30 * time.Second, false},
		"but never beyond its deadline": {
			[]selector.Selector{qualityAbove(5, 2*time.Hour)},
			0, nil,
			ledger.Waiting, unfit, 59 * time.Minute, false,
		},
		"a fit channel may be ready sooner": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			0,
			func(w *fixture, _ *Task) {
				w.fit(1)
				w.unready[1] = "connecting"
			}, ledger.Waiting, "connecting", readyRetry, false,
		},
		"the wish may expire sooner": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			29500 * time.Millisecond, func(w *fixture, _ *Task) {
				w.fit(1)
				w.unready[1] = "connecting"
			}, ledger.Waiting, unfit, 500 * time.Millisecond, false,
		},
		"it expires before the next round": {
			[]selector.Selector{qualityAbove(5, time.Second)},
			500 * time.Millisecond, func(w *fixture, t *Task) {
				w.fit(1)
				t.tried("b")
			}, ledger.Waiting, unfit, 500 * time.Millisecond, false,
		},
		"the next round comes first": {
			[]selector.Selector{qualityAbove(5, time.Minute)},
			0,
			func(w *fixture, t *Task) {
				w.fit(1)
				t.tried("b")
			}, ledger.Waiting, reasonTried, time.Second, true,
		},
		"it expires before operators are back": {
			[]selector.Selector{qualityAbove(5, 10*time.Second)},
			0,
			func(w *fixture, _ *Task) {
				w.fit(1)
				w.routing.Channels[1].State = Disabled
			}, ledger.Waiting, unfit, 10 * time.Second, false,
		},
		"bypassed selectors hold nobody up": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			0,
			func(w *fixture, _ *Task) {
				w.routing.Routes[0].BypassSelectors = true
			}, ledger.Sending, "", 0, false,
		},
		"over its price cap as well": {
			[]selector.Selector{qualityAbove(5, 30*time.Second)},
			30 * time.Second, func(_ *fixture, t *Task) {
				t.msg.MaxPrice = new(int64(1))
			}, ledger.Failed, reasonNoChannel, 0, false,
		},
	} {
		for _, mode := range []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode} {
			w := inMode(t, mode, LoadRatio)
			for i := range w.routing.Channels {
				w.routing.Channels[i].Labels = map[string]selector.Value{
					"quality": selector.NumberValue(5),
				}
			}
			task := w.fresh()
			if mode == Weighted {
				task = w.task("a")
			}
			task.msg.Selectors, task.Row.ReceivedAt = tc.selectors, noon.Add(-tc.age)
			if tc.change != nil {
				tc.change(w, task)
			}
			d := w.decide(task)
			next := time.Duration(0)
			if !d.NextAt.IsZero() {
				next = d.NextAt.Sub(noon)
			}
			if d.State != tc.state || d.Reason != tc.reason || next != tc.next ||
				d.NewRound != tc.round {
				t.Errorf("%s, %s: %s %s after %s, new round %v", name, mode, d.State, d.Reason,
					next, d.NewRound)
			}
		}
	}
}

// fit makes channel c meet every selector of the test above.
func (w *fixture) fit(c int) {
	w.routing.Channels[c].Labels = map[string]selector.Value{"quality": selector.NumberValue(99)}
}

// tried marks channels as having refused the message in this round.
func (t *Task) tried(channels ...string) { t.Row.Attempts, t.Row.Tried = len(channels), channels }

func TestExpiredSelectorScoresNoMore(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	w.routing.Routes[0].BypassSelectors = true
	w.fit(2)
	task := w.fresh()
	task.msg.Selectors = []selector.Selector{qualityAbove(5, 30*time.Second)}
	if d := w.decide(task); d.Attempt.Channel != "c" {
		t.Errorf("the selector had no effect: %+v", d)
	}
	task.Row.ReceivedAt = noon.Add(-time.Minute)
	d := w.decide(task)
	for _, c := range decoded(t, d).Candidates {
		if *c.Score != 1 {
			t.Errorf("%s scores %v by a selector that has expired", c.Channel, *c.Score)
		}
	}
	if d.Attempt.Channel != "a" {
		t.Errorf("got channel %s", d.Attempt.Channel)
	}
}

func TestWrongTypesNeverMatchAndNeverBreak(t *testing.T) {
	t.Parallel()
	text, number := selector.TextValue("5"), selector.NumberValue(5)
	for name, tc := range map[string]struct {
		label *selector.Value // of channel b; nil for none
		sel   selector.Selector
		fits  bool
	}{
		"a text above a number": {
			&text,
			selector.Selector{
				Key: "k", Operator: selector.GreaterThan,
				Value: selector.NumberValue(1),
			},
			false,
		},
		"a number above a text": {
			&number,
			selector.Selector{
				Key: "k", Operator: selector.GreaterThan,
				Value: selector.TextValue("1"),
			},
			false,
		},
		"a text equal to a number": {
			&text,
			selector.Selector{Key: "k", Operator: selector.Equal, Value: number},
			false,
		},
		"a text not equal to a number": {
			&text,
			selector.Selector{Key: "k", Operator: selector.NotEqual, Value: number},
			true,
		},
		"nothing below a number": {
			nil,
			selector.Selector{Key: "k", Operator: selector.LessThan, Value: number},
			false,
		},
		"nothing is not equal to a text": {
			nil,
			selector.Selector{Key: "k", Operator: selector.NotEqual, Value: text},
			true,
		},
	} {
		w := inMode(t, BestWorkerMode, LoadRatio)
		w.unready[0], w.unready[2] = "connecting", "connecting"
		if tc.label != nil {
			w.routing.Channels[1].Labels = map[string]selector.Value{"k": *tc.label}
		}
		task := w.fresh()
		task.msg.Labels = map[string]selector.Value{"k": selector.TextValue("else")}
		task.msg.Selectors = []selector.Selector{tc.sel}
		for _, bypass := range []bool{false, true} {
			w.routing.Routes[0].BypassSelectors = bypass
			if d := w.decide(task); (d.State == ledger.Sending) != (tc.fits || bypass) {
				t.Errorf("%s, bypass %v: %+v", name, bypass, d)
			}
		}
	}
}

func TestRouteOfOneChannelSendsOrWaits(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode} {
		for _, fallback := range []Ranker{LoadRatio, BestWorker, RoundRobin, Redraw} {
			w := wideFixture(t, 1, mode, fallback)
			task := w.task("c000")
			if d := w.decide(task); d.State != ledger.Sending || d.Attempt.Channel != "c000" ||
				d.Attempt.Reason != ledger.ByFirstChoice {
				t.Errorf("%s/%s: %+v", mode, fallback, d)
			}
			w.seen.Channels[0].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Minute, Max: 1}, Start: noon,
				Granted: 1, Max: 1,
			}}
			if d := w.decide(task); d.State != ledger.Waiting || d.Reason != NoSlot ||
				!d.NextAt.Equal(noon.Add(time.Minute)) {
				t.Errorf("%s/%s, full: %+v", mode, fallback, d)
			}
			task.tried("c000")
			if d := w.decide(task); d.State != ledger.Waiting || d.Reason != reasonTried ||
				!d.NewRound {
				t.Errorf("%s/%s, refused: %+v", mode, fallback, d)
			}
		}
	}
}

func TestAllChannelsUnreadyWaitWithATime(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode} {
		for _, fallback := range []Ranker{LoadRatio, BestWorker, RoundRobin, Redraw} {
			w := inMode(t, mode, fallback)
			w.unready = []string{"connecting", "breaker_open", Throttled}
			d := w.decide(w.task("a"))
			if d.State != ledger.Waiting || !d.NextAt.Equal(noon.Add(readyRetry)) ||
				len(decoded(t, d).Candidates) != 3 {
				t.Errorf("%s/%s: %+v", mode, fallback, d)
			}
		}
	}
}

// withoutC returns the fixture after channel c was removed from the document.
func withoutC(t testing.TB, mode Mode, fallback Ranker) *fixture {
	t.Helper()
	w := inMode(t, mode, fallback)
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight("1")},
		{Name: "b", Weight: selector.MustWeight("1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.routing.Version, w.routing.Channels = 8, w.routing.Channels[:2]
	w.seen.Channels, w.unready = w.seen.Channels[:2], w.unready[:2]
	w.routing.Routes[0].Table, w.routing.Routes[0].Members = table, []int{0, 1}
	return w
}

// storedRow returns a due row of message order-1 whose first choice was c under version 7.
func storedRow(state ledger.State, attempts int) ledger.Message {
	m := testJob(envelope.Message{}).Message
	return ledger.Message{
		Seq: 1, ID: m.ID, Lane: "bulk", Envelope: m.Append(nil), State: state, Attempts: attempts,
		ReceivedAt: noon.Add(-time.Minute), ExpiresAt: noon.Add(time.Hour),
		Plan: ledger.Plan{
			Route: "default", Version: 7, Draw: 90, Size: 100,
			KeyID: newDrawers(testKeys).of("").KeyID(), FirstChoice: "c", Segments: 1,
			Alphabet: "gsm7",
		},
	}
}

func (w *fixture) decideDue(row ledger.Message) (Task, decision) {
	planned := (&planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}).planDue(row)
	return planned, w.assigner().decide(&planned)
}

func TestChannelRemovedWhileMessagesWaitForIt(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode} {
		w := withoutC(t, mode, LoadRatio)
		waited, d := w.decideDue(storedRow(ledger.Waiting, 0))
		if d.State != ledger.Sending || d.Attempt.Reason != ledger.ByFirstChoice ||
			d.Plan.Version != 8 || d.Plan.FirstChoice != d.Attempt.Channel ||
			waited.was != ledger.Waiting {
			t.Errorf("%s: one that had not been tried is not planned again: %+v", mode, d)
		}

		w, row := withoutC(t, mode, LoadRatio), storedRow(ledger.Retry, 1)
		_, d = w.decideDue(row)
		if d.State != ledger.Sending || d.Attempt.Reason != ledger.ByFallback ||
			d.Plan != row.Plan {
			t.Errorf("%s: the stored choice changed, or no channel was found: %+v", mode, d)
		}
		want := []string{"a:", "b:"}
		if mode == Weighted {
			want = []string{"c:removed", "a:", "b:"} // it would have come first
		}
		if got := rankingOf(t, d.Attempt.Ranking); !cmp.Equal(got, want) {
			t.Errorf("%s: ranking %v, want %v", mode, got, want)
		}

		row.Pinned = "c" // throttled there, and held
		if _, d = w.decideDue(row); d.State != ledger.Sending {
			t.Errorf("%s: held for a removed channel: %+v", mode, d)
		}
		row.PartsLeft = []int{1} // c has accepted the other part
		_, d = w.decideDue(row)
		if d.State != ledger.Waiting || d.Reason != Removed ||
			!d.NextAt.Equal(noon.Add(lookForRoute)) {
			t.Errorf("%s: the rest of a message without its channel: %+v", mode, d)
		}
	}
}

func TestMessageHeldForAChannelIsLetGoWhenThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for state, want := range map[ChannelState]string{Enabled: "c", Draining: "a", Disabled: "a"} {
		w := inMode(t, Weighted, LoadRatio)
		w.routing.Channels[2].State = state
		row := storedRow(ledger.Retry, 1)
		row.Pinned = "c"
		planned, d := w.decideDue(row)
		if d.Attempt.Channel != want {
			t.Errorf("state %s: %+v", state, d)
		}
		if a := newAttempt(&planned, &d); a.pinned != "" && a.pinned != a.Channel {
			t.Errorf("state %s: the flight to %s is pinned to %s", state, a.Channel, a.pinned)
		}
		row.PartsLeft = []int{0}
		if _, d := w.decideDue(row); state != Enabled &&
			(d.State != ledger.Waiting || d.Reason == PinnedElsewhere) {
			t.Errorf("state %s: the rest of a message: %+v", state, d)
		}
	}
}

func TestRouteDeletedWhileMessagesReferenceIt(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{0, 1} {
		w := inMode(t, Weighted, LoadRatio)
		other := w.routing.Routes[0]
		other.Name, other.Mode, other.Members = "other", LongestIdle, []int{1}
		w.routing.Routes = []Route{other}
		row := storedRow(ledger.Retry, attempts)
		_, d := w.decideDue(row)
		if d.State != ledger.Sending || d.Attempt.Channel != "b" ||
			(d.Plan.Route == "other") != (attempts == 0) {
			t.Errorf("%d attempts, another route takes it: %+v", attempts, d)
		}

		w.routing.Routes[0].Match.Prefixes = []string{"+49"}
		_, d = w.decideDue(row)
		if d.State != ledger.Waiting || d.Reason != reasonNoRoute ||
			!d.NextAt.Equal(noon.Add(lookForRoute)) || d.Plan != row.Plan {
			t.Errorf("%d attempts, no route takes it: %+v", attempts, d)
		}
		row.ExpiresAt = noon.Add(time.Second)
		if _, d = w.decideDue(row); !d.NextAt.Equal(row.ExpiresAt) {
			t.Errorf("%d attempts, waits beyond its deadline: %+v", attempts, d)
		}
		row.ExpiresAt = noon
		if _, d = w.decideDue(row); d.State != ledger.Failed || d.Reason != reasonExpired {
			t.Errorf("%d attempts, at its deadline: %+v", attempts, d)
		}
	}
}

func TestMessageIsPlannedAgainWhenItsRouteChangesMode(t *testing.T) {
	t.Parallel()
	w := inMode(t, RoundRobinMode, LoadRatio)
	_, d := w.decideDue(storedRow(ledger.Waiting, 0))
	if d.Plan.Size != 0 || d.Plan.Draw != 0 || d.Plan.KeyID != "" || d.Plan.FirstChoice != "a" {
		t.Errorf("from weighted to round robin: %+v", d.Plan)
	}
	row := storedRow(ledger.Waiting, 0)
	row.Plan = ledger.Plan{Route: "default", Version: 6, Segments: 1, Alphabet: "gsm7"}
	_, d = inMode(t, Weighted, LoadRatio).decideDue(row)
	if d.Plan.Size != 100 || d.Plan.KeyID == "" || d.Plan.FirstChoice == "" {
		t.Errorf("from round robin to weighted: %+v", d.Plan)
	}
}

// TestAWaitingMessageIsPlannedAgainWhenItIsUrgent: however late its limit has room, it is planned
// again when it becomes urgent, and from then on repeatedly until its deadline.
func TestAWaitingMessageIsPlannedAgainWhenItIsUrgent(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		48 * time.Hour:                       12 * time.Hour, // when the day ends
		time.Hour:                            59 * time.Minute,
		urgent + time.Millisecond:            time.Millisecond,
		urgent:                               lookUrgently,
		lookUrgently + 300*time.Millisecond:  lookUrgently,
		lookUrgently - 1300*time.Millisecond: lookUrgently - 1300*time.Millisecond,
	} {
		w := newFixture(t).onlyA()
		w.limit("a", admission.Limit{Window: admission.Day, Max: 1}, 1)
		row := storedRow(ledger.Waiting, 0)
		row.ExpiresAt = noon.Add(left)
		if _, d := w.decideDue(row); d.State != ledger.Waiting || d.NextAt.Sub(noon) != want {
			t.Errorf("with %s left: planned again after %s, want %s", left,
				d.NextAt.Sub(noon), want)
		}
	}
}

// TestAWaitForMoneyIsPlannedAgainEachMinute: money that others do not spend may come back at any
// time.
func TestAWaitForMoneyIsPlannedAgainEachMinute(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("a", admission.Limit{
		Window: admission.Day, Unit: admission.Money, Max: 1_000_000,
		Currency: "GBP",
	}, 1_000_000)
	if d := w.decide(w.task("a")); d.Reason != NoBudget || d.NextAt.Sub(noon) != lookForMoney {
		t.Errorf("%s, planned again after %s", d.Reason, d.NextAt.Sub(noon))
	}
}

// TestLateAttemptsEndNoMessage: no provider was asked in them.
func TestLateAttemptsEndNoMessage(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]ledger.State{
		CodeLate:  ledger.Sending,
		"refused": ledger.Failed,
	} {
		row := storedRow(ledger.Retry, 0)
		row.Attempts, row.Reason = maxAttempts, reason
		if _, d := newFixture(t).decideDue(row); d.State != want {
			t.Errorf("after a thousand attempts, the last %s: %+v", reason, d)
		}
	}
}

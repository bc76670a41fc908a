package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// life takes one message through the functions of the pipeline. It keeps the message's row as the
// ledger does, and the versions in the form that an auditor reads.
type life struct {
	rooms    []decide.Room // of the live routing in later claims; nil for no bounds
	now      time.Time
	keys     []selector.Key // of the process; the first one draws
	editions map[int64]Edition
	live     *decide.Routing // the current version in the process
	record   ledger.Record
	flight   *decide.Attempt // of the last attempt
	late     bool            // it was declared lost
	letter   bool            // the message was refused on receipt
}

// newLife is a message that has not been planned yet.
func newLife(routing *decide.Routing) *life {
	l := &life{now: noon, keys: []selector.Key{{1}}, editions: map[int64]Edition{}}
	l.apply(routing, nil)
	return l
}

// apply makes routing the next version. Processes keep lanes that it does not name.
func (l *life) apply(routing *decide.Routing, bounds map[string]bool) {
	if l.live != nil {
		before := l.editions[l.live.Version]
		before.Until = l.now
		l.editions[l.live.Version] = before
		routing.Version = l.live.Version + 1
	}
	l.editions[routing.Version] = Edition{Routing: routing, From: l.now, Bounded: bounds}
	live := *routing
	live.Lanes = maps.Clone(routing.Lanes)
	if l.live != nil {
		live.KeepLanes(l.live)
	}
	live.Prepare()
	l.live = &live
}

// bound sets which channels of the current version have limits.
func (l *life) bound(bounds map[string]bool) {
	e := l.editions[l.live.Version]
	e.Bounded = bounds
	l.editions[l.live.Version] = e
}

// decide plans the message and decides on it, as a claim does now. answer is the answer of a
// scoring function.
func (l *life) decide(
	t fataler, job *decide.Job, seen *ledger.Seen, unready []string, answer *decide.Scores,
) ledger.Decision {
	t.Helper()
	state := &decide.Snapshot{Unready: unready, Rooms: l.rooms}
	row, jobs := &l.record.Message, []decide.Job(nil)
	fresh := row.ReceivedAt.IsZero()
	if fresh {
		jobs = []decide.Job{*job}
	}
	plan := decide.NewPlan(l.live, l.keys, l.now, jobs)
	seen.Now, seen.Version = l.now, l.live.Version
	if fresh {
		*row = plan.Tasks[0].Row
		row.ReceivedAt = l.now
		l.letter = row.State == ledger.Dead || row.State == ledger.Rejected
		plan.Tasks[0].Scores = answer
		seen.Intakes = []ledger.Intake{ledger.Fresh}
	} else {
		selectors := decide.SelectorsAt(row, l.now)
		scores := decide.RowScores{
			Version: l.live.Version, Selectors: len(selectors),
			Scores: answer,
		}
		state.Answers = map[int64]decide.RowScores{row.Seq: scores}
		seen.Intakes = []ledger.Intake{ledger.Due}
	}
	row.TakenAt = time.Time{}
	for i := range l.record.Attempts {
		if a := &l.record.Attempts[i]; row.State == ledger.Accepted && a.Outcome == "accepted" {
			row.TakenAt = a.SettledAt
		}
	}
	seen.Messages = []ledger.Message{*row}
	if l.letter {
		return ledger.Decision{State: ledger.Dead}
	}
	d, err := decide.Batch(plan, seen, state)
	if err != nil || d.Unlocked || len(d.Unasked) > 0 {
		t.Fatalf("nothing was decided: %v, %+v", err, d)
	}
	if len(d.Attempts) > 0 {
		l.flight, l.late = &d.Attempts[0], false
	}
	l.decided(&d.Decisions[0])
	return d.Decisions[0]
}

// decided changes the row as the ledger's statements do.
func (l *life) decided(d *ledger.Decision) {
	row := &l.record.Message
	row.State, row.Reason, row.NextAt, row.WaitsFor, row.WaitingSince = d.State, d.Reason, d.NextAt,
		d.WaitsFor, l.now
	if d.Waits != nil {
		row.Waits = d.Waits
	}
	if d.Plan.Version > 0 {
		row.Plan = d.Plan
	}
	if d.NewRound {
		row.Tried, row.Rounds = nil, row.Rounds+1
	}
	if d.Seen != nil {
		l.record.Seen = slices.Clone(d.Seen)
	}
	switch d.State {
	case ledger.Sending:
		a := d.Attempt
		a.Ranking = slices.Clone(a.Ranking)
		row.Attempts = a.Number
		l.record.Attempts = append(l.record.Attempts,
			ledger.AttemptRecord{Attempt: a, ClaimedAt: l.now})
	case ledger.Failed, ledger.Rejected:
		l.record.FinishedAt = l.now
	default:
	}
}

// answer settles the last attempt.
func (l *life) answer(result provider.Result) {
	s := decide.Settle(l.flight, &result, l.now)
	l.settled(&s)
}

// lose declares the last attempt lost, as another instance does after this one has died.
func (l *life) lose() {
	last := l.record.Attempts[len(l.record.Attempts)-1]
	lane := l.live.Lane(l.record.Message.Lane)
	s := decide.SettleLost(decide.RecordedAttempt(&l.record.Message, &last.Attempt, &lane), l.now)
	l.settled(&s)
	l.late = true
}

// settled changes attempt and row as the ledger's statement does.
func (l *life) settled(s *ledger.Settlement) {
	a := &l.record.Attempts[s.Attempt-1]
	if a.Outcome != "" && (a.Outcome != "unknown" || s.Outcome == provider.Unknown) {
		return
	}
	a.Outcome, a.Code, a.Reference = s.Outcome.String(), s.Code, s.Reference
	a.Segments, a.PriceMicros, a.SettledAt, a.Answers = s.Segments, s.PriceMicros, l.now,
		a.Answers+1
	row := &l.record.Message
	again := row.State == ledger.Retry || row.State == ledger.Waiting
	yesOrNo := s.State == ledger.Accepted || s.State == ledger.Rejected
	if row.Attempts != s.Attempt ||
		(row.State != ledger.Sending && row.State != ledger.Unknown &&
			(!again || a.Answers != 2 || !yesOrNo)) {
		return
	}
	if s.Tried {
		row.Tried = append(row.Tried, a.Channel)
	}
	row.PossibleDuplicate = !again && (row.PossibleDuplicate || s.PossibleDuplicate)
	row.State, row.Reason, row.NextAt = s.State, s.Reason, s.NextAt
	row.Pinned, row.PartsLeft, row.Ticket = s.Pinned, s.PartsLeft, nil
	row.PartsCut = cmp.Or(s.PartsCut, row.PartsCut)
	if s.Hold > 0 {
		ticket := admission.NewTicket(a.ClaimedAt)
		row.Ticket = &ticket
	}
	l.record.FinishedAt = time.Time{}
	if s.State == ledger.Rejected || s.State == ledger.Failed || s.State == ledger.Unknown {
		l.record.FinishedAt = l.now
	}
}

// String describes the record without number and text.
func (l *life) String() string {
	row := &l.record.Message
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, plan %+v, tried %v in %d rounds, pinned %q %v of %q\n", row.State,
		row.Reason, row.Plan, row.Tried, row.Rounds, row.Pinned, row.PartsLeft, row.PartsCut)
	for _, a := range l.record.Attempts {
		fmt.Fprintf(&b, "%d %s %s %d segments at %s: %s %s %d answers, ranking %s\n", a.Number,
			a.Channel, a.Reason, a.Segments, a.ClaimedAt.Format("05.000"), a.Outcome, a.Code,
			a.Answers, a.Ranking)
	}
	fmt.Fprintf(&b, "seen %s\n", l.record.Seen)
	return b.String()
}

// verified verifies the record with all keys and documents, as an auditor does.
func (l *life) verified(t fataler) []Mismatch {
	t.Helper()
	return verified(t, l.editions, &l.record)
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var verifyKeys = []selector.Key{{3}, {2}, {1}}

// verifiedWithout verifies the same record without its payload.
func (l *life) verifiedWithout(t fataler) []Mismatch {
	t.Helper()
	gone := l.record
	gone.Message.Envelope = nil
	return verified(t, l.editions, &gone)
}

func verified(t fataler, editions map[int64]Edition, r *ledger.Record) []Mismatch {
	t.Helper()
	found, err := NewVerifier(verifyKeys, func(version int64) (Edition, error) {
		if e, ok := editions[version]; ok {
			return e, nil
		}
		return Edition{Trouble: "no such version"}, nil
	}).Verify(r)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// idle returns the state of channels with nothing in flight.
func idle(r *decide.Routing) (*ledger.Seen, []string) {
	seen := &ledger.Seen{}
	for i := range r.Channels {
		seen.Channels = append(seen.Channels, ledger.ChannelState{Name: r.Channels[i].Name})
	}
	for i := range r.Routes {
		seen.Cursors = append(seen.Cursors, ledger.Cursor{Route: r.Routes[i].Name, Position: -1})
	}
	return seen, make([]string, len(r.Channels))
}

// jobOf returns a message whose text has this many segments.
func jobOf(id string, segments int) *decide.Job {
	text := "x"
	for len(text) < 153*(segments-1)+1 {
		text += "0123456789"
	}
	m := envelope.Message{ID: id, To: "+447700900123", Text: text}
	return &decide.Job{
		Message: m, Raw: m.Append(nil), Lane: "bulk",
		Produced: noon.Add(-time.Second),
	}
}

// TestLivesAreWhatTheyShouldBe: the records that other tests forge are correct before.
func TestLivesAreWhatTheyShouldBe(t *testing.T) {
	t.Parallel()
	for _, l := range []*life{
		fallbackLife(t), resentLife(t), partLife(t), waitLife(t), turnLife(t),
		releasedLife(t), lateLife(t), recutLife(t), restoredLife(t), furtherLife(t),
		slowFurtherLife(t),
	} {
		if found := l.verified(t); len(found) > 0 {
			t.Errorf("%s: got %+v", l.record.Message.ID, found)
		}
	}
}

// claimed decides on the message while the named channels are excluded for a reason, and fails
// unless it is sent.
func (l *life) claimed(t testing.TB, job *decide.Job, unready map[string]string) {
	t.Helper()
	seen, words := idle(l.live)
	for i := range seen.Channels {
		words[i] = unready[seen.Channels[i].Name]
		seen.Channels[i].LastAssigned = noon.Add(-time.Duration(i+1) * time.Minute)
	}
	if d := l.decide(t, job, seen, words, nil); d.State != ledger.Sending {
		t.Fatalf("decision %+v", d)
	}
}

func (l *life) pass(d time.Duration) { l.now = l.now.Add(d) }

// lifeOf returns a message of the three channels of testRouting. Its first choice is excluded for
// now.
func lifeOf(t testing.TB, change func(*decide.Routing)) (l *life, first string) {
	t.Helper()
	routing := testRouting(t)
	routing.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
		Name: "bulk", TTL: time.Hour,
		Ambiguous: "resend_once",
	}}
	if change != nil {
		change(routing)
	}
	l = newLife(routing)
	l.bound(map[string]bool{})
	drawer := selector.NewDrawer(l.keys[0])
	table := routing.Routes[0].Table
	return l, table.Entry(table.Pick(drawer.Draw("m-1", 1, table.Size()))).Name
}

// fallbackLife: the first choice is not connected, the fallback refuses, the next channel accepts.
func fallbackLife(t testing.TB) *life {
	t.Helper()
	l, first := lifeOf(t, nil)
	l.claimed(t, jobOf("m-1", 1), map[string]string{first: "connecting"})
	l.pass(time.Second)
	l.answer(provider.Result{Outcome: provider.Refused, Code: "dial"})
	l.pass(time.Second)
	l.claimed(t, nil, map[string]string{first: "connecting"})
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// stickyLife: the draw depends on the number, and the first choice accepts.
func stickyLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, func(r *decide.Routing) { r.Routes[0].Sticky = true })
	l.claimed(t, jobOf("m-1", 1), nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// resentLife: no answer from the first choice, and one resend.
func resentLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, nil)
	l.claimed(t, jobOf("m-1", 1), nil)
	l.answer(provider.Result{Outcome: provider.Unknown, Code: "timeout"})
	l.pass(time.Second)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// furtherLife: the first choice accepts, no receipt comes, and the next channel accepts, too.
func furtherLife(t testing.TB) *life {
	t.Helper()
	l := furtherLifeOf(t, nil)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "s"})
	return l
}

// furtherLifeOf: accepted, and no receipt came in time.
func furtherLifeOf(t testing.TB, change func(*decide.Routing)) *life {
	t.Helper()
	l, _ := lifeOf(t, func(r *decide.Routing) {
		if change != nil {
			change(r)
		}
		r.Routes[0].NoReceipt = &config.NoReceipt{After: 10 * time.Minute}
		for i := range r.Channels {
			r.Channels[i].AwaitReceipts, r.Channels[i].State = time.Hour, decide.Enabled
		}
	})
	l.claimed(t, jobOf("m-1", 1), nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	l.pass(10 * time.Minute)
	return l
}

// slowFurtherLife: the channel of the further attempt throttles, on a route that keeps throttled
// messages for their channel. The last channel accepts.
func slowFurtherLife(t testing.TB) *life {
	t.Helper()
	l := furtherLifeOf(t, func(r *decide.Routing) { r.Routes[0].HoldThrottled = true })
	l.claimed(t, nil, nil)
	slow := l.flight.Channel
	l.answer(provider.Result{Outcome: provider.Throttled, Code: "0x58"})
	l.pass(time.Second)
	l.claimed(t, nil, map[string]string{slow: "throttled"})
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "s"})
	return l
}

// partLife: two of three parts are accepted at first, the last one later.
func partLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, nil)
	l.claimed(t, jobOf("m-1", 3), nil)
	l.answer(provider.Result{Outcome: provider.Throttled, Parts: []provider.Part{
		{Index: 0, Outcome: provider.Accepted},
		{Index: 1, Outcome: provider.Accepted},
		{Index: 2, Outcome: provider.Throttled},
	}})
	l.pass(time.Minute)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{
		Outcome: provider.Accepted,
		Parts:   []provider.Part{{Index: 2, Outcome: provider.Accepted}},
	})
	return l
}

// recutLife: one of two parts is accepted, and then the channel splits texts differently.
func recutLife(t testing.TB) *life {
	t.Helper()
	l, first := lifeOf(t, func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].Cut = func(string) string { return "as it was" }
		}
	})
	l.claimed(t, jobOf("m-1", 2), nil)
	l.answer(provider.Result{Outcome: provider.Throttled, Cut: "as it was", Parts: []provider.Part{
		{Index: 0, Outcome: provider.Accepted}, {Index: 1, Outcome: provider.Throttled},
	}})
	l.pass(time.Minute)
	next := *l.editions[7].Routing
	next.Channels = slices.Clone(next.Channels)
	next.Channels[next.Channel(first)].Cut = func(string) string { return "otherwise" }
	l.apply(&next, nil)
	seen, unready := idle(l.live)
	if d := l.decide(t, nil, seen, unready, nil); d.State != ledger.Waiting ||
		d.Reason != decide.CutOtherwise {
		t.Fatalf("decision %+v", d)
	}
	return l
}

// restoredLife: the same, and then operators undo the change.
func restoredLife(t testing.TB) *life {
	t.Helper()
	l := recutLife(t)
	l.pass(30 * time.Second)
	before := *l.editions[7].Routing
	l.apply(&before, nil)
	l.claimed(t, nil, nil)
	if a := l.flight; a.Submission.Cut != "as it was" ||
		!slices.Equal(a.Submission.Parts, []int{1}) {
		t.Fatalf("submits %v of %q", a.Submission.Parts, a.Submission.Cut)
	}
	l.answer(provider.Result{
		Outcome: provider.Accepted,
		Parts:   []provider.Part{{Index: 1, Outcome: provider.Accepted}},
	})
	return l
}

// waitLife: no channel is connected, the weights change, and a new first choice accepts.
func waitLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, nil)
	seen, unready := idle(l.live)
	for i := range unready {
		unready[i] = "connecting"
	}
	if d := l.decide(t, jobOf("m-1", 1), seen, unready, nil); d.State != ledger.Waiting {
		t.Fatalf("decision %+v", d)
	}
	l.pass(time.Minute)
	l.apply(turnedRound(t, l.live), nil)
	l.pass(time.Minute)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// turnedRound returns the routing with the weights of its only route in reverse order.
func turnedRound(t testing.TB, r *decide.Routing) *decide.Routing {
	t.Helper()
	next := *r
	next.Routes = slices.Clone(r.Routes)
	table := r.Routes[0].Table
	entries := make([]selector.Entry, table.Len())
	for i := range entries {
		entries[i] = selector.Entry{
			Name:   table.Entry(i).Name,
			Weight: table.Entry(len(entries) - 1 - i).Weight,
		}
	}
	var err error
	if next.Routes[0].Table, err = selector.NewTable(entries); err != nil {
		t.Fatal(err)
	}
	return &next
}

// turnLife: the first channel in turn is not connected.
func turnLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, func(r *decide.Routing) { r.Routes[0].Mode = decide.RoundRobinMode })
	l.claimed(t, jobOf("m-1", 1), map[string]string{"a": "connecting"})
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// releasedLife: the message was held for a channel that throttled it, and operators disable that
// channel.
func releasedLife(t testing.TB) *life {
	t.Helper()
	l, first := lifeOf(t, func(r *decide.Routing) { r.Routes[0].HoldThrottled = true })
	l.claimed(t, jobOf("m-1", 1), nil)
	l.answer(provider.Result{Outcome: provider.Throttled})
	l.pass(time.Minute)
	next := *l.editions[7].Routing
	next.Channels = slices.Clone(next.Channels)
	next.Channels[next.Channel(first)].State = decide.Disabled
	l.apply(&next, nil)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

// lateLife: the instance was declared lost and then answered that one of two parts was accepted.
// The channel refuses the other part once and is tried again.
func lateLife(t testing.TB) *life {
	t.Helper()
	l, _ := lifeOf(t, func(r *decide.Routing) {
		r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{Name: "bulk", TTL: time.Hour}}
	})
	l.claimed(t, jobOf("m-1", 2), nil)
	l.lose()
	l.answer(provider.Result{
		Outcome: provider.Refused,
		Parts: []provider.Part{
			{Index: 0, Outcome: provider.Accepted},
			{Index: 1, Outcome: provider.Refused},
		},
	})
	l.pass(time.Minute)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Refused, Code: "dial"})
	l.pass(time.Minute)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

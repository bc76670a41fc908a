package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestRooms(t *testing.T) {
	t.Parallel()
	prompt := func(held int) underWay { return underWay{held: held, senders: 500} }
	overdue := func(held int) underWay { return underWay{held: held, overdue: held, senders: 500} }
	type bound struct {
		most int // held and left, kept for the first lane included
		late bool
	}
	for name, tc := range map[string]struct {
		channels []underWay
		want     []bound
	}{
		"nothing under way":         {[]underWay{prompt(0), prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"a single channel":          {[]underWay{overdue(400)}, []bound{{400, false}}},
		"the others are closed":     {[]underWay{overdue(400), {closed: true}}, []bound{{400, false}, {400, false}}},
		"prompt and full":           {[]underWay{prompt(300), prompt(40), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"one stopped answering":     {[]underWay{overdue(300), prompt(40), prompt(0)}, []bound{{133, true}, {75, false}, {75, false}}},
		"the next one did, too":     {[]underWay{overdue(300), overdue(75), prompt(0)}, []bound{{133, true}, {75, true}, {18, false}}},
		"few lost answers":          {[]underWay{{held: 100, overdue: 33, senders: 500}, prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"many lost answers":         {[]underWay{{held: 100, overdue: 34, senders: 500}, prompt(0), prompt(0)}, []bound{{133, true}, {225, false}, {225, false}}},
		"a quarter of few senders":  {[]underWay{{held: 100, overdue: 3, senders: 10}, prompt(0), prompt(0)}, []bound{{10, true}, {225, false}, {225, false}}},
		"slow, and little of it":    {[]underWay{{held: 1, usual: time.Second, senders: 500}, prompt(0), prompt(0)}, []bound{{133, true}, {299, false}, {299, false}}},
		"a queue of two seconds":    {[]underWay{{held: 60, usual: 100 * time.Millisecond, senders: 5}, prompt(0), prompt(0)}, []bound{{105, true}, {255, false}, {255, false}}},
		"few senders and quick":     {[]underWay{{held: 60, usual: firstGuess, senders: 2}, prompt(0), prompt(0)}, []bound{{202, true}, {255, false}, {255, false}}},
		"one sender, very quick":    {[]underWay{{held: 60, senders: 1}, prompt(0), prompt(0)}, []bound{{300, false}, {300, false}, {300, false}}},
		"few senders, alone":        {[]underWay{{held: 60, usual: 100 * time.Millisecond, senders: 5}}, []bound{{400, false}}},
		"one of many is late":       {append(slicesOf(19, prompt(0)), overdue(200)), append(slicesOf(19, bound{150, false}), bound{50, true})},
		"everything, held by three": {[]underWay{overdue(200), overdue(150), overdue(50)}, []bound{{133, true}, {112, true}, {37, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []bound
			for i, r := range rooms(tc.channels, 400) {
				got = append(got, bound{tc.channels[i].held + r.left + r.kept, r.late})
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(bound{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func slicesOf[T any](n int, of T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = of
	}
	return out
}

func TestPartOfARoomIsKeptForTheFirstLane(t *testing.T) {
	t.Parallel()
	each := rooms([]underWay{{held: 380, senders: 500}, {senders: 500}}, 533) // bound: 399, of which 19 are kept
	if full := each[0]; full.left > 0 || full.left+full.kept <= 0 {
		t.Errorf("%+v", full)
	}
	each = rooms([]underWay{{held: 399, senders: 500}, {senders: 500}}, 533)
	if full := each[0]; full.left+full.kept > 0 {
		t.Errorf("%+v", full)
	}
}

// TestAFullChannel: a message waits for a first choice that answers promptly, on every route,
// because to fall back would move traffic away from the agreed shares; it does not wait for a late
// one.
func TestAFullChannel(t *testing.T) {
	t.Parallel()
	spare, none, late := room{left: 1}, room{}, room{left: -5, late: true}
	for name, tc := range map[string]struct {
		rooms   []room
		change  func(*world, *task)
		channel string // empty for a wait
		reason  string
		again   time.Duration
		ranking []string
	}{
		"there is room":              {rooms: []room{spare, spare, spare}, channel: "a"},
		"its first choice is prompt": {rooms: []room{none, spare, spare}, reason: inFlight, again: lookForActive, ranking: []string{"a:in_flight"}},
		"it has waited ten seconds": {
			rooms:   []room{none, spare, spare},
			change:  func(_ *world, tk *task) { tk.row.ReceivedAt = noon.Add(-10 * time.Second) },
			channel: "b", ranking: []string{"a:in_flight", "b:", "c:"},
		},
		"its route waits longer": {
			rooms: []room{none, spare, spare},
			change: func(w *world, tk *task) {
				w.routing.Routes[0].Wait, tk.row.ReceivedAt = time.Minute, noon.Add(-10*time.Second)
			},
			reason: inFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
		"its time has just come": {
			rooms: []room{none, spare, spare},
			change: func(_ *world, tk *task) {
				tk.row.ReceivedAt, tk.msg.SendAt = noon.Add(-time.Hour), noon
			},
			reason: inFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
		"it is about to expire": {
			rooms: []room{none, spare, spare},
			change: func(w *world, tk *task) {
				w.routing.Routes[0].Wait, tk.row.ExpiresAt = time.Minute, noon.Add(lookUrgently)
			},
			channel: "b", ranking: []string{"a:in_flight", "b:", "c:"},
		},
		"its first choice is late":     {rooms: []room{late, spare, spare}, channel: "b", ranking: []string{"a:bulkhead", "b:", "c:"}},
		"a late one is not waited for": {rooms: []room{late, none, late}, reason: inFlight, again: lookForActive, ranking: []string{"a:bulkhead", "b:in_flight", "c:bulkhead"}},
		"all are late":                 {rooms: []room{late, late, late}, reason: bulkhead, again: lookAgain, ranking: []string{"a:bulkhead", "b:bulkhead", "c:bulkhead"}},
		"its route waits for a late one": {
			rooms:  []room{late, spare, spare},
			change: func(w *world, _ *task) { w.routing.Routes[0].Wait = time.Minute },
			reason: bulkhead, again: lookAgain, ranking: []string{"a:bulkhead"},
		},
		"its route has waited long enough": {
			rooms: []room{late, spare, spare},
			change: func(w *world, tk *task) {
				w.routing.Routes[0].Wait, tk.row.ReceivedAt = time.Minute, noon.Add(-time.Hour)
			},
			channel: "b", ranking: []string{"a:bulkhead", "b:", "c:"},
		},
		"another mode takes the next": {
			rooms:   []room{none, late, spare},
			change:  func(w *world, _ *task) { w.routing.Routes[0].Mode = LongestIdle },
			channel: "c", ranking: []string{"a:in_flight", "b:bulkhead", "c:"},
		},
		"it is held for a channel": {
			rooms:  []room{late, spare, spare},
			change: func(_ *world, tk *task) { tk.row.Pinned, tk.row.Attempts = "a", 1 },
			reason: bulkhead, again: lookAgain, ranking: []string{"a:bulkhead", "b:pinned_elsewhere", "c:pinned_elsewhere"},
		},
		"what else is in the way comes first": {
			rooms:   []room{none, spare, spare},
			change:  func(w *world, _ *task) { w.unready[0] = provider.BreakerOpen },
			channel: "b", ranking: []string{"a:breaker_open", "b:", "c:"},
		},
		"the first lane has what is kept for it": {
			rooms:   []room{{kept: 1}, spare, spare},
			channel: "a",
		},
		"another lane has not": {
			rooms:  []room{{kept: 1}, spare, spare},
			change: func(_ *world, tk *task) { tk.lane.Order = 1 },
			reason: inFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tk := w.task("a")
			if tc.change != nil {
				tc.change(w, tk)
			}
			a := newAssigner(w.routing, newDrawers(testKeys), w.seen, w.unready, snapshot{rooms: tc.rooms})
			d := a.decide(tk)
			record := d.Seen
			if tc.channel != "" {
				record = d.Attempt.Ranking
				if d.State != ledger.Sending || d.Attempt.Channel != tc.channel {
					t.Fatalf("%s on %q", d.State, d.Attempt.Channel)
				}
			} else if d.State != ledger.Waiting || d.Reason != tc.reason || !d.NextAt.Equal(noon.Add(tc.again)) || d.WaitsFor == "" {
				t.Fatalf("%s for %q on %q until %s", d.State, d.Reason, d.WaitsFor, d.NextAt)
			}
			if tc.ranking == nil {
				if record != nil {
					t.Errorf("a record %s", record)
				}
				return
			}
			if diff := cmp.Diff(tc.ranking, rankingOf(t, record)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEachTakeCountsAtOnce: a claim gives a channel no more than it has room for.
func TestEachTakeCountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, w.unready, snapshot{rooms: []room{{left: 3}, {left: 100}, {left: 100}}})
	states := map[ledger.State]int{}
	for range 10 {
		states[a.decide(w.numbered("a")).State]++
	}
	if states[ledger.Sending] != 3 || states[ledger.Waiting] != 7 || a.full.messages[0] != 7 {
		t.Errorf("%v, full: %v", states, a.full)
	}
}

// numbered is task with a row of its own.
func (w *world) numbered(first string) *task {
	t := w.task(first)
	w.rows++
	t.row.Seq = w.rows
	return t
}

// TestAMessageIsCountedOnceForAFullChannel, though it looks at a late first choice before the
// ranking and in it.
func TestAMessageIsCountedOnceForAFullChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, w.unready, snapshot{rooms: []room{{late: true}, {late: true}, {left: 100}}})
	for range 10 {
		a.decide(w.numbered("a"))
	}
	if got := a.full.messages; !slices.Equal(got, []int{10, 10, 0}) {
		t.Errorf("%v messages found no room", got)
	}
}

// TestALongQueueForRoomLooksSeldom: 10 000 messages wait for channels that answer nothing. They
// look again as often as 500 would each second, all together. Due rows are claimed every 50 ms.
func TestALongQueueForRoomLooksSeldom(t *testing.T) {
	t.Parallel()
	const queue, batch = 10_000, 237
	w := newWorld(t)
	full := room{late: true, queue: queue}
	next := make([]time.Time, queue)
	for i := range next {
		next[i] = noon.Add(time.Duration(i) * 30 * time.Second / queue)
	}
	looks := 0
	for w.seen.Now = noon; w.seen.Now.Before(noon.Add(time.Minute)); w.seen.Now = w.seen.Now.Add(50 * time.Millisecond) {
		var a *assigner
		claimed := 0
		for i := range next {
			if next[i].After(w.seen.Now) {
				continue
			}
			if claimed%batch == 0 {
				a = newAssigner(w.routing, newDrawers(testKeys), w.seen, w.unready, snapshot{rooms: []room{full, full, full}})
			}
			claimed++
			d := a.decide(w.task("a"))
			if d.Reason != bulkhead || !d.NextAt.After(w.seen.Now) || d.NextAt.After(w.seen.Now.Add(lookForRoom)) {
				t.Fatalf("it waits for %q until %s", d.Reason, d.NextAt)
			}
			next[i] = d.NextAt
		}
		looks += claimed
	}
	if perSecond := looks / 60; perSecond > 500 {
		t.Errorf("%d messages a second look again", perSecond)
	}
}

// TestWhatWaitsForAChannelIsCounted, by all processes together, and only while something waits.
func TestWhatWaitsForAChannelIsCounted(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *Routing) {
		wide(r)
		r.Channels[0].State, r.Channels[1].State = Draining, Draining
	})
	answer := p.silence(t, "c", "")
	p.handle(t, jobsNamed("m", 900))
	waiting := p.counts(t, byState)["waiting"]
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	each, _ := p.rooms(p.routing)
	if each[0].queue != 0 || each[2].queue == 0 || each[2].queue > waiting {
		t.Errorf("%d messages wait, counted were %d and %d", waiting, each[0].queue, each[2].queue)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": 900})
	if err := p.countQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	if each, _ := p.rooms(p.routing); each[2].queue != 0 {
		t.Errorf("%d messages are said to wait", each[2].queue)
	}
}

// TestAClaimIsSizedByItsRoom, so that nothing waits in the database for channels that have room
// again in a moment.
func TestAClaimIsSizedByItsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	late := room{late: true}
	for name, tc := range map[string]struct {
		rooms   []room
		unready []string
		fits    int
		blocked []int
	}{
		"room for all":              {rooms: []room{{left: 2}, {left: 2}, {left: 9}}, fits: 6},
		"the second one of a":       {rooms: []room{{left: 1}, {left: 2}, {left: 9}}, fits: 3, blocked: []int{0}},
		"none at all":               {rooms: []room{{left: 0}, {left: 2}, {left: 9}}, fits: 0, blocked: []int{0}},
		"a is late: it falls back":  {rooms: []room{late, {left: 4}, {left: 9}}, fits: 6},
		"a falls back, b gets full": {rooms: []room{late, {left: 2}, {left: 9}}, fits: 4, blocked: []int{1}},
		"all are late and full":     {rooms: []room{late, late, late}, fits: 0, blocked: []int{0, 1, 2}},
		"a is not ready":            {rooms: []room{{left: 0}, {left: 4}, {left: 9}}, unready: []string{"unbound", "", ""}, fits: 6},
		"nobody is ready":           {rooms: []room{late, late, late}, unready: []string{"unbound", "unbound", "unbound"}, fits: 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Plan{routing: w.routing}
			if tc.unready == nil {
				tc.unready = make([]string, 3)
			}
			for _, first := range []string{"a", "b", "c", "a", "b", "c"} {
				r.tasks = append(r.tasks, *w.task(first))
				r.jobs = append(r.jobs, Job{})
			}
			if n, blocked := r.fits(tc.rooms, tc.unready); n != tc.fits || !slices.Equal(blocked, tc.blocked) {
				t.Errorf("%d fit, blocked by %v", n, blocked)
			}
		})
	}
}

func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct{ slots, jobs, due, wantJobs, wantDue int }{
		"enough for all":      {20, 10, 10, 10, 10},
		"a quarter for older": {8, 10, 10, 6, 2},
		"one slot":            {1, 10, 10, 1, 0},
		"no due rows":         {5, 10, 0, 5, 0},
		"due rows alone":      {5, 0, 10, 0, 5},
		"few jobs":            {8, 1, 10, 1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Plan{routing: w.routing}
			for range tc.jobs {
				r.tasks, r.jobs = append(r.tasks, *w.task("a")), append(r.jobs, Job{})
			}
			if due := r.share(tc.slots, tc.due); due != tc.wantDue || len(r.jobs) != tc.wantJobs || len(r.tasks) != tc.wantJobs {
				t.Errorf("%d jobs and %d due rows", len(r.jobs), due)
			}
		})
	}
}

// TestNoMoreUnderWayThanTheBounds: whatever channels do and in whatever order claims and answers
// come, no channel holds more than its bound when it takes, and channels without delay are never
// bounded below three quarters of the total.
func TestNoMoreUnderWayThanTheBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 600).Draw(t, "total")
		channels := make([]underWay, rapid.IntRange(1, 6).Draw(t, "channels"))
		for i := range channels {
			channels[i].senders = rapid.IntRange(1, 600).Draw(t, "senders")
		}
		held := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := rapid.IntRange(0, len(channels)-1).Draw(t, "channel")
			u := &channels[c]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // answers
				n := rapid.IntRange(0, u.held).Draw(t, "answers")
				u.held, held = u.held-n, held-n
				u.overdue = min(u.overdue, u.held)
			case 1:
				u.overdue = rapid.IntRange(0, min(u.held, u.senders)).Draw(t, "overdue")
			case 2:
				u.usual = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, time.Second}).Draw(t, "usual")
			case 3: // a claim
				each := rooms(channels, total)
				n := min(max(each[c].left+each[c].kept, 0), total-held)
				u.held, held = u.held+n, held+n
				if most := total * mostOfRest / restParts; len(channels) > 1 && n > 0 && u.held > max(most, 1) {
					t.Fatalf("channel %d holds %d of %d", c, u.held, total)
				}
				share := max(total/len(channels), total/leastShare, 1)
				most := max(u.clears(), 1)
				if u.late(share) {
					most = min(share, u.senders)
				}
				if len(channels) > 1 && n > 0 && u.held > most {
					t.Fatalf("late channel %d holds %d of %d", c, u.held, total)
				}
			}
			anyLate := false
			each := rooms(channels, total)
			for i := range each {
				anyLate = anyLate || each[i].late
			}
			for i := range each {
				if most := max(total*mostOfRest/restParts, 1); !anyLate && channels[i].held+each[i].left+each[i].kept < most {
					t.Fatalf("channel %d is bounded to %d of %d though all are prompt", i, channels[i].held+each[i].left+each[i].kept, total)
				}
			}
		}
		if held > total {
			t.Fatalf("%d of %d are under way", held, total)
		}
	})
}

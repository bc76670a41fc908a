package decide

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// TestAFullChannel: a message waits for a first choice that is full but answers promptly, on every
// route, because a fallback would move traffic away from the agreed shares. It does not wait for a
// late one.
func TestAFullChannel(t *testing.T) {
	t.Parallel()
	spare, none, late := Room{ShareLeft: 1}, Room{}, Room{ShareLeft: -5, PassOver: true}
	for name, tc := range map[string]struct {
		rooms   []Room
		change  func(*fixture, *Task)
		channel string // empty for a wait
		reason  string
		again   time.Duration
		ranking []string
	}{
		"there is room": {rooms: []Room{spare, spare, spare}, channel: "a"},
		"its first choice is prompt": {
			rooms: []Room{none, spare, spare}, reason: InFlight,
			again: lookForActive, ranking: []string{"a:in_flight"},
		},
		"it has waited ten seconds": {
			rooms:   []Room{none, spare, spare},
			change:  func(_ *fixture, tk *Task) { tk.Row.ReceivedAt = noon.Add(-10 * time.Second) },
			channel: "b", ranking: []string{"a:in_flight", "b:", "c:"},
		},
		"its route waits longer": {
			rooms: []Room{none, spare, spare},
			change: func(w *fixture, tk *Task) {
				w.routing.Routes[0].Wait, tk.Row.ReceivedAt = time.Minute, noon.Add(-10*time.Second)
			},
			reason: InFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
		"its time has just come": {
			rooms: []Room{none, spare, spare},
			change: func(_ *fixture, tk *Task) {
				tk.Row.ReceivedAt, tk.msg.SendAt = noon.Add(-time.Hour), noon
			},
			reason: InFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
		"it is about to expire": {
			rooms: []Room{none, spare, spare},
			change: func(w *fixture, tk *Task) {
				w.routing.Routes[0].Wait, tk.Row.ExpiresAt = time.Minute, noon.Add(lookUrgently)
			},
			channel: "b", ranking: []string{"a:in_flight", "b:", "c:"},
		},
		"its first choice is late": {
			rooms: []Room{late, spare, spare}, channel: "b",
			ranking: []string{"a:bulkhead", "b:", "c:"},
		},
		"a late one is not waited for": {
			rooms: []Room{late, none, late}, reason: InFlight,
			again: lookForActive, ranking: []string{"a:bulkhead", "b:in_flight", "c:bulkhead"},
		},
		"one has refused it, another is prompt": {
			rooms: []Room{spare, none, late}, reason: InFlight, again: lookForActive,
			change: func(_ *fixture, tk *Task) {
				tk.Row.Attempts, tk.Row.Tried = 1, []string{"a"}
			},
			ranking: []string{"a:already_tried", "b:in_flight", "c:bulkhead"},
		},
		"all are late": {
			rooms: []Room{late, late, late}, reason: Bulkhead,
			again: readyRetry, ranking: []string{"a:bulkhead", "b:bulkhead", "c:bulkhead"},
		},
		"its route waits for a late one": {
			rooms:  []Room{late, spare, spare},
			change: func(w *fixture, _ *Task) { w.routing.Routes[0].Wait = time.Minute },
			reason: Bulkhead, again: readyRetry, ranking: []string{"a:bulkhead"},
		},
		"its route has waited long enough": {
			rooms: []Room{late, spare, spare},
			change: func(w *fixture, tk *Task) {
				w.routing.Routes[0].Wait, tk.Row.ReceivedAt = time.Minute, noon.Add(-time.Hour)
			},
			channel: "b", ranking: []string{"a:bulkhead", "b:", "c:"},
		},
		"another mode takes the next": {
			rooms:   []Room{none, late, spare},
			change:  func(w *fixture, _ *Task) { w.routing.Routes[0].Mode = LongestIdle },
			channel: "c", ranking: []string{"a:in_flight", "b:bulkhead", "c:"},
		},
		"it is held for a channel": {
			rooms:  []Room{late, spare, spare},
			change: func(_ *fixture, tk *Task) { tk.Row.Pinned, tk.Row.Attempts = "a", 1 },
			reason: Bulkhead, again: readyRetry,
			ranking: []string{"a:bulkhead", "b:pinned_elsewhere", "c:pinned_elsewhere"},
		},
		"what else is in the way comes first": {
			rooms:   []Room{none, spare, spare},
			change:  func(w *fixture, _ *Task) { w.unready[0] = provider.BreakerOpen },
			channel: "b", ranking: []string{"a:breaker_open", "b:", "c:"},
		},
		"the first lane has what is kept for it": {
			rooms:   []Room{{FirstLaneLeft: 1}, spare, spare},
			channel: "a",
		},
		"another lane has not": {
			rooms:  []Room{{FirstLaneLeft: 1}, spare, spare},
			change: func(_ *fixture, tk *Task) { tk.Lane.Order = 1 },
			reason: InFlight, again: lookForActive, ranking: []string{"a:in_flight"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			tk := w.task("a")
			if tc.change != nil {
				tc.change(w, tk)
			}
			a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
				Unready: w.unready, Rooms: tc.rooms,
			})
			d := a.decide(tk)
			record := d.Seen
			if tc.channel != "" {
				record = d.Attempt.Ranking
				if d.State != ledger.Sending || d.Attempt.Channel != tc.channel {
					t.Fatalf("%s on %q", d.State, d.Attempt.Channel)
				}
			} else if d.State != ledger.Waiting || d.Reason != tc.reason ||
				!d.NextAt.Equal(noon.Add(tc.again)) || d.WaitsFor == "" {
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

// TestEachTakeCountsAtOnce: a claim gives a channel no more messages than it has room for.
func TestEachTakeCountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
		Unready: w.unready, Rooms: []Room{{ShareLeft: 3}, {ShareLeft: 100}, {ShareLeft: 100}},
	})
	states := map[ledger.State]int{}
	for range 10 {
		states[a.decide(w.numbered("a")).State]++
	}
	if states[ledger.Sending] != 3 || states[ledger.Waiting] != 7 || a.full.messages[0] != 7 {
		t.Errorf("%v, full: %v", states, a.full)
	}
}

// numbered is task with a row of its own.
func (w *fixture) numbered(first string) *Task {
	t := w.task(first)
	w.rows++
	t.Row.Seq = w.rows
	return t
}

// TestAMessageIsCountedOnceForAFullChannel: although a late first choice is checked before the
// ranking and in it.
func TestAMessageIsCountedOnceForAFullChannel(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
		Unready: w.unready, Rooms: []Room{{PassOver: true}, {PassOver: true}, {ShareLeft: 100}},
	})
	for range 10 {
		a.decide(w.numbered("a"))
	}
	if got := a.full.messages; !slices.Equal(got, []int{10, 10, 0}) {
		t.Errorf("got %v messages without room", got)
	}
}

// TestALongQueueForRoomIsPlannedAgainSeldom: 10 000 messages wait for channels that do not answer.
// Together they are planned again as often as 500 messages would each second. Due rows are claimed
// every 50 ms.
func TestALongQueueForRoomIsPlannedAgainSeldom(t *testing.T) {
	t.Parallel()
	const queue, batch = 10_000, 237
	w := newFixture(t)
	full := Room{PassOver: true, Waiting: queue}
	next := make([]time.Time, queue)
	for i := range next {
		next[i] = noon.Add(time.Duration(i) * 30 * time.Second / queue)
	}
	claims := 0
	for after := time.Duration(0); after < time.Minute; after += 50 * time.Millisecond {
		w.seen.Now = noon.Add(after)
		var a *assigner
		claimed := 0
		for i := range next {
			if next[i].After(w.seen.Now) {
				continue
			}
			if claimed%batch == 0 {
				a = newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
					Unready: w.unready, Rooms: []Room{full, full, full},
				})
			}
			claimed++
			d := a.decide(w.task("a"))
			if d.Reason != Bulkhead || !d.NextAt.After(w.seen.Now) ||
				d.NextAt.After(w.seen.Now.Add(lookForRoom)) {
				t.Fatalf("it waits for %q until %s", d.Reason, d.NextAt)
			}
			next[i] = d.NextAt
		}
		claims += claimed
	}
	if perSecond := claims / 60; perSecond > 500 {
		t.Errorf("%d messages a second are planned again", perSecond)
	}
}

// TestAClaimIsSizedByItsRoom: so that nothing waits in the database for channels that will have
// room in a moment.
func TestAClaimIsSizedByItsRoom(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	late, slow := Room{PassOver: true}, Room{PassOver: true, NoWait: true}
	for name, tc := range map[string]struct {
		rooms   []Room
		unready []string
		fits    int
		more    bool
	}{
		"room for all": {rooms: []Room{{ShareLeft: 2}, {ShareLeft: 2}, {ShareLeft: 9}}, fits: 6},
		"the second one of a": {
			rooms: []Room{{ShareLeft: 1}, {ShareLeft: 2}, {ShareLeft: 9}}, fits: 3,
			more: true,
		},
		"none at all": {
			rooms: []Room{{ShareLeft: 0}, {ShareLeft: 2}, {ShareLeft: 9}}, fits: 0,
			more: true,
		},
		"a is late: it falls back": {rooms: []Room{late, {ShareLeft: 4}, {ShareLeft: 9}}, fits: 6},
		"a falls back, b gets full": {
			rooms: []Room{late, {ShareLeft: 2}, {ShareLeft: 9}}, fits: 4,
			more: true,
		},
		"all are late and full": {rooms: []Room{late, late, late}, fits: 0, more: true},
		"a is slow: it waits":   {rooms: []Room{{NoWait: true}, {ShareLeft: 2}, {ShareLeft: 9}}, fits: 6},
		"nobody has room soon":  {rooms: []Room{slow, slow, slow}, fits: 6},
		"one will have room soon": {
			rooms: []Room{{ShareLeft: 1, PassOver: true}, late, slow}, fits: 1,
			more: true,
		},
		"a is not ready": {
			rooms:   []Room{{ShareLeft: 0}, {ShareLeft: 4}, {ShareLeft: 9}},
			unready: []string{"unbound", "", ""}, fits: 6,
		},
		"nobody is ready": {
			rooms:   []Room{late, late, late},
			unready: []string{"unbound", "unbound", "unbound"}, fits: 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Routing: w.routing}
			if tc.unready == nil {
				tc.unready = make([]string, 3)
			}
			for _, first := range []string{"a", "b", "c", "a", "b", "c"} {
				p.Tasks = append(p.Tasks, *w.task(first))
				p.Jobs = append(p.Jobs, Job{})
			}
			if n, all := p.Fits(tc.rooms, tc.unready); n != tc.fits || all == tc.more {
				t.Errorf("%d fit, all %t", n, all)
			}
		})
	}
}

func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for name, tc := range map[string]struct{ slots, jobs, due, wantJobs, wantDue int }{
		"enough for all":      {20, 10, 10, 10, 10},
		"a quarter for older": {8, 10, 10, 6, 2},
		"one slot":            {1, 10, 10, 1, 0},
		"no due rows":         {5, 10, 0, 5, 0},
		"due rows alone":      {5, 0, 10, 0, 5},
		"few jobs":            {8, 1, 10, 1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Routing: w.routing}
			for range tc.jobs {
				p.Tasks, p.Jobs = append(p.Tasks, *w.task("a")), append(p.Jobs, Job{})
			}
			if due := p.Share(tc.slots, tc.due); due != tc.wantDue || len(p.Jobs) != tc.wantJobs ||
				len(p.Tasks) != tc.wantJobs {
				t.Errorf("%d jobs and %d due rows", len(p.Jobs), due)
			}
		})
	}
}

// TestPortionsFollowTheWeights: of all routes that a channel is in. No channel is without a
// portion.
func TestPortionsFollowTheWeights(t *testing.T) {
	t.Parallel()
	weights := func(a, b, c string) *selector.Table {
		table, err := selector.NewTable([]selector.Entry{
			{Name: "a", Weight: selector.MustWeight(a)},
			{Name: "b", Weight: selector.MustWeight(b)},
			{Name: "c", Weight: selector.MustWeight(c)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	for name, tc := range map[string]struct {
		change func(*Routing)
		want   []float64
	}{
		"weights": {func(r *Routing) {
			r.Routes[0].Table = weights("60", "30", "10")
		}, []float64{.6, .3, .1}},
		"a weight of 0": {func(r *Routing) {
			r.Routes[0].Table = weights("40", "0", "60")
		}, []float64{.369, .077, .554}},
		"another mode": {func(r *Routing) {
			r.Routes[0].Mode = LongestIdle
		}, []float64{.333, .333, .333}},
		"in no route": {func(r *Routing) { r.Routes = nil }, []float64{.333, .333, .333}},
		"a takes none": {func(r *Routing) {
			r.Routes[0].Table = weights("60", "20", "20")
			r.Channels[0].State = Draining
		}, []float64{.172, .414, .414}},
		"a switched off": {func(r *Routing) {
			r.Routes[0].Table = weights("60", "20", "20")
			r.Channels[0].State = Disabled
		}, []float64{0, .5, .5}},
		"two routes": {func(r *Routing) {
			r.Routes = append(r.Routes, r.Routes[0])
			r.Routes[0].Table, r.Routes[1].Table = weights("60", "30", "10"),
				weights("20", "30", "50")
		}, []float64{.4, .3, .3}},
	} {
		w := newFixture(t)
		tc.change(w.routing)
		got := portionsOf(w.routing)
		for i := range got {
			if math.Abs(got[i]-tc.want[i]) > .001 {
				t.Errorf("%s: %.3f, want %.3f", name, got, tc.want)
				break
			}
		}
	}
}

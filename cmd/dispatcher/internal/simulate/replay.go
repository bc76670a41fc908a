package simulate

import (
	"time"

	"dispatcher/admission"
)

// Replay returns how the policy divides the slots at the beginning, for the scenario's region, and
// what happens to the events. Each worker decides by the policy, by what it has admitted itself, by
// the counters that it calls, and by the state that was gathered last.
func (s *Scenario) Replay(p admission.Policy, events []Event) Outcome {
	split := p.Split(s.state(s.Region))
	r := newRun(s, p)
	windows := make([]Window, s.Windows)
	for i := range windows {
		w := &windows[i]
		w.Window = i + 1
		r.begin()
		for len(events) > 0 && int(events[0].Window) == i {
			r.arrive(&events[0], w)
			events = events[1:]
		}
		w.close(s.Free(), r.wronged)
		r.end()
	}
	o := Outcome{
		Policy: p.String(), Free: split.Free, RegionSlots: split.Region,
		AnywhereSlots: split.Anywhere, PerWorker: split.PerWorker,
		Traffic: s.total(windows),
	}
	r.bill.fill(&o.Traffic)
	return o
}

// run is one replay of a policy.
type run struct {
	s      *Scenario
	policy admission.Policy
	floor  floor
	bill   bill

	// What has been admitted in this window: by worker, by region from its own slots, from the slots
	// of no region, and by region in total.
	byWorker, byRegion []int64
	anywhere           int64
	grown              []int64
	admitted, before   int64 // in this window, and in the one before it
	// wronged counts messages queued in this window although the limit had slots for them in the order
	// of arrival.
	wronged int64

	history map[string]int64 // of the window before
	initial float64          // utilisation at the beginning, until the first window is over

	state    admission.PolicyInput // as gathered last
	gathered time.Duration         // when that was, from the beginning of the first window
	splits   []*admission.Split    // of that state by region; nil until needed
	tally    admission.Tally
}

func newRun(s *Scenario, p admission.Policy) *run {
	f := s.floor()
	return &run{
		s: s, policy: p, floor: f, bill: bill{s: s, policy: p},
		byWorker: make([]int64, f.first[len(f.regions)]),
		byRegion: make([]int64, len(f.regions)), grown: make([]int64, len(f.regions)),
		history: s.History, initial: s.Utilisation,
		state: *s.state(""), splits: make([]*admission.Split, len(f.regions)),
	}
}

// begin starts a window, in which nothing has been taken yet. Each process sees that by its own
// clock.
func (r *run) begin() {
	clear(r.byWorker)
	clear(r.byRegion)
	clear(r.grown)
	r.anywhere, r.admitted, r.wronged = 0, 0, 0
}

// end sets the history of the next window: what each region admitted, and under Anywhere what was
// left of the limit, at least a tenth of it.
func (r *run) end() {
	r.history = map[string]int64{admission.Anywhere: max(r.s.Limit-r.admitted, r.s.Limit/10, 1)}
	for i, n := range r.grown {
		r.history[r.floor.regions[i]] = n
	}
	r.before, r.initial = r.admitted, 0
}

// gather renews the state when it is due. The used part of the limit is that of this window or of
// the one before, whichever is larger.
func (r *run) gather(now time.Duration) {
	if now-r.gathered < r.s.StateInterval {
		return
	}
	r.gathered = now - now%r.s.StateInterval
	used := float64(r.s.Active+max(r.before, r.admitted)) / float64(max(r.s.Limit, 1))
	r.state.History, r.state.Utilisation = r.history, min(max(used, r.initial), 1)
	clear(r.splits)
}

// arrive decides on one message.
func (r *run) arrive(e *Event, w *Window) {
	r.gather(time.Duration(e.Window)*r.s.Window + e.At)
	split := r.split(e.region)
	r.tally = admission.Tally{
		Worker: r.byWorker[e.Worker], Region: r.byRegion[e.region], Anywhere: r.anywhere,
	}
	r.bill.decision(r.floor.regions[e.region], split, &r.tally)
	w.Arrived++
	pool, ok := r.policy.Pool(split, &r.tally, 1)
	switch {
	case ok:
		r.tally.Add(pool, 1)
		r.byWorker[e.Worker], r.byRegion[e.region] = r.tally.Worker, r.tally.Region
		r.anywhere = r.tally.Anywhere
		r.grown[e.region]++
		r.admitted++
		w.Admitted++
	case w.Arrived <= r.s.Free():
		r.wronged++
	}
}

// split is what the policy gives a region by the state gathered last.
func (r *run) split(region int32) *admission.Split {
	if r.splits[region] == nil {
		r.state.Region = r.floor.regions[region]
		split := r.policy.Split(&r.state)
		r.splits[region] = &split
	}
	return r.splits[region]
}

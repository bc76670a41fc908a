package simulate

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/admission"
)

// bill counts the synchronous calls to counters, and the time they take.
type bill struct {
	s      *Scenario
	policy admission.Policy
	// decisions counts decisions by their number of near and far calls.
	decisions [3][2]int64
}

// decision counts the calls for one message. A policy that divides among processes makes none.
// Policy counter makes one to the region's own counter while that has slots, and afterwards one to
// that of all regions. Policy exact makes one to the latter.
func (b *bill) decision(region string, split *admission.Split, t *admission.Tally) {
	near, far := 0, 0
	switch b.policy.(type) {
	case admission.CounterPolicy:
		if split.Region > 0 {
			near++
		}
		if t.Region >= split.Region && split.Anywhere > 0 {
			far++
		}
	case admission.Exact:
		far++
	}
	if far > 0 && region == b.s.Home {
		near, far = near+far, 0
	}
	b.decisions[near][far]++
}

// fill writes the totals of the calls.
func (b *bill) fill(t *Traffic) {
	if t.Arrived == 0 {
		return
	}
	var calls, slower int64
	var sum time.Duration
	for near := range b.decisions {
		for far, n := range b.decisions[near] {
			calls += int64(near+far) * n
			sum += b.takes(near, far) * time.Duration(n)
		}
	}
	t.CallsPerMessage = float64(calls) / float64(t.Arrived)
	t.LatencyMs = milli(sum) / float64(t.Arrived)
	for _, kind := range b.slowestFirst() {
		slower += b.decisions[kind[0]][kind[1]]
		if slower*20 > t.Arrived { // more than one in twenty takes this long
			t.LatencyP95Ms = milli(b.takes(kind[0], kind[1]))
			return
		}
	}
}

// takes is how long a decision with that many calls takes.
func (b *bill) takes(near, far int) time.Duration {
	return time.Duration(near)*b.s.Near + time.Duration(far)*b.s.Far
}

// slowestFirst are the kinds of decisions (near and far calls), slowest first.
func (b *bill) slowestFirst() [][2]int {
	var kinds [][2]int
	for near := range b.decisions {
		for far := range b.decisions[near] {
			kinds = append(kinds, [2]int{near, far})
		}
	}
	slices.SortFunc(kinds, func(x, y [2]int) int {
		return cmp.Compare(b.takes(y[0], y[1]), b.takes(x[0], x[1]))
	})
	return kinds
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

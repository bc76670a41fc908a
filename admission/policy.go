package admission

import (
	"fmt"
	"math"
	"strconv"
)

// Anywhere is the entry of a history for slots that belong to no region.
const Anywhere = "Anywhere"

// PolicyInput is the input of a policy. It was gathered from all processes a moment ago, so it is a
// little old.
type PolicyInput struct {
	Limit  int64
	Active int64 // what is used of the limit
	// Utilisation is the used part of the limit, from 0 to 1, that policy curve uses.
	Utilisation float64
	// History counts the messages of the last whole minute by region. Its entry Anywhere is what was
	// left unused of the limit.
	History map[string]int64
	Workers map[string]int64 // live processes by region
	Total   int64            // live processes
	Region  string           // of the deciding process
}

// Worker is the process that takes slots.
type Worker struct {
	ID     int64
	Region string
}

// Split is how a policy divides the free units of a limit.
type Split struct {
	Free      int64
	Region    int64 // of Free, for the region
	Anywhere  int64 // of Free, for any region
	PerWorker int64 // what one process of the region may take now
}

// Tally is what has been taken since the split was computed.
type Tally struct {
	Worker   int64 // by this process
	Region   int64 // by the processes of the region, from the region's part
	Anywhere int64 // by all processes, from Anywhere
}

// Pool is the part of a split that a unit is taken from.
type Pool uint8

// Pools.
const (
	ofWorker Pool = iota
	ofRegion
	ofAnywhere
)

// tally is the name of the pool in Counter.Taken.
func (p Pool) tally(w Worker) string {
	switch p {
	case ofRegion:
		return "region:" + w.Region
	case ofAnywhere:
		return "anywhere"
	case ofWorker:
	}
	return "worker:" + strconv.FormatInt(w.ID, 10)
}

// tally is what has been taken of a counter in this window.
func (c *Counter) tally(w Worker) *Tally {
	return &Tally{
		Worker: c.Taken[ofWorker.tally(w)], Region: c.Taken[ofRegion.tally(w)],
		Anywhere: c.Taken[ofAnywhere.tally(w)],
	}
}

// Add counts units as taken from a pool.
func (t *Tally) Add(p Pool, units int64) {
	switch p {
	case ofWorker:
		t.Worker += units
	case ofRegion:
		t.Region += units
	case ofAnywhere:
		t.Anywhere += units
	}
}

// Policy divides the free units of a limit among regions and processes. The first three follow
// three published designs of a waiting room; the fourth is one shared counter.
type Policy interface {
	// String is the word of the routing document.
	String() string
	// Split divides what is free.
	Split(s *PolicyInput) Split
	// Pool is what the next units are taken from; false when the process must queue them.
	Pool(s *Split, t *Tally, units int64) (p Pool, ok bool)
}

// Policies.
type (
	// Even gives each region a part of the free units in proportion to its messages of the last
	// minute. Its processes get equal parts of that, and all processes get equal parts of the rest. It
	// needs no shared counter. Messages may have to wait while other processes have slots left.
	Even struct{}
	// Curve divides by processes x utilisation^Factor, which is less than the number of processes
	// while little of the limit is used. In a spike the parts add up to more than the whole.
	Curve struct{ Factor float64 }
	// CounterPolicy has one counter for each region, and one for slots of no region. The slots of a
	// quiet region stay unused.
	CounterPolicy struct{}
	// Exact is one shared counter; nothing is divided.
	Exact struct{}
)

// ParsePolicy reads the word of a policy; only curve has a factor, above 0.
func ParsePolicy(word string, factor float64) (Policy, error) {
	switch word {
	case "even":
		return Even{}, nil
	case "curve":
		if !(factor > 0) || math.IsInf(factor, 0) {
			return nil, fmt.Errorf("curve_factor %v is not a number above 0", factor)
		}
		return Curve{factor}, nil
	case "counter":
		return CounterPolicy{}, nil
	case "", "exact":
		return Exact{}, nil
	}
	return nil, fmt.Errorf("policy %q is none of even, curve, counter, exact", word)
}

// divide gives the region its part of the free units, rounded down. Anywhere gets the rest, so that
// nothing is given twice.
func divide(s *PolicyInput) Split {
	split := Split{Free: max(s.Limit-s.Active, 0)}
	var all, regions int64
	for _, n := range s.History {
		all += n
	}
	for region, n := range s.History {
		if region == Anywhere || all == 0 {
			continue
		}
		part := portion(split.Free, n, all)
		regions += part
		if region == s.Region {
			split.Region = part
		}
	}
	split.Anywhere = split.Free - regions
	return split
}

// String is "even".
func (Even) String() string { return "even" }

// Split rounds each part down.
func (Even) Split(s *PolicyInput) Split {
	split := divide(s)
	split.PerWorker = split.Region/max(s.Workers[s.Region], 1) + split.Anywhere/max(s.Total, 1)
	return split
}

// Pool depends only on what this process has taken.
func (Even) Pool(s *Split, t *Tally, units int64) (Pool, bool) {
	return ofWorker, t.Worker+units <= s.PerWorker
}

// String is "curve".
func (Curve) String() string { return "curve" }

// Split rounds each part to the nearest, because the divisor is an estimate. A part is never larger
// than what it is a part of.
func (c Curve) Split(s *PolicyInput) Split {
	split := divide(s)
	multiplier := math.Pow(min(max(s.Utilisation, 0), 1), c.Factor)
	split.PerWorker = part(split.Region, s.Workers[s.Region], multiplier) +
		part(split.Anywhere, s.Total, multiplier)
	return split
}

func part(whole, workers int64, multiplier float64) int64 {
	p := math.Round(float64(whole) / (float64(max(workers, 1)) * multiplier))
	if !(p < float64(whole)) { // true also when the multiplier is 0
		return whole
	}
	return int64(p)
}

// Pool depends only on what this process has taken.
func (Curve) Pool(s *Split, t *Tally, units int64) (Pool, bool) {
	return ofWorker, t.Worker+units <= s.PerWorker
}

// String is "counter".
func (CounterPolicy) String() string { return "counter" }

// Split leaves to each process all that its region and Anywhere have.
func (CounterPolicy) Split(s *PolicyInput) Split {
	split := divide(s)
	split.PerWorker = split.Region + split.Anywhere
	return split
}

// Pool takes from the region first. A message is not divided between the two.
func (CounterPolicy) Pool(s *Split, t *Tally, units int64) (Pool, bool) {
	if t.Region+units <= s.Region {
		return ofRegion, true
	}
	return ofAnywhere, t.Anywhere+units <= s.Anywhere
}

// String is "exact".
func (Exact) String() string { return "exact" }

// Split divides nothing.
func (Exact) Split(s *PolicyInput) Split {
	free := max(s.Limit-s.Active, 0)
	return Split{Free: free, Anywhere: free, PerWorker: free}
}

// Pool is shared by all processes.
func (Exact) Pool(s *Split, t *Tally, units int64) (Pool, bool) {
	return ofAnywhere, t.Anywhere+units <= s.Free
}

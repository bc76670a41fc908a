// Package simulate replays the arrivals of a scenario through the policies of package admission. It
// shows what each would have admitted, queued too early and admitted beyond the limit.
//
//	Read       a scenario from its JSON
//	Events     the arrivals, one by one
//	Replay     what one policy does with them
//	Plot       the outcome as an SVG
//
// Everything here is pure. It models regions whose processes know of each other only what was
// gathered a moment ago, as the published designs of the policies do. In the running dispatcher the
// counter of a limit is shared under every policy, so no policy exceeds the limit; see
// docs/admission.md.
package simulate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dispatcher/admission"
)

// Bounds of a scenario, so that a simulation takes well under a second.
const (
	maxLimit    = int64(1) << 40
	maxWindows  = 1000
	maxWorkers  = 1000
	maxArrivals = 1_000_000
	maxFactor   = 1000
)

// Scenario is a limit, the state of its users, and the arrivals.
type Scenario struct {
	Description string
	Limit       int64
	Active      int64 // of the limit, in use throughout
	// Utilisation is the used part of the limit at the beginning, from 0 to 1.
	Utilisation float64
	// History counts the messages of the minute before by region; see admission.PolicyInput.
	History map[string]int64
	Workers map[string]int64 // processes by region
	Total   int64            // processes, at least the sum of Workers
	Region  string           // region whose share is shown
	// CurveFactor is the exponent of policy curve.
	CurveFactor float64

	Window        time.Duration
	Windows       int
	StateInterval time.Duration // between two updates of the state
	Near, Far     time.Duration // what a call to a counter takes: in the own region, and elsewhere
	// Home is the region that has the counters of all regions; empty for none.
	Home     string
	Seed     uint64 // of arrivals at random
	Arrivals []Arrival
}

// Arrival is a number of messages in each of some windows.
type Arrival struct {
	Region string
	Worker int64 // from 1; 0 for all of the region
	Count  int64 // in each window
	First  int   // window, from 1
	Last   int   // window, inclusive
	At     time.Duration
	For    time.Duration // they are spread over it; 0 for all at once
	Random bool          // at random times to random workers, not in even steps
	// Skew gives the k-th worker of a region a weight of 1/k^Skew; 0 makes all equal.
	Skew float64
}

// Policies are the four policies with the scenario's factor.
func (s *Scenario) Policies() []admission.Policy {
	return []admission.Policy{
		admission.Even{},
		admission.Curve{Factor: s.CurveFactor},
		admission.CounterPolicy{},
		admission.Exact{},
	}
}

// Free is how much of the limit new messages may use in each window.
func (s *Scenario) Free() int64 { return max(s.Limit-s.Active, 0) }

// regions are those with processes, history or a share to show, sorted.
func (s *Scenario) regions() []string {
	return sortedRegions(s.Workers, s.History, map[string]int64{s.Region: 0})
}

// named are the regions with a number of processes or messages, sorted.
func (s *Scenario) named() []string { return sortedRegions(s.Workers, s.History) }

func sortedRegions(of ...map[string]int64) []string {
	names := map[string]bool{}
	for _, counts := range of {
		for region := range counts {
			names[region] = true
		}
	}
	delete(names, admission.Anywhere)
	return slices.SortedFunc(maps.Keys(names), cmp.Compare)
}

// state is what a process of a region knows at the beginning.
func (s *Scenario) state(region string) *admission.PolicyInput {
	return &admission.PolicyInput{
		Limit: s.Limit, Active: s.Active, Utilisation: s.Utilisation, History: s.History,
		Workers: s.Workers, Total: s.Total, Region: region,
	}
}

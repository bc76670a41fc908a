package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// Event is one message that arrives.
type Event struct {
	At     time.Duration // from the beginning of its window
	Window int32         // from 0
	Worker int32         // among all, see floor
	region int32         // among Scenario.regions
	kind   int32         // of Scenario.Arrivals
	turn   int32         // how many of its own kind came before it in the window
}

// floor numbers the workers of all regions in one sequence.
type floor struct {
	regions []string
	first   []int32 // number of each region's first worker; at the end, how many there are
}

func (s *Scenario) floor() floor {
	f := floor{regions: s.regions()}
	var n int32
	for _, region := range f.regions {
		f.first = append(f.first, n)
		n += int32(s.Workers[region])
	}
	f.first = append(f.first, n)
	return f
}

// Events are all arrivals, by window and time. The same scenario gives the same events. Of events
// at the same moment the kinds take turns.
func (s *Scenario) Events() []Event {
	f := s.floor()
	random := rand.New(rand.NewPCG(s.Seed, 0))
	var all []Event
	for i := range s.Arrivals {
		a := &s.Arrivals[i]
		region := slices.Index(f.regions, a.Region)
		pick := newPick(a, s.Workers[a.Region])
		for window := a.First; window <= a.Last; window++ {
			for k := range a.Count {
				e := Event{
					Window: int32(window - 1), region: int32(region), kind: int32(i),
					turn: int32(k),
				}
				e.At, e.Worker = pick.next(random, k)
				e.Worker += f.first[region]
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, sooner)
	return all
}

// sooner is a total order, since no two events of the same kind have the same turn.
func sooner(a, b Event) int {
	switch {
	case a.Window != b.Window:
		return int(a.Window - b.Window)
	case a.At != b.At:
		return cmp.Compare(a.At, b.At)
	case a.turn != b.turn:
		return int(a.turn - b.turn)
	}
	return int(a.kind - b.kind)
}

// pick spreads the messages of one kind over time and workers.
type pick struct {
	arrival *Arrival
	shares  []float64 // cumulative weights of the workers
}

func newPick(a *Arrival, workers int64) pick {
	p := pick{arrival: a}
	var sum float64
	for k := range workers {
		sum += math.Pow(float64(k+1), -a.Skew)
		p.shares = append(p.shares, sum)
	}
	return p
}

// next is when the k-th message of a window arrives, and at which worker of its region.
func (p *pick) next(random *rand.Rand, k int64) (time.Duration, int32) {
	a := p.arrival
	along := (float64(k) + 0.5) / float64(a.Count)
	// Any run of multiples of the golden ratio fills the workers' shares evenly.
	which := math.Mod((float64(k)+0.5)*0.6180339887498949, 1)
	if a.Random {
		along, which = random.Float64(), random.Float64()
	}
	at := a.At + time.Duration(along*float64(a.For))
	if a.Worker > 0 {
		return at, int32(a.Worker) - 1
	}
	return at, int32(sort.SearchFloat64s(p.shares, which*p.shares[len(p.shares)-1]))
}

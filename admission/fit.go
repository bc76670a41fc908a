package admission

import "time"

// Need is what one message wants of the limits.
type Need struct {
	Lane     string
	Segments int   // parts that an attempt would submit
	Micros   int64 // its price
}

// Moment is when and where a decision is made.
type Moment struct {
	// Now is the database's clock, read after all counters were locked.
	Now time.Time
	// Earliest is when an attempt could leave at the earliest: Now and the time that it
	// takes to make the decision durable.
	Earliest time.Time
	Zone     *time.Location
	Worker   Worker
}

// Place is when an attempt may leave: not before At, and before Latest. A zero At is at
// once; a zero Latest does not bound.
type Place struct{ At, Latest time.Time }

// Account is a counter on the terms of one channel.
type Account struct {
	*Counter
	// Rate is the part of its pace that is left to the channel, above 0 and at most 1; see Ease.
	Rate float64
	// Policy divides the slots by Split; nil is policy exact, which divides nothing.
	Policy Policy
	Split  Split
}

// Obstacle is a counter that keeps a message out.
type Obstacle struct {
	Counter *Counter
	Why     Why
	// When is the earliest time at which the counter may have room for this message. The zero time
	// means never: the limit is 0, or less than this one message takes.
	When time.Time
}

// Why says what a counter lacks.
type Why uint8

// What a counter lacks.
const (
	Full     Why = iota // the window is used up, or the limit is 0
	Reserved            // what is left is kept for other lanes
	Unshared            // the policy leaves no more to this process in this window
	NotYet              // the next place lies too far ahead
)

// Distances within a window.
const (
	// guard is the part of a window, one in so many, that is left without places, so that
	// an attempt which leaves a little late still falls into its window: 50 ms of a second.
	guard = 20
	// decay is the part of a window, the last one in so many, in which a reserve falls to nothing.
	decay = 10
	// Horizon is how far ahead places are given away. It bounds how long an urgent message
	// stands behind others on a paced channel, and what a crash leaves in doubt.
	Horizon = 500 * time.Millisecond
	// newState is when the policy may leave more to a process: the state is gathered about so often.
	newState = 2 * time.Second
)

// Fit finds a place for a message under all accounts at once, or the first that is in the
// way. The counters must have been rolled to m.Now. A message is taken whole or not at all.
func Fit(m *Moment, accounts []Account, n *Need) (Place, *Obstacle) {
	var p Place
	for i := range accounts {
		a := &accounts[i]
		if why, when, ok := a.room(m, n); !ok {
			return Place{}, &Obstacle{a.Counter, why, when}
		}
		if at := a.at(m, n); at.After(p.At) {
			p.At = at
		}
	}
	for i := range accounts {
		a := &accounts[i]
		latest, when, ok := a.latest(m, later(m.Earliest, p.At))
		if !ok {
			return Place{}, &Obstacle{a.Counter, NotYet, when}
		}
		if p.Latest.IsZero() || latest.Before(p.Latest) {
			p.Latest = latest
		}
	}
	return p, nil
}

// Take counts a message at the place that Fit found for it. It panics when the message
// does not fit, because the caller then skipped Fit and a limit would be broken.
func Take(m *Moment, accounts []Account, n *Need, p Place) {
	for i := range accounts {
		a := &accounts[i]
		cost := a.Cost(n)
		if cost > a.Free() {
			panic("admission: Take without a slot")
		}
		a.advance(m, n, later(m.Earliest, p.At))
		a.Granted += cost
		if a.reserve(n.Lane) > 0 {
			a.count(laneTally(n.Lane), cost)
		}
		if a.Policy != nil {
			pool, _ := a.Policy.Pool(&a.Split, a.tally(m.Worker), cost)
			a.count(pool.tally(m.Worker), cost)
		}
	}
}

// room reports whether the window has room for the message, whatever its place.
func (a *Account) room(m *Moment, n *Need) (why Why, when time.Time, ok bool) {
	cost, end := a.Cost(n), a.End(m.Zone)
	switch {
	case cost > a.Limit.Max, a.Sliding && cost > a.Burst:
		return Full, time.Time{}, false
	case cost > a.Free():
		return Full, end, false
	case cost > a.Free()-a.Kept(n.Lane, m):
		return Reserved, a.released(m), false
	}
	if a.Policy != nil {
		if _, shared := a.Policy.Pool(&a.Split, a.tally(m.Worker), cost); !shared {
			return Unshared, earlier(end, m.Now.Add(newState)), false
		}
	}
	return Full, time.Time{}, true
}

// at is the earliest place of a message under this account alone; zero for any. A paced window
// has no places before its start, in which a clock that stepped back would look for one.
func (a *Account) at(m *Moment, n *Need) time.Time {
	switch {
	case a.Sliding:
		return later(m.Earliest, a.Next.Add(-time.Duration(a.Burst-a.Cost(n))*a.interval()))
	case a.Paced():
		return later(later(m.Earliest, a.Next), a.Start)
	}
	return time.Time{}
}

// latest is when an attempt that may leave at a time must have left. It is false when that
// time is no place in this window, or lies beyond what may be given away now; when tells
// from when on it may be.
func (a *Account) latest(m *Moment, at time.Time) (latest, when time.Time, ok bool) {
	ahead := time.Duration(0)
	if a.Paced() {
		ahead = Horizon
	}
	end := a.End(m.Zone)
	last := end
	if a.Paced() && !a.Sliding {
		last = end.Add(-time.Duration(a.Window) / guard)
	}
	switch {
	case !at.Before(last):
		return time.Time{}, later(end, at.Add(-ahead)), false
	case (a.Sliding || a.Paced()) && at.After(m.Earliest.Add(ahead)):
		return time.Time{}, at.Add(-ahead), false
	case a.Sliding:
		return earlier(end, at.Add(time.Duration(a.Window)/guard)), time.Time{}, true
	}
	return end, time.Time{}, true
}

// advance moves the place of the next unit on from the place that was given away. A calendar
// window moves on from its own place, even if another account has put the message off: the
// places in between are for others, and how many there are in the window is counted anyway.
func (a *Account) advance(m *Moment, n *Need, given time.Time) {
	cost := time.Duration(a.Cost(n))
	switch {
	case a.Sliding:
		a.Next = later(a.Next, given).Add(slowed(cost*a.interval(), a.Rate))
	case a.Paced():
		own := a.at(m, n)
		a.Next = own.Add(cost * a.step(m, own))
	}
}

// interval is the time between two units of a sliding limit.
//
// Burst units at once and then one after each interval make at most Burst + Window/interval - 1
// units in any span of the window's length, hence Max. The guard is added because an attempt may
// leave so much later than at its place.
func (a *Account) interval() time.Duration {
	window := time.Duration(a.Window)
	return (window + window/guard) / time.Duration(a.Limit.Max-a.Burst+1)
}

// step is the time between two units of a paced window: even over the window. When demand
// came late, what is left is spread over what is left, at twice the even pace at most.
func (a *Account) step(m *Moment, at time.Time) time.Duration {
	window := time.Duration(a.Window)
	even := (window - window/guard) / time.Duration(a.Limit.Max)
	if a.Rate < 1 {
		return slowed(even, a.Rate)
	}
	left := a.End(m.Zone).Add(-window / guard).Sub(at)
	return min(max(left/time.Duration(a.Free()), even/2), even)
}

func slowed(d time.Duration, rate float64) time.Duration {
	if rate >= 1 {
		return d
	}
	return time.Duration(float64(d) / rate)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

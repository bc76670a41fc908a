package admission

import (
	"math"
	"time"
)

// Need is what one message takes from the limits.
type Need struct {
	Lane     string
	Segments int       // parts that an attempt would submit
	Micros   int64     // its price
	Expires  time.Time // zero for never; see early
}

// Release is when an attempt may leave, by the database's clock: not before At, and before Latest.
// A zero At means at once; a zero Latest means no bound.
//
// Opens and Closes are the hard bounds of the windows that the attempt was counted in, and lie
// around At and Latest. Opens is set only for limits of a second, whose slots may be taken before
// the second begins. A process keeps away from Opens and Closes by the error of its estimate of the
// database's clock. At and Latest only make the pace even: a small error shifts the whole pace.
//
// Counted is At, or the beginning of the second whose slot it has when it may leave in the second
// before, see secondBefore.
type Release struct{ At, Counted, Latest, Opens, Closes time.Time }

// Account is a counter with the rate and the policy of one channel.
type Account struct {
	*Counter
	// Rate is the part of its pace that the channel may use, above 0 and at most 1; see Ease. It
	// affects only limits of a second.
	Rate float64
	// Policy divides the slots by Split; nil is policy exact, which divides nothing.
	Policy Policy
	Split  Split
}

// Exclusion is a counter that has no room for a message.
type Exclusion struct {
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
	NotYet              // the next release time lies too far ahead
)

// Bounds within a window.
const (
	// guard sets the last part of a window, 1/guard, that has no release times, so that an attempt
	// which leaves a little late is still in its window: 50 ms of a second.
	guard = 20
	// travel is how long an attempt may be on its way: the provider counts it when it arrives.
	travel = 20 * time.Millisecond
	// decay sets the last part of a window, 1/decay, in which a reserve falls to nothing.
	decay = 10
	// Horizon is how far ahead release times are given out, unless the commit latency is longer.
	// It bounds how long an urgent message waits behind others on a paced channel, and how many
	// attempts a crash leaves ambiguous.
	Horizon = 500 * time.Millisecond
	// leastSustained bounds the burst of a sliding limit: at least Max/leastSustained remains as
	// its pace.
	leastSustained = 1024
	// newState is how often the policy's state is gathered. After that time the policy may leave more
	// to a process.
	newState = 2 * time.Second
)

// Fit finds a release time for a message under all accounts at once, or returns the first account
// without room. Moment.Roll must have rolled the counters. A message is taken whole or not at all.
// Fit only changes a counter whose limit has changed since it was last used: it converts it to the
// new pace, see Counter.Pace.
func Fit(m *Moment, accounts []Account, n *Need) (Release, *Exclusion) {
	var r Release
	start := early(m, accounts, n)
	for i := range accounts {
		a := &accounts[i]
		a.repace(m)
		if why, when, ok := a.room(m, n); !ok {
			return Release{}, &Exclusion{a.Counter, why, when}
		}
		at := a.at(m, n, !start.IsZero())
		if when, near := m.near(a, at); !near {
			return Release{}, &Exclusion{a.Counter, NotYet, when}
		}
		r.At = later(r.At, at)
	}
	at := later(m.Earliest, r.At)
	if r.Counted = r.At; at.Before(start) {
		r.Counted = start
	}
	for i := range accounts {
		a, end := &accounts[i], accounts[i].End(m.Zone)
		latest, ok := a.latest(at, end)
		if !ok {
			return Release{}, &Exclusion{a.Counter, NotYet, m.rolls(a.Counter)}
		}
		r.Latest, r.Closes = bounded(r.Latest, latest), bounded(r.Closes, end.Add(-travel))
		if a.Window == Second {
			r.Opens = later(r.Opens, a.opens(at))
		}
	}
	return r, nil
}

// Take counts a message at the release time that Fit found for it. It panics when the message does
// not fit: the caller has skipped Fit, and counting would break a limit.
func Take(m *Moment, accounts []Account, n *Need, r Release) {
	given := later(m.Earliest, r.At)
	for i := range accounts {
		a := &accounts[i]
		cost := a.Cost(n)
		if cost > a.Free() {
			panic("admission: Take without a slot")
		}
		early := a.Window == Second && given.Before(a.Start)
		if a.advance(m, n, given, early); early {
			a.count(secondBefore, cost)
		}
		apart := a.Tallies(m, n)
		a.count(apart.Lane, cost)
		a.count(apart.Pool, cost)
		a.Granted += cost
	}
}

// Tallies are the tallies to which Take adds the message. Money that the message does not spend
// goes back to them as well; otherwise it would use up a share or a reserve.
func (a *Account) Tallies(m *Moment, n *Need) (t Tallies) {
	if a.reserve(n.Lane) > 0 {
		t.Lane = laneTally(n.Lane)
	}
	if a.Policy != nil {
		pool, _ := a.pool(m, a.Cost(n))
		t.Pool = pool.tally(m.Worker)
	}
	return t
}

// room reports whether the window has room for the message, whatever its release time.
func (a *Account) room(m *Moment, n *Need) (why Why, when time.Time, ok bool) {
	cost, free := a.Cost(n), a.Free()
	switch {
	case a.Limit.Max <= 0, cost > a.Limit.Max, a.Sliding && cost > a.burst():
		return Full, time.Time{}, false
	case cost > free && a.Window == Prepaid:
		return Full, time.Time{}, false // until a top-up
	case cost > free:
		return Full, m.rolls(a.Counter), false
	case len(a.Reserve) > 0 && cost > free-a.Kept(n.Lane, m):
		return Reserved, a.released(n.Lane, cost, m), false
	}
	if a.Policy != nil {
		if _, shared := a.pool(m, cost); !shared {
			return Unshared, earlier(m.rolls(a.Counter), m.Now.Add(newState)), false
		}
	}
	return Full, time.Time{}, true
}

// pool is the pool that the policy takes a message from; ok is false when it leaves no more to this
// process.
//
// A process, or with policy counter a region, that has taken nothing in this window may take one
// message even if it costs more than the share. Otherwise a message of several segments would wait
// for ever, and so would every message under a limit lower than the number of processes.
func (a *Account) pool(m *Moment, cost int64) (p Pool, ok bool) {
	t := a.tally(m.Worker)
	if p, ok = a.Policy.Pool(&a.Split, t, cost); ok || t.Worker > 0 || t.Region > 0 {
		return p, ok
	}
	if p == ofAnywhere {
		p = ofRegion
	}
	return p, true
}

// at is the earliest release time of a message under this account alone; zero for at once. Slots of
// a second may be taken before it begins, see Moment.Roll: unless the message may leave early, it
// waits for that.
func (a *Account) at(m *Moment, n *Need, early bool) (at time.Time) {
	switch {
	case a.Sliding:
		tolerance := portion(a.burst()-a.Cost(n), a.span(), a.Sustained())
		at = later(m.Earliest, a.Next.Add(-time.Duration(tolerance)))
	case a.Paced():
		at = later(m.Earliest, a.Next)
	}
	if a.Window == Second && a.Start.After(m.Earliest) && !early {
		at = later(at, a.Start)
	}
	return at
}

// opens is when the first second begins in which an attempt that may leave from at on is counted:
// the window's or the one before.
func (a *Account) opens(at time.Time) time.Time {
	if at.Before(a.Start) {
		return a.Start.Add(-time.Duration(a.Window))
	}
	return a.Start
}

// latest is the time before which an attempt with release time at must have left, in a window with
// that end. ok is false when at is too late for this window.
func (a *Account) latest(at, end time.Time) (latest time.Time, ok bool) {
	leaveBy := end.Add(-travel)
	switch {
	case !at.Before(end.Add(-a.guardTime())), !at.Before(leaveBy):
		return time.Time{}, false
	case a.Sliding:
		return earlier(leaveBy, at.Add(time.Duration(a.Window)/guard-travel)), true
	}
	return leaveBy, true
}

// advance sets Next, the release time of the next unit, after a message was given a release time.
// Another account may have made that time later than this account needs. In a calendar window Next
// then advances from the account's own release time instead: the release times in between are free
// for other messages, and the window counts its units anyway.
func (a *Account) advance(m *Moment, n *Need, given time.Time, early bool) {
	cost := a.Cost(n)
	switch {
	case a.Sliding:
		taken := portionUp(cost, a.span(), a.Sustained())
		a.Next, a.Pace = later(a.Next, given).Add(a.stretched(time.Duration(taken))), a.pace()
	case a.Paced():
		own := a.at(m, n, early)
		a.Next, a.Pace = own.Add(time.Duration(cost)*a.step(m, own)), a.pace()
	}
}

// span is the time in which a sliding limit takes Sustained units after a burst.
//
// A full burst followed by this pace puts fewer than burst + (window + guard)/span x Sustained
// units, so at most Max, into any window + guard of release times. The guard is included because an
// attempt may leave that much after its release time.
func (l *Limit) span() int64 { return int64(l.Window + l.Window/guard) }

// Sustained is how many units a window of the limit takes after a burst; all of Max unless it
// slides.
func (l *Limit) Sustained() int64 {
	if !l.Sliding {
		return l.Max
	}
	return l.Max - l.burst() + 1
}

// burst is Burst, reduced where it would leave almost no pace after a burst.
func (l *Limit) burst() int64 { return min(l.Burst, l.Max-l.Max/leastSustained) }

// step is the time between two units of a paced window: even over the window. When demand came
// late, the units left are spread over the time left, at up to twice the even pace.
func (a *Account) step(m *Moment, at time.Time) time.Duration {
	even := a.even()
	if a.Rate < 1 {
		return a.stretched(even)
	}
	left := a.lastRelease(m.Zone).Sub(at)
	return min(max(left/time.Duration(max(a.Free(), 1)), even/2), even)
}

// stretched is a time between units at the reduced rate.
func (a *Account) stretched(d time.Duration) time.Duration {
	if a.Rate >= 1 || !a.slows() {
		return d
	}
	return max(d, time.Duration(min(float64(d)/a.Rate, math.MaxInt64/2)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// bounded combines a bound, zero for none, with a further one.
func bounded(bound, further time.Time) time.Time {
	if bound.IsZero() {
		return further
	}
	return earlier(bound, further)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

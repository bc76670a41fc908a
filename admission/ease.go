package admission

import (
	"slices"
	"time"
)

// How a rate reacts to throttling: additive increase, multiplicative decrease. It never falls below
// a twentieth: from there, the recovery during easePause undoes one decrease.
const (
	easeStep     = 0.5         // part of the rate that is left after one throttling
	easePause    = time.Second // throttled answers within it count once: they are of one burst
	EaseRecovery = 0.05        // part of the full rate that comes back each second
)

// Ease is how far a channel's rate is reduced since its provider throttled it. All processes share
// it. The zero Ease is the full rate.
type Ease struct {
	Rate  float64   // at Since, above 0 and at most 1
	Since time.Time // of the last decrease; zero for never
	Until time.Time // nothing is submitted before: the provider's Retry-After; zero for none
}

// RateAt is the part of the full rate that may be used at now.
func (e Ease) RateAt(now time.Time) float64 {
	if e.Since.IsZero() {
		return 1
	}
	return min(1, e.Rate+EaseRecovery*max(now.Sub(e.Since), 0).Seconds())
}

// SlowDown is the ease after the provider throttled at now. Nothing is submitted for retryAfter.
// The ledger computes the same in its settlements; tests compare the two.
func (e Ease) SlowDown(now time.Time, retryAfter time.Duration) Ease {
	if e.Since.IsZero() || now.Sub(e.Since) >= easePause {
		e.Rate, e.Since = e.RateAt(now)*easeStep, now
	}
	e.Until = later(e.Until, now.Add(retryAfter))
	return e
}

// RateOf is the part of its rate that a channel with these limits may use at now. It is 1 when no
// limit of the whole channel can be slowed down: then throttling only causes a pause.
func (e Ease) RateOf(limits []Limit, now time.Time) float64 {
	if !slices.ContainsFunc(limits, func(l Limit) bool { return l.Scope == Scope{} && l.slows() }) {
		return 1
	}
	return e.RateAt(now)
}

// slows reports whether an ease slows the limit down. It does so only for limits of a second with
// release times. The ease recovers within seconds, but a delayed release time of a longer window
// would stay delayed for the rest of the window.
func (l *Limit) slows() bool { return l.Paced() || l.Sliding && l.Window == Second }

// Effective is what the limit allows in each window at an ease: limits of a second with release
// times at the reduced rate, others in full, and nothing until the provider's Retry-After is over.
func (l *Limit) Effective(e Ease, now time.Time) int64 {
	switch {
	case now.Before(e.Until):
		return 0
	case l.slows():
		return int64(float64(l.Max) * e.RateAt(now))
	}
	return l.Max
}

package admission

import (
	"slices"
	"time"
)

// How a rate answers to "slow down": additive increase, multiplicative decrease. It never falls
// below a twentieth, because what comes back between two that count is as much as is then lost of
// it.
const (
	easeStep     = 0.5         // what is left of the rate after one
	easePause    = time.Second // several within it count once: they answer the same burst
	EaseRecovery = 0.05        // of the full rate, comes back each second
)

// Ease is how far a channel's rate is below its limits since its provider asked to slow
// down. All processes share it. The zero Ease is the full rate.
type Ease struct {
	Rate  float64   // at Since, above 0 and at most 1
	Since time.Time // of the last decrease; zero for never
	Until time.Time // nothing is submitted before, as the provider asked; zero for none
}

// RateAt is the part of the full rate that may be used at a time.
func (e Ease) RateAt(now time.Time) float64 {
	if e.Since.IsZero() {
		return 1
	}
	return min(1, e.Rate+EaseRecovery*max(now.Sub(e.Since), 0).Seconds())
}

// SlowDown is the ease after the provider asked at a time to slow down, and for how long to
// send nothing at all.
func (e Ease) SlowDown(now time.Time, retryAfter time.Duration) Ease {
	if e.Since.IsZero() || now.Sub(e.Since) >= easePause {
		e.Rate, e.Since = e.RateAt(now)*easeStep, now
	}
	e.Until = later(e.Until, now.Add(retryAfter))
	return e
}

// RateOf is the part of its rate that a channel with these limits has left at a time. It is 1 when
// none of the whole channel's own can be slowed down: then "slow down" is answered by a pause
// alone.
func (e Ease) RateOf(limits []Limit, now time.Time) float64 {
	if !slices.ContainsFunc(limits, func(l Limit) bool { return l.Scope == Scope{} && l.slows() }) {
		return 1
	}
	return e.RateAt(now)
}

// slows reports whether an ease slows the limit down. That is so only for limits of a second with
// release times: the ease recovers within seconds, but a release time that was put off would stay
// so for as long as a longer window lasts.
func (l *Limit) slows() bool { return l.Paced() || l.Sliding && l.Window == Second }

// Effective is what the limit allows in each window at an ease: one of a second with release
// times at the rate that is left, any other whole, and nothing at all while the provider wants
// nothing.
func (l *Limit) Effective(e Ease, now time.Time) int64 {
	switch {
	case now.Before(e.Until):
		return 0
	case l.slows():
		return int64(float64(l.Max) * e.RateAt(now))
	}
	return l.Max
}

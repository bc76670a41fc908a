package admission

import "time"

// How a rate answers to "slow down": additive increase, multiplicative decrease.
const (
	easeStep     = 0.5         // what is left of the rate after one
	easeFloor    = 1.0 / 32    // the least that is left
	easePause    = time.Second // several within it count once: they answer the same burst
	EaseRecovery = 0.05        // of the full rate, comes back each second
)

// Ease is how far a channel's rate is below its limits since its provider asked to slow
// down. All processes share it. The zero Ease is the full rate.
type Ease struct {
	Rate  float64   // at Since, above 0 and at most 1
	Since time.Time // of the last decrease; zero for never
	Until time.Time // nothing is submitted before, by the provider's wish; zero for none
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
		e.Rate, e.Since = max(e.RateAt(now)*easeStep, easeFloor), now
	}
	e.Until = later(e.Until, now.Add(retryAfter))
	return e
}

// Effective is what the limit allows in each window at an ease: one of a second with places at the rate that is
// left, any other whole, and nothing at all while the provider wants nothing.
func (l *Limit) Effective(e Ease, now time.Time) int64 {
	switch {
	case now.Before(e.Until):
		return 0
	case l.Paced(), l.Sliding && l.Window == Second:
		return int64(float64(l.Max) * e.RateAt(now))
	}
	return l.Max
}

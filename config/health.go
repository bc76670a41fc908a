package config

import (
	"time"
)

// Health lowers the effective weight of a channel that fails. Percentages are of the
// configured weight.
type Health struct {
	Errors   int64         // so many refused or unanswered attempts...
	Window   time.Duration // ... within this time move the weight down
	Step     int           // percent that one move takes or gives back
	Floor    int           // percent that is always left
	Interval time.Duration // at most one move of the route in this time
	Quiet    time.Duration // without so many errors for this long the weight moves back up
}

// Defaults of health weighting.
const (
	defaultHealthWindow   = time.Minute
	defaultHealthStep     = 25
	defaultHealthFloor    = 10
	defaultHealthInterval = time.Minute
	defaultHealthQuiet    = 5 * time.Minute
)

// readHealth reads the health weighting of a route; nil when it has none.
func readHealth(f fields, r Route) *Health {
	v, ok := f.get("health")
	if !ok {
		return nil
	}
	checkHealthRoute(v, r)
	h := &Health{
		Window: defaultHealthWindow, Step: defaultHealthStep, Floor: defaultHealthFloor,
		Interval: defaultHealthInterval, Quiet: defaultHealthQuiet,
	}
	keys, ok := v.fields(healthPart)
	if !ok {
		return h
	}
	if n, ok := keys.need("errors", "errors: 20"); ok {
		h.Errors, _ = n.integer(1, 1_000_000)
	}
	if d, ok := keys.get("window"); ok {
		h.Window, _ = d.duration(time.Second, time.Hour)
	}
	if n, ok := keys.get("step"); ok {
		h.Step = percent(n)
	}
	if n, ok := keys.get("floor"); ok {
		h.Floor = percent(n)
	}
	if d, ok := keys.get("interval"); ok {
		h.Interval, _ = d.duration(time.Second, day)
	}
	h.Quiet = readQuiet(keys, h.Window)
	return h
}

// checkHealthRoute reports a route on which a lower weight could never change anything. A
// second channel may have weight 0 at times: an operator who takes one out in a hurry must
// not be stopped by this key.
func checkHealthRoute(v value, r Route) {
	switch {
	case r.Mode == "":
	case r.Mode != Weighted:
		v.fail("lowers weights, by which mode %s does not choose; use mode weighted or remove "+
			"health", r.Mode)
	case len(r.Channels) == 1:
		v.fail("lowers the weight of a channel in favour of the others, but there is only one; " +
			"add a channel or remove health")
	}
}

// percent reads a share of the configured weight that is neither nothing nor all of it.
func percent(v value) int {
	n, _ := v.integer(1, 99)
	return int(n)
}

// readQuiet reads the quiet time. It is no shorter than the window: the errors that
// lowered a weight must have left the window before it rises, or it would swing.
func readQuiet(keys fields, window time.Duration) time.Duration {
	v, ok := keys.get("quiet")
	if !ok {
		return max(defaultHealthQuiet, window)
	}
	quiet, ok := v.duration(time.Second, day)
	if ok && quiet < window {
		v.fail("%s is shorter than the window of %s, whose errors would still count; set quiet "+
			"to %s or more", quiet, window, window)
	}
	return quiet
}

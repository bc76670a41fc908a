package config

import (
	"time"
)

// Health lowers the effective weight of a channel that fails. Percentages are of the configured
// weight.
type Health struct {
	Errors   int64         // this many refused or unanswered attempts...
	Window   time.Duration // ... within this time move the weight down
	Step     int           // percent that one move takes or gives back
	Floor    int           // percent that always remains
	Interval time.Duration // at most one move of the route in this time
	Quiet    time.Duration // without that many errors for this long, the weight moves back up
	// Receipts also lowers the weight of a channel that delivers too little in time; nil does not.
	Receipts *HealthReceipts
}

// HealthReceipts says how many of the accepted messages must be delivered in time.
type HealthReceipts struct {
	Delivered int           // percent; a channel with fewer, by more than chance, is bad
	Within    time.Duration // after the provider's answer
	Window    time.Duration // of the messages that are counted
	Least     int64         // with fewer messages nothing is concluded
}

// Defaults of health weighting.
const (
	defaultHealthWindow   = time.Minute
	defaultHealthStep     = 25
	defaultHealthFloor    = 10
	defaultHealthInterval = time.Minute
	defaultHealthQuiet    = 5 * time.Minute

	defaultReceiptsIn     = 2 * time.Minute
	defaultReceiptsWindow = 10 * time.Minute
	defaultReceiptsLeast  = 100
	// minSample is how many messages are needed to distinguish a fault from chance.
	minSample = 20
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
		h.Errors = n.integer(1, 1_000_000)
	}
	if d, ok := keys.get("window"); ok {
		h.Window, _ = d.duration(time.Second, time.Hour)
	}
	if n, ok := keys.get("step"); ok {
		h.Step = int(n.integer(1, 99))
	}
	if n, ok := keys.get("floor"); ok {
		h.Floor = int(n.integer(1, 99))
	}
	if d, ok := keys.get("interval"); ok {
		h.Interval, _ = d.duration(time.Second, day)
	}
	longest := h.Window
	if h.Receipts = readHealthReceipts(keys); h.Receipts != nil {
		longest = max(longest, h.Receipts.Window)
	}
	h.Quiet = readQuiet(keys, longest)
	return h
}

// readHealthReceipts reads how receipts affect the weight; nil when they do not.
func readHealthReceipts(health fields) *HealthReceipts {
	v, ok := health.get("receipts")
	if !ok {
		return nil
	}
	r := &HealthReceipts{
		Within: defaultReceiptsIn, Window: defaultReceiptsWindow, Least: defaultReceiptsLeast,
	}
	keys, ok := v.fields(healthReceiptsPart)
	if !ok {
		return r
	}
	if n, ok := keys.need("delivered", "delivered: 80"); ok {
		r.Delivered = int(n.integer(1, 99))
	}
	if d, ok := keys.get("within"); ok {
		r.Within, _ = d.duration(time.Second, time.Hour)
	}
	if d, ok := keys.get("window"); ok {
		r.Window, _ = d.duration(time.Second, time.Hour)
	}
	if n, ok := keys.get("least"); ok {
		r.Least = n.integer(minSample, 1_000_000)
	}
	return r
}

// checkHealthRoute reports a route on which a lower weight could never change anything. A weight of
// 0 for the second channel is allowed, so that this key does not stop an operator who takes a
// channel out in a hurry.
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

// readQuiet reads the quiet time. It is at least the window: the errors that lowered a weight must
// have left the window before the weight rises, or it would oscillate.
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

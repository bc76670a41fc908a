// Package admission decides whether one more message may go to a channel now:
// rate windows with shared counters, and a bound on what is under way at once.
//
// Everything here is pure: the state comes in, the database's clock comes in as
// now, and the changed state goes out. Reading and writing that state under a lock
// is the work of package ledger; pacing inside a window is the channel worker's.
package admission

import (
	"fmt"
	"time"
)

// Unit is what a limit counts.
type Unit uint8

// Units of a limit.
const (
	Messages Unit = iota // each attempt counts one
	Segments             // each attempt counts its billed parts
)

// String returns the word used in the routing document and in audit.limit_windows.
func (u Unit) String() string {
	if u == Segments {
		return "segments"
	}
	return "messages"
}

// ParseUnit reads a unit; the empty string means messages.
func ParseUnit(s string) (Unit, error) {
	switch s {
	case "", "messages":
		return Messages, nil
	case "segments":
		return Segments, nil
	}
	return Messages, fmt.Errorf("unit %q is neither messages nor segments", s)
}

// Window is the length of a calendar window.
type Window time.Duration

// The four calendar windows. A Day begins at local midnight of the business time
// zone, so it lasts 23 or 25 hours when clocks change.
const (
	Second = Window(time.Second)
	Minute = Window(time.Minute)
	Hour   = Window(time.Hour)
	Day    = Window(24 * time.Hour)
)

// ParseWindow reads 1s, 1m, 1h or 1d.
func ParseWindow(s string) (Window, error) {
	switch s {
	case "1s":
		return Second, nil
	case "1m":
		return Minute, nil
	case "1h":
		return Hour, nil
	case "1d", "24h":
		return Day, nil
	}
	return 0, fmt.Errorf("window %q is none of 1s, 1m, 1h, 1d", s)
}

// Seconds is the nominal length, 86400 for a Day.
func (w Window) Seconds() int { return int(time.Duration(w) / time.Second) }

// String returns the form that ParseWindow reads.
func (w Window) String() string {
	switch w {
	case Second:
		return "1s"
	case Minute:
		return "1m"
	case Hour:
		return "1h"
	case Day:
		return "1d"
	}
	return time.Duration(w).String()
}

// Start is when the window that contains now began. Seconds, minutes and hours are
// cut on the UTC clock; days in zone.
func (w Window) Start(now time.Time, zone *time.Location) time.Time {
	if w != Day {
		return now.UTC().Truncate(time.Duration(w))
	}
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone).UTC()
}

// End is when the window that contains now ends and the next one starts.
func (w Window) End(now time.Time, zone *time.Location) time.Time {
	if w != Day {
		return w.Start(now, zone).Add(time.Duration(w))
	}
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone).UTC()
}

// Limit is a bound that the provider or the contract sets: at most Max units in
// each Window.
type Limit struct {
	Window Window
	Max    int64
	Unit   Unit
}

package admission

import (
	"fmt"
	"math"
	"time"
)

// Window is the length of a calendar window.
type Window time.Duration

// The four calendar windows, and the one that has no end. A Day begins at local midnight of the
// business time zone, so it lasts 23 or 25 hours when clocks change.
const (
	Second = Window(time.Second)
	Minute = Window(time.Minute)
	Hour   = Window(time.Hour)
	Day    = Window(24 * time.Hour)
	// Prepaid is one window for all time, whose limit grants what was topped up. Its nominal length is
	// the largest number of seconds that a row of the ledger can hold.
	Prepaid = Window(math.MaxInt32 * time.Second)
)

// The bounds of the prepaid window: before and after any time of a decision, and less than the
// longest time.Duration apart.
var (
	prepaidStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	prepaidEnd   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// ParseWindow reads 1s, 1m, 1h, 1d or prepaid.
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
	case "prepaid":
		return Prepaid, nil
	}
	return 0, fmt.Errorf("window %q is none of 1s, 1m, 1h, 1d, prepaid", s)
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
	case Prepaid:
		return "prepaid"
	}
	return time.Duration(w).String()
}

// Start is when the window that contains now began. Seconds, minutes and hours are
// cut on the UTC clock; days in zone.
func (w Window) Start(now time.Time, zone *time.Location) time.Time {
	switch w {
	case Day:
	case Prepaid:
		return prepaidStart
	default:
		return now.UTC().Truncate(time.Duration(w))
	}
	y, m, d := now.In(zone).Date()
	return startOfDay(y, m, d, zone)
}

// End is when the window that contains now ends and the next one starts.
func (w Window) End(now time.Time, zone *time.Location) time.Time {
	switch w {
	case Day:
	case Prepaid:
		return prepaidEnd
	default:
		return w.Start(now, zone).Add(time.Duration(w))
	}
	y, m, d := now.In(zone).Date()
	return startOfDay(y, m, d+1, zone)
}

// startOfDay is the first instant of a date. Where clocks go forward at midnight, a date has no
// midnight; where they go back over it, it has two. time.Date alone may then return an hour of the
// day before, or the second midnight.
func startOfDay(y int, month time.Month, d int, zone *time.Location) time.Time {
	noon := time.Date(y, month, d, 12, 0, 0, 0, zone)
	_, before := noon.AddDate(0, 0, -1).Zone()
	_, today := noon.Zone()
	midnight := time.Date(y, month, d, 0, 0, 0, 0, time.UTC)
	// the earlier instant first
	for _, offset := range [...]int{max(before, today), min(before, today)} {
		at := midnight.Add(-time.Duration(offset) * time.Second)
		if local := at.In(zone); before == today || local.Day() == midnight.Day() && local.Hour() == 0 &&
			local.Minute() == 0 {
			return at
		}
	}
	start, _ := noon.ZoneBounds()
	return start.UTC()
}

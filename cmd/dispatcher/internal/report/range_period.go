package report

import (
	"fmt"
	"time"

	"dispatcher/ledger"
)

// Unit is the length of the periods of a report.
type Unit string

// Units of a report.
const (
	Day   Unit = "day"
	Week  Unit = "week" // of ISO 8601: from Monday to Sunday
	Month Unit = "month"
)

// Period names the period of a day: 2026-11-21, 2026-W47 or 2026-11.
func (u Unit) Period(day time.Time) string {
	switch u {
	case Week:
		year, week := day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case Month:
		return day.Format("2006-01")
	case Day:
	}
	return day.Format(time.DateOnly)
}

// First is the first day of the period around a day.
func (u Unit) First(day time.Time) time.Time {
	switch u {
	case Week:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case Month:
		return day.AddDate(0, 0, 1-day.Day())
	case Day:
	}
	return day
}

// last is the last day of the period around a day.
func (u Unit) last(day time.Time) time.Time {
	switch u {
	case Week:
		return u.First(day).AddDate(0, 0, 6)
	case Month:
		return u.First(day).AddDate(0, 1, -1)
	case Day:
	}
	return day
}

// ClosedPeriod is a period whose days are all closed.
type ClosedPeriod struct {
	Period      string
	Dates       []string
	Corrections int // how often figures of its days were corrected
	// Unsealed means that the newest figures of a day will be in the log in some minutes.
	Unsealed bool
}

// ClosedPeriods returns the closed periods of a list of closed days. The first period may begin in
// the middle of a unit: with the first day that was ever closed.
func ClosedPeriods(unit Unit, days []ledger.ClosedDay) (out []ClosedPeriod, err error) {
	var whole bool
	var next time.Time // the day that must follow in the period
	for i, d := range days {
		day, err := time.Parse(time.DateOnly, d.Date)
		if err != nil {
			return nil, fmt.Errorf("closed day %q: %w", d.Date, err)
		}
		if name := unit.Period(day); len(out) == 0 || out[len(out)-1].Period != name {
			if !whole && len(out) > 0 {
				out = out[:len(out)-1]
			}
			out = append(out, ClosedPeriod{Period: name})
			if next = unit.First(day); i == 0 {
				next = day
			}
		}
		p := &out[len(out)-1]
		p.Dates = append(p.Dates, d.Date)
		p.Corrections += d.Corrections
		p.Unsealed = p.Unsealed || d.Unsealed
		whole = day.Equal(next) && day.Equal(unit.last(day))
		if day.Equal(next) {
			next = day.AddDate(0, 0, 1)
		}
	}
	if !whole && len(out) > 0 {
		out = out[:len(out)-1]
	}
	return out, nil
}

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// ParseDate is noon of a date such as 2026-11-21: midnight does not exist where clocks go forward
// at midnight.
func ParseDate(date string, zone *time.Location) (time.Time, error) {
	noon, err := time.ParseInLocation(time.DateOnly+" 15", date+" 12", zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a day: write for example 2026-11-21", date)
	}
	return noon, nil
}

// BusinessDay is noon of a date, and the zone in which that day is cut: the one that was in force
// when it ended. That is the zone of the newest document that was applied before the day was over
// by that document's own clock. A document that names another zone leaves the days before it as
// they were reported. Days before the first document go by that. It returns ledger.ErrNoRouting
// while there is none.
func BusinessDay(
	ctx context.Context, routing *ledger.Routing, date string,
) (time.Time, *time.Location, error) {
	v, err := routing.Current(ctx)
	for err == nil {
		if v.Base != v.Version {
			// a version of effects has the zone of its document
			v, err = routing.Version(ctx, v.Base)
			continue
		}
		noon, zone, ended, failed := endedUnder(&v, date)
		if failed != nil || ended || v.Version == 1 {
			return noon, zone, failed
		}
		v, err = routing.Version(ctx, v.Version-1)
	}
	return time.Time{}, nil, fmt.Errorf("find the time zone of %s: %w", date, err)
}

// endedUnder cuts a day in the zone of a version's document, and says whether the day ended after
// that was applied.
func endedUnder(
	v *ledger.RoutingVersion, date string,
) (noon time.Time, zone *time.Location, ended bool, err error) {
	doc, err := config.ParseApplied(fmt.Sprintf("routing version %d", v.Version),
		[]byte(v.Document))
	if err != nil {
		return noon, nil, false, fmt.Errorf("find the time zone of %s: %w", date, err)
	}
	zone = doc.Routing.Timezone
	if noon, err = ParseDate(date, zone); err != nil {
		return noon, nil, false, err
	}
	return noon, zone, v.CreatedAt.Before(admission.Day.End(noon, zone)), nil
}

// closeDays closes the business days that are over, and corrects those that were closed before.
func (d *days) closeDays(ctx context.Context) {
	dates, err := d.reports.Unclosed(ctx, d.retention.Facts)
	left := 0
	for _, date := range dates {
		var closed bool
		if closed, err = d.closeDay(ctx, date); !closed {
			left++
		}
		if err != nil {
			break
		}
	}
	d.metrics.unclosed.Set(float64(left))
	if err != nil && ctx.Err() == nil {
		d.trouble("closing of days", err)
	}
}

// closeDay closes one of them, unless it is not over yet or another instance is at it. It reports
// false where the day is still to be closed.
func (d *days) closeDay(ctx context.Context, date string) (closed bool, err error) {
	noon, zone, err := BusinessDay(ctx, d.routing, date)
	switch {
	case errors.Is(err, ledger.ErrNoRouting):
		return true, nil // nothing was ever sent
	case err != nil:
		return false, err
	}
	day := ledger.NewBusinessDay(noon, zone)
	if !day.CanClose(time.Now()) {
		return true, nil
	}
	c, ours, err := d.reports.Close(ctx, day)
	if ours && (c.Revision == 1 || c.Changes > 0) {
		d.log.Info().Str("day", date).Str("timezone", day.Zone).Int("revision", c.Revision).
			Int64("changes", c.Changes).Msg("a day was closed, or corrected")
	}
	return ours, err
}

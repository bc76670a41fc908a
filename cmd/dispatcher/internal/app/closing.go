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

// ParseDate is noon of a date such as 2026-11-21. It is not midnight, because that does not exist
// where clocks go forward at midnight.
func ParseDate(date string, zone *time.Location) (time.Time, error) {
	noon, err := time.ParseInLocation(time.DateOnly+" 15", date+" 12", zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a day: write for example 2026-11-21", date)
	}
	return noon, nil
}

// BusinessDay is noon of a date in the time zone of that business day. It also returns the zone:
// that of the newest document that was applied before the day was over by that document's own
// clock. So a document with another zone does not change days that were already reported. Days
// before the first document use the zone of the first. It returns ledger.ErrNoRouting if the
// database has no document.
func BusinessDay(
	ctx context.Context, routing *ledger.Routing, date string,
) (time.Time, *time.Location, error) {
	noons, err := BusinessDays(ctx, routing, []string{date})
	if err != nil {
		return time.Time{}, nil, err
	}
	return noons[0], noons[0].Location(), nil
}

// BusinessDays are the noons of ascending dates, each in its zone, as BusinessDay returns it. Each
// document is read once.
func BusinessDays(
	ctx context.Context, routing *ledger.Routing, dates []string,
) ([]time.Time, error) {
	out := make([]time.Time, len(dates))
	v, err := documentVersion(ctx, routing, 0)
	for i := len(dates) - 1; i >= 0; {
		if err != nil {
			return nil, fmt.Errorf("find the time zone of %s: %w", dates[i], err)
		}
		_, doc, failed := config.ParseVersion(v.Version, v.Document, nil)
		if failed != nil {
			return nil, fmt.Errorf("find the time zone of %s: %w", dates[i], failed)
		}
		zone := doc.Timezone
		for ; i >= 0; i-- {
			noon, failed := ParseDate(dates[i], zone)
			if failed != nil {
				return nil, failed
			}
			if v.Version > 1 && !v.CreatedAt.Before(admission.Day.End(noon, zone)) {
				break // the day ended before this document was applied
			}
			out[i] = noon
		}
		if i >= 0 {
			v, err = documentVersion(ctx, routing, v.Version-1)
		}
	}
	return out, nil
}

// documentVersion reads a routing version; 0 stands for the current one. For a version that only
// changed effects it reads the version that brought the document, which has the same zone.
func documentVersion(
	ctx context.Context, routing *ledger.Routing, version int64,
) (v ledger.RoutingVersion, err error) {
	if version == 0 {
		v, err = routing.Current(ctx)
	} else {
		v, err = routing.Version(ctx, version)
	}
	if err == nil && v.Base != v.Version {
		v, err = routing.Version(ctx, v.Base)
	}
	return v, err
}

// closeDays closes the business days that are over, and corrects those closed before.
func (d *days) closeDays(ctx context.Context) {
	dates, err := d.reports.Unclosed(ctx, d.retention.Facts)
	if err == nil {
		left := len(dates)
		for i := 0; i < len(dates) && err == nil; i++ {
			var closed bool
			closed, err = d.closeDay(ctx, dates[i])
			if errors.Is(err, ledger.ErrRowsGone) {
				closed, err = true, nil // its figures stay, and the days after it are still closed
			}
			if closed {
				left--
			}
		}
		d.metrics.unclosed.Set(float64(left))
	}
	if err != nil && ctx.Err() == nil {
		d.trouble("closing of days", err)
	}
}

// closeDay closes one business day, unless it is not over yet or another instance is closing it.
// closed is false if the day is over and still to be closed.
func (d *days) closeDay(ctx context.Context, date string) (closed bool, err error) {
	noon, zone, err := BusinessDay(ctx, d.routing, date)
	switch {
	case errors.Is(err, ledger.ErrNoRouting):
		return true, nil // nothing was ever sent
	case err != nil:
		return false, err
	}
	day := ledger.NewBusinessDay(noon, zone)
	if now, err := d.clock(ctx); err != nil || !day.CanClose(now) {
		return err == nil, err
	}
	c, ours, err := d.reports.Close(ctx, day, nil)
	if ours && (c.Revision == 1 || c.Changes > 0) {
		d.changed = true
		d.log.Info().Str("day", date).Str("timezone", day.Zone).Int("revision", c.Revision).
			Int64("changes", c.Changes).Msg("a day was closed, or corrected")
	}
	return ours, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// businessDay is noon of a day and the zone in which it is cut. No day is today, in the zone of the
// routing in force.
//
// A day in the past is cut in the zone that was in force when it ended: that of the newest document that was
// applied before the day was over by that document's own clock. A document that names another zone
// leaves the days before it as they were reported. Days before the first document go by that.
func businessDay(ctx context.Context, l *ledger.Ledger, s *config.Settings, day string, now time.Time) (time.Time, *time.Location, error) {
	current, err := currentRouting(ctx, l, s)
	if err != nil {
		return now, nil, err
	}
	if day == "" {
		return now, current.Timezone, nil
	}
	noon, err := parseDay(day, current.Timezone)
	if err != nil {
		return now, nil, usage(err)
	}
	v, err := l.CurrentRouting(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		return noon, current.Timezone, nil // the zone of the file that will be applied first
	}
	for doc := current; err == nil; {
		if v.Base != v.Version {
			v, err = storedVersion(ctx, l, s, v.Base) // a version of effects has the zone of its document
			continue
		}
		if noon, err = parseDay(day, doc.Timezone); err != nil || v.Version == 1 || v.CreatedAt.Before(admission.Day.End(noon, doc.Timezone)) {
			return noon, doc.Timezone, err
		}
		if v, err = storedVersion(ctx, l, s, v.Version-1); err == nil {
			doc, err = storedRouting(&v)
		}
	}
	return noon, nil, fmt.Errorf("find the time zone of %s: %w", day, err)
}

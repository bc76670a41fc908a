package steer

import (
	"context"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// guardAuthor is the author of versions in which a guard paused something.
const guardAuthor = "guard"

const (
	// guardEvery is how often traffic is counted.
	guardEvery = 30 * time.Second
	// guardLag is how old a message must be to be counted, so that its claim has committed.
	guardLag = 15 * time.Second
	// guardPiece is the longest period that one query counts. After a start, the running hour is
	// counted in several.
	guardPiece = 5 * time.Minute
)

// guarded holds the counts of the running hour.
type guarded struct {
	hour    time.Time // its start
	counted time.Time // seen holds the messages before this time
	seen    traffic
	before  map[int]usual // by Guard.Days
	// For guards per prefix: the counts of the running hour by Guard.Digits, and those of the days
	// before by Guard.Digits and Guard.Days.
	prefixes       map[int]map[string]int64
	beforePrefixes map[[2]int]prefixed // by Guard.Digits and Guard.Days
	idle           time.Time           // when guards last had nothing to do
}

// guards acts on the first trip that is not recorded yet and that it can act on. A subject trips
// once per hour and action, so that a guard does not pause again what an operator has resumed.
func (s *Steerer) guards(
	ctx context.Context, now time.Time, failed failures,
) (moved bool, err error) {
	doc := s.seen.doc
	digits := digitsOf(doc.Guards)
	s.cfg.Arrivals.wanted.Store(len(digits) > 0)
	if len(doc.Guards) == 0 {
		s.guarded = guarded{}
		return false, nil
	}
	if now.Before(s.guarded.idle.Add(guardEvery)) {
		return false, nil
	}
	var trips []ledger.Trip
	_, err = failed.try(ctx, "guards", func(ctx context.Context) (_ bool, err error) {
		if err = s.count(ctx, now); err == nil && len(digits) > 0 {
			err = s.countPrefixes(ctx, now, digits)
		}
		if err == nil {
			trips, err = s.tripped(ctx)
		}
		return false, err
	})
	for i := 0; i < len(trips) && !moved && err == nil; i++ {
		t := &trips[i] // a failure does not delay the others
		moved, err = failed.try(ctx, "guard of "+t.Per+" "+t.Subject,
			func(ctx context.Context) (bool, error) { return true, s.trip(ctx, t) })
	}
	if !moved && err == nil {
		s.guarded.idle = now
	}
	return moved, err
}

// count adds the messages since the last count, and reads the usual traffic once per hour.
func (s *Steerer) count(ctx context.Context, now time.Time) error {
	g, until := &s.guarded, now.Add(-guardLag)
	day := ledger.NewBusinessDay(until, s.seen.doc.Timezone)
	offset := until.Sub(day.From).Truncate(time.Hour)
	if hour := day.From.Add(offset); !hour.Equal(g.hour) {
		*g = guarded{
			hour: hour, counted: hour, seen: traffic{}, before: map[int]usual{},
			beforePrefixes: map[[2]int]prefixed{},
		}
	}
	for i := range s.seen.doc.Guards {
		last := s.seen.doc.Guards[i].Days
		if s.seen.doc.Guards[i].Per == config.ByPrefix {
			continue
		}
		if _, known := g.before[last]; known {
			continue
		}
		rows, days, err := s.cfg.Ledger.Guards.Usual(ctx, day, last, offset)
		if err != nil {
			return err
		}
		before := usual{traffic{}, days}
		before.traffic.add(rows)
		g.before[last] = before
	}
	for g.counted.Before(until) {
		to := g.counted.Add(guardPiece)
		if to.After(until) {
			to = until
		}
		rows, err := s.cfg.Ledger.Guards.Received(ctx, g.counted, to)
		if err != nil {
			return err
		}
		g.seen.add(rows)
		g.counted = to
	}
	return nil
}

// digitsOf returns how many digits the prefixes of the guards have, each number once.
func digitsOf(guards []config.Guard) (out []int) {
	for i := range guards {
		if g := &guards[i]; g.Per == config.ByPrefix && !slices.Contains(out, g.Digits) {
			out = append(out, g.Digits)
		}
	}
	return out
}

// countPrefixes stores what this process has counted, in the hour of now, and reads what all
// processes counted. What could not be stored is lost: if it were stored again after a lost answer,
// it would count twice.
func (s *Steerer) countPrefixes(ctx context.Context, now time.Time, digits []int) error {
	g, arrived := &s.guarded, s.cfg.Arrivals.take()
	fresh := g.prefixes == nil
	g.prefixes = map[int]map[string]int64{}
	for _, n := range digits {
		if err := s.cfg.Ledger.Guards.AddPrefixes(ctx, g.hour, n, arrived.by(n)); err != nil {
			return err
		}
		messages, _, err := s.cfg.Ledger.Guards.Prefixes(ctx, n, []time.Time{g.hour})
		if err != nil {
			return err
		}
		g.prefixes[n] = messages
	}
	for i := range s.seen.doc.Guards {
		guard := &s.seen.doc.Guards[i]
		key := [2]int{guard.Digits, guard.Days}
		if _, known := g.beforePrefixes[key]; known || guard.Per != config.ByPrefix {
			continue
		}
		messages, days, err := s.cfg.Ledger.Guards.Prefixes(ctx, guard.Digits,
			sameHours(now.Add(-guardLag), s.seen.doc.Timezone, guard.Days))
		if err != nil {
			return err
		}
		g.beforePrefixes[key] = prefixed{messages, days}
	}
	if !fresh {
		return nil
	}
	return s.cfg.Ledger.Guards.ForgetPrefixes(ctx, now.AddDate(0, 0, -config.MaxGuardDays-1))
}

// sameHours returns when the hour of a time began on each of the business days before. It is the
// hour at the same distance from the beginning of the day, as in Guards.Usual.
func sameHours(at time.Time, zone *time.Location, days int) []time.Time {
	today := ledger.NewBusinessDay(at, zone)
	offset := at.Sub(today.From).Truncate(time.Hour)
	out := make([]time.Time, 0, days)
	for day := today; len(out) < days; {
		day = ledger.NewBusinessDay(day.From.Add(-time.Hour), zone)
		out = append(out, day.From.Add(offset))
	}
	return out
}

// tripped returns the trips that are not recorded yet.
func (s *Steerer) tripped(ctx context.Context) ([]ledger.Trip, error) {
	var trips []ledger.Trip
	for i := range s.seen.doc.Guards {
		g := &s.seen.doc.Guards[i]
		if g.Per == config.ByPrefix {
			before := s.guarded.beforePrefixes[[2]int{g.Digits, g.Days}]
			trips = append(trips, tripsOf(g, s.guarded.hour, s.guarded.prefixes[g.Digits],
				before.messages, before.days)...)
			continue
		}
		trips = append(trips, Tripped(g, s.guarded.hour, s.guarded.seen, s.guarded.before[g.Days])...)
	}
	if len(trips) == 0 {
		return nil, nil
	}
	known, err := s.cfg.Ledger.Guards.TripsOf(ctx, s.guarded.hour)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(trips, func(t ledger.Trip) bool {
		return slices.ContainsFunc(known, func(trip ledger.Trip) bool { return sameTrip(&trip, &t) })
	}), nil
}

// trip pauses the subject, if the guard asks for that, and then records the trip. If the process
// dies in between, the trip is still unrecorded, and the next process records it.
func (s *Steerer) trip(ctx context.Context, t *ledger.Trip) error {
	words := tripWords(t, s.seen.doc.Timezone)
	if t.Action == string(config.GuardPauses) {
		if err := s.pause(ctx, t, words); err != nil {
			return err
		}
	}
	first, err := s.cfg.Ledger.Guards.Record(ctx, t)
	if err != nil || !first {
		return err
	}
	s.metrics.trips.WithLabelValues(t.Per, t.Action).Inc()
	s.cfg.Log.Warn().Str("per", t.Per).Str("action", t.Action).Int64("seen", t.Seen).
		Float64("usual", t.Usual).Msg("guard: " + words)
	return nil
}

// pause applies the document with the subject paused, unless it is paused already.
func (s *Steerer) pause(ctx context.Context, t *ledger.Trip, words string) error {
	paused, more := withPause(s.seen.document.Routing.Paused, t)
	if !more {
		if s.seen.Author == guardAuthor {
			t.Version = s.seen.Version // another instance paused it, or an earlier process did
		}
		return nil
	}
	doc, err := s.seen.document.SetPaused(paused)
	if err != nil {
		return err
	}
	expect := s.seen.Version
	n := s.cfg.NewRouting(doc, s.seen.doc, guardAuthor, words, &expect)
	n.Via = ledger.ViaItself
	t.Version, err = s.cfg.Ledger.Routing.Apply(ctx, n)
	return err
}

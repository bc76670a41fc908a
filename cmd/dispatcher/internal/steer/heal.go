package steer

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/ledger"
)

// healthAuthor is the author of versions that health weighting makes.
const healthAuthor = "health"

// health makes the first move that is due on any route with health weighting.
func (s *Steerer) health(
	ctx context.Context, now time.Time, failed failures,
) (moved bool, err error) {
	for i := range s.seen.doc.Routes {
		route := &s.seen.doc.Routes[i]
		if route.Health == nil {
			continue
		}
		moved, err := failed.try(ctx, "health of route "+route.Name,
			func(ctx context.Context) (bool, error) {
				move, due, err := s.decide(ctx, route, now)
				if err != nil || !due {
					return false, err
				}
				return true, s.heal(ctx, move)
			})
		if moved || err != nil {
			return moved, err
		}
	}
	return false, nil
}

// decide finds the move that is due on a route. It uses cached figures first, because they cost no
// query; a move is made only if fresh figures confirm it.
func (s *Steerer) decide(
	ctx context.Context, route *config.Route, now time.Time,
) (move HealthMove, due bool, err error) {
	last, err := s.lastMove(ctx, route, now)
	if err != nil || now.Before(last.Add(route.Health.Interval)) {
		return move, false, err
	}
	for _, fresh := range []bool{false, true} {
		var figures Faults
		if figures.Window, err = s.faults(ctx, route.Health.Window, now, fresh); err != nil {
			return move, false, err
		}
		if figures.Quiet, err = s.faults(ctx, route.Health.Quiet, now, fresh); err != nil {
			return move, false, err
		}
		if err := s.delivered(ctx, route.Health, now, fresh, &figures); err != nil {
			return move, false, err
		}
		if move, due = NextHealthMove(s.seen.doc, route, figures, last, now); !due {
			break
		}
	}
	return move, due, nil
}

// maxAgePart bounds the age of cached figures to window / maxAgePart: counting a longer window
// takes longer.
const maxAgePart = 100

// counted are figures, with the time when they were read.
type counted[T any] struct {
	at   time.Time
	rows []T
}

// figures caches the latest figures of each period.
type figures[T any] map[period]counted[T]

// period is a window that ended a time of within ago: later messages may still be delivered in
// time. Figures of errors have no within.
type period struct{ window, within time.Duration }

// of returns the figures of a period. It calls count unless cached figures are new enough.
func (f figures[T]) of(
	p period, now time.Time, fresh bool, count func() ([]T, error),
) ([]T, error) {
	known, ok := f[p]
	if age := now.Sub(known.at); ok && (age == 0 || !fresh && age < p.window/maxAgePart) {
		return known.rows, nil
	}
	rows, err := count()
	if err != nil {
		return nil, err
	}
	f[p] = counted[T]{now, rows}
	return rows, nil
}

// faults returns the errors of all channels in a window.
func (s *Steerer) faults(
	ctx context.Context, window time.Duration, now time.Time, fresh bool,
) ([]ledger.Fault, error) {
	return s.failed.of(period{window: window}, now, fresh, func() ([]ledger.Fault, error) {
		return s.cfg.Ledger.Reports.Faults(ctx, window, s.late())
	})
}

// delivered adds the figures of messages delivered in time, if the route uses receipts.
func (s *Steerer) delivered(
	ctx context.Context, h *config.Health, now time.Time, fresh bool, into *Faults,
) (err error) {
	if h.Receipts == nil {
		return nil
	}
	if into.WindowTimely, err = s.timely(
		ctx, period{h.Receipts.Window, h.Receipts.Within}, now, fresh,
	); err != nil {
		return err
	}
	into.QuietTimely, err = s.timely(ctx, period{h.Quiet, h.Receipts.Within}, now, fresh)
	return err
}

// timely returns what each channel delivered in time in a period. Channels from which no receipts
// are expected are left out.
func (s *Steerer) timely(
	ctx context.Context, p period, now time.Time, fresh bool,
) ([]ledger.Timely, error) {
	all, err := s.delivering.of(p, now, fresh, func() ([]ledger.Timely, error) {
		return s.cfg.Ledger.Receipts.Timely(ctx, p.within, p.window, s.late())
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(t ledger.Timely) bool {
		channel := s.seen.doc.Channel(t.Channel)
		return channel == nil || s.cfg.Awaits(channel) == 0
	}), nil
}

// heal writes a move as a version: the same document with other effects. Effects of routes that no
// longer have health weighting are not in s.seen, so this version drops them.
func (s *Steerer) heal(ctx context.Context, move HealthMove) error {
	_, err := s.cfg.Ledger.Routing.ApplyEffects(ctx, ledger.NewEffects{
		Expect: s.seen.Version, Author: healthAuthor, Reason: move.Reason,
		Overrides: effectsAfter(s.seen.doc, move).Encode(),
	})
	if err != nil {
		return err
	}
	s.metrics.moved("health_" + string(move.Kind))
	level := zerolog.WarnLevel
	if move.Kind == HealthUp {
		level = zerolog.InfoLevel
	}
	s.cfg.Log.WithLevel(level).Str("route", move.Route).Str("channel",
		move.Channel).Msg("health: " + move.Reason)
	return nil
}

// lastMove is when health weighting last moved a weight of a route; zero when that was never, or
// longer ago than the interval. It is read from the routing versions, so that the interval holds
// over restarts and over all instances.
func (s *Steerer) lastMove(
	ctx context.Context, route *config.Route, now time.Time,
) (time.Time, error) {
	version := s.seen.Version
	for ; version > 1; version-- {
		m, err := s.moment(ctx, version)
		switch {
		case err != nil:
			return time.Time{}, err
		case m.at.Before(now.Add(-route.Health.Interval)):
			return time.Time{}, nil
		case slices.Contains(m.routes, route.Name):
			return m.at, nil
		}
	}
	return time.Time{}, nil
}

// moment reads what one version moved.
func (s *Steerer) moment(ctx context.Context, version int64) (moment, error) {
	if m, known := s.history[version]; known {
		return m, nil
	}
	this, err := s.cfg.Ledger.Routing.Version(ctx, version)
	if err != nil {
		return moment{}, err
	}
	before, err := s.cfg.Ledger.Routing.Version(ctx, version-1)
	if err != nil {
		return moment{}, err
	}
	m := moment{at: this.CreatedAt}
	if m.routes, err = movedBy(&this, &before); err != nil {
		return moment{}, err
	}
	if len(s.history) >= maxHistory {
		clear(s.history)
	}
	s.history[version] = m
	return m, nil
}

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

// decide makes up its mind about a route on figures that may be a little old, and makes a move only
// if fresh ones call for it too.
func (s *Steerer) decide(
	ctx context.Context, route *config.Route, now time.Time,
) (move HealthMove, due bool, err error) {
	last, err := s.lastMove(ctx, route, now)
	if err != nil || now.Before(last.Add(route.Health.Interval)) {
		return move, false, err // whatever the figures say
	}
	for _, fresh := range []bool{false, true} {
		var figures Faults
		if figures.Window, err = s.faults(ctx, route.Health.Window, now, fresh); err != nil {
			return move, false, err
		}
		if figures.Quiet, err = s.faults(ctx, route.Health.Quiet, now, fresh); err != nil {
			return move, false, err
		}
		if move, due = NextHealthMove(s.seen.doc, route, figures, last, now); !due {
			break
		}
	}
	return move, due, nil
}

// maxAgePart is the part of a window, one in so many, that figures about it may be old: counting
// takes the longer the longer the window is.
const maxAgePart = 100

// counted are figures and when they were read.
type counted struct {
	at     time.Time
	faults []ledger.Fault
}

// faults are the figures about a window.
func (s *Steerer) faults(
	ctx context.Context, window time.Duration, now time.Time, fresh bool,
) ([]ledger.Fault, error) {
	known, ok := s.figures[window]
	if age := now.Sub(known.at); ok && (age == 0 || !fresh && age < window/maxAgePart) {
		return known.faults, nil
	}
	faults, err := s.cfg.Ledger.Reports.Faults(ctx, window, s.late())
	if err != nil {
		return nil, err
	}
	s.figures[window] = counted{now, faults}
	return faults, nil
}

// heal writes a move as a version of its own: the same document, other effects. Effects of
// routes that no longer have health weighting are not in what was read, so they end with it.
func (s *Steerer) heal(ctx context.Context, move HealthMove) error {
	_, err := s.cfg.Ledger.Routing.ApplyOverrides(ctx, ledger.NewOverrides{
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

// lastMove is when health weighting last moved a weight of a route; zero when that is longer ago
// than its interval, or never was. It stands in the routing versions, so that a restart and other
// instances keep the interval too.
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

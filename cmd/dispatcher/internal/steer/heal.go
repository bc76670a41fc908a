package steer

import (
	"context"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// healthAuthor is the author of versions that health weighting makes.
const healthAuthor = "health"

// health makes the first move that is due on any route with health weighting.
func (s *Steerer) health(ctx context.Context, now time.Time) (moved bool, err error) {
	faults := map[time.Duration][]ledger.Fault{}
	for i := range s.seen.doc.Routes {
		route := &s.seen.doc.Routes[i]
		if route.Health == nil {
			continue
		}
		last, err := s.lastMove(ctx, route, now)
		if err != nil {
			return false, err
		}
		for _, window := range []time.Duration{route.Health.Window, route.Health.Quiet} {
			if _, asked := faults[window]; asked {
				continue
			}
			if faults[window], err = s.cfg.Ledger.Faults(ctx, window); err != nil {
				return false, err
			}
		}
		figures := Faults{Window: faults[route.Health.Window], Quiet: faults[route.Health.Quiet]}
		if move, ok := NextHealthMove(s.seen.doc, route, figures, last, now); ok {
			return true, s.heal(ctx, move)
		}
	}
	return false, nil
}

// heal writes a move as a version of its own: the same document, other effects. Effects of
// routes that no longer have health weighting are not in what was read, so they end with it.
func (s *Steerer) heal(ctx context.Context, move HealthMove) error {
	_, err := s.cfg.Ledger.ApplyEffects(ctx, ledger.NewEffects{
		Expect: s.seen.Version, Author: healthAuthor, Reason: move.Reason, Effects: effectsAfter(s.seen.doc, move).Encode(),
	})
	if err != nil {
		return err
	}
	s.metrics.moved("health_" + string(move.Kind))
	s.cfg.Log.Warn().Str("route", move.Route).Str("channel", move.Channel).Msg("health: " + move.Reason)
	return nil
}

// lastMove is when health weighting last moved a weight of a route; zero when that is longer ago than
// its interval, or never was. It stands in the routing versions, so that a restart and other
// instances keep the interval too.
func (s *Steerer) lastMove(ctx context.Context, route *config.Route, now time.Time) (time.Time, error) {
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
	this, err := s.cfg.Ledger.Routing(ctx, version)
	if err != nil {
		return moment{}, err
	}
	before, err := s.cfg.Ledger.Routing(ctx, version-1)
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

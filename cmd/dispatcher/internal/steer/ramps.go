package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/ledger"
)

// by is the author of what the loop changes by itself.
const by = "dispatcher"

// ramps makes the first move that is due on any ramp.
func (s *Steerer) ramps(
	ctx context.Context, ramps []ledger.Ramp, now time.Time, failed failures,
) (moved bool, err error) {
	for i := range ramps {
		r := &ramps[i]
		moved, err := failed.try(ctx, fmt.Sprintf("ramp %d of route %s", r.ID, r.Route),
			func(ctx context.Context) (bool, error) {
				carried, err := s.carried(ctx, r, now)
				if err != nil {
					return false, err
				}
				return s.ramp(ctx, r, NextRampMove(r, s.seen.doc, carried, now))
			})
		if moved || err != nil {
			return moved, err
		}
	}
	return false, nil
}

// countsPerStep bounds how often the figures of a running ramp are counted between two steps:
// counting many messages takes long.
const countsPerStep = 20

// carried is what a ramp's route carried since its last change. It is nil when no check is due: the
// ramp is held, has no bounds, or was counted a short time ago. Before a step it is always counted.
func (s *Steerer) carried(
	ctx context.Context, r *ledger.Ramp, now time.Time,
) ([]ledger.Carried, error) {
	watched := r.State == ledger.RampRunning && (r.MaxErrors > 0 || r.MaxDeviation > 0)
	if !watched || now.Before(r.NextAt) && now.Sub(s.judged[r.ID]) < r.Every/countsPerStep {
		return nil, nil
	}
	s.judged[r.ID] = now
	return s.cfg.Ledger.Reports.Carried(ctx, r.Route, r.ChangedAt, s.late(), s.seen.Version)
}

// ramp carries out a move. A ramp that holds itself is logged as a warning, because an operator has
// to resume it.
func (s *Steerer) ramp(ctx context.Context, r *ledger.Ramp, move RampMove) (moved bool, err error) {
	switch move.Kind {
	case RampStep:
		var impossible string
		if impossible, err = s.step(ctx, r, move); impossible != "" {
			move.Kind, move.Reason = RampHold, impossible
		}
	case RampHold:
		err = s.cfg.Ledger.Ramps.Set(ctx, r.ID, ledger.RampRunning, ledger.RampHeld,
			byItself(r, move.Reason))
	case RampSupersede:
		var same bool
		if same, err = s.unchanged(ctx); err == nil && !same {
			return false, nil // the ramp may have been started under a routing newer than s.seen
		}
		if err == nil {
			err = s.cfg.Ledger.Ramps.Set(ctx, r.ID, r.State, ledger.RampSuperseded,
				byItself(r, move.Reason))
		}
	case RampWait, RampFinished:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.metrics.moved("ramp_" + string(move.Kind))
	level := zerolog.InfoLevel
	if move.Kind == RampHold {
		level = zerolog.WarnLevel
	}
	s.cfg.Log.WithLevel(level).Int64("ramp", r.ID).Str("route", r.Route).Str("move",
		string(move.Kind)).Msg(move.Reason)
	return true, nil
}

// unchanged reports whether s.seen is still the current routing.
func (s *Steerer) unchanged(ctx context.Context) (bool, error) {
	current, err := s.cfg.Ledger.Routing.Current(ctx)
	return err == nil && current.Version == s.seen.Version, err
}

// step applies the document with the weights of the next step. If the document cannot take them,
// step holds the ramp and returns the reason, because every further try would fail too.
func (s *Steerer) step(
	ctx context.Context, r *ledger.Ramp, move RampMove,
) (impossible string, err error) {
	doc, err := s.seen.document.SetWeights(r.Route, move.Weights)
	if err != nil {
		why := fmt.Sprintf("step %d cannot be made: %v", move.Step, err)
		return why, s.cfg.Ledger.Ramps.Set(ctx, r.ID, ledger.RampRunning, ledger.RampHeld,
			byItself(r, why))
	}
	expect := s.seen.Version
	reason := fmt.Sprintf("ramp %d: %s", r.ID, move.Reason)
	if r.Reason != "" {
		reason += ": " + r.Reason
	}
	n := s.cfg.NewRouting(doc, s.seen.doc, fmt.Sprintf("ramp %d of %s", r.ID, r.Author), reason,
		&expect)
	next := *r
	next.Step = move.Step
	n.Ramp, n.Via = &next, ledger.ViaItself
	_, err = s.cfg.Ledger.Routing.Apply(ctx, n)
	return "", err
}

// byItself is a change that the dispatcher itself makes to a ramp as it was read.
func byItself(r *ledger.Ramp, why string) ledger.RampChange {
	return ledger.RampChange{By: by, Via: ledger.ViaItself, Why: why, Seen: r.ChangedAt}
}

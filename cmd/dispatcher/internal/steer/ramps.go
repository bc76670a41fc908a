package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/ledger"
)

// by is the author of what the loop does on its own account.
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

// looksPerStep is how often the figures of a running ramp are counted between two steps, since
// counting takes the longer the more there is.
const looksPerStep = 20

// carried is what a ramp's route carried since its last change, or nil when the ramp does not go by
// it now: it is held, watches nothing, or was judged a moment ago. It is always counted before a
// step.
func (s *Steerer) carried(
	ctx context.Context, r *ledger.Ramp, now time.Time,
) ([]ledger.Carried, error) {
	watched := r.State == ledger.RampRunning && (r.MaxErrors > 0 || r.MaxDeviation > 0)
	if !watched || now.Before(r.NextAt) && now.Sub(s.judged[r.ID]) < r.Every/looksPerStep {
		return nil, nil
	}
	s.judged[r.ID] = now
	return s.cfg.Ledger.Reports.Carried(ctx, r.Route, r.ChangedAt, s.late(), s.seen.Version)
}

// ramp does what was decided about a ramp. That it holds itself is a warning: somebody has to look.
func (s *Steerer) ramp(ctx context.Context, r *ledger.Ramp, move RampMove) (moved bool, err error) {
	switch move.Kind {
	case RampStep:
		var impossible string
		if impossible, err = s.step(ctx, r, move); impossible != "" {
			move.Kind, move.Reason = RampHold, impossible
		}
	case RampHold:
		err = s.cfg.Ledger.Ramps.Set(ctx, r.ID, ledger.RampRunning, ledger.RampHeld, move.Reason, by)
	case RampSupersede:
		var same bool
		if same, err = s.unchanged(ctx); err == nil && !same {
			return false, nil // the ramp may belong to a later routing than was looked at
		}
		if err == nil {
			err = s.cfg.Ledger.Ramps.Set(ctx, r.ID, r.State, ledger.RampSuperseded, move.Reason, by)
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

// unchanged reports whether the routing that was looked at is still the current one.
func (s *Steerer) unchanged(ctx context.Context) (bool, error) {
	current, err := s.cfg.Ledger.Routing.Current(ctx)
	return err == nil && current.Version == s.seen.Version, err
}

// step applies the document with the weights of the next step. A document that cannot take
// them holds the ramp, for the reason that is returned: trying again would end the same.
func (s *Steerer) step(
	ctx context.Context, r *ledger.Ramp, move RampMove,
) (impossible string, err error) {
	doc, err := s.seen.document.SetWeights(r.Route, move.Weights)
	if err != nil {
		why := fmt.Sprintf("step %d cannot be made: %v", move.Step, err)
		return why, s.cfg.Ledger.Ramps.Set(ctx, r.ID, ledger.RampRunning, ledger.RampHeld, why, by)
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
	n.Ramp = &next
	_, err = s.cfg.Ledger.Routing.Apply(ctx, n)
	return "", err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dispatcher/ledger"
)

// steerRamp holds, resumes or cancels the ramp of a route.
func (c *cli) steerRamp(ctx context.Context, f *rampFlags, args []string) error {
	if len(args) > 1 {
		return usage(errors.New("--hold, --resume and --cancel take no weights: name the route alone"))
	}
	return c.withRouting(ctx, &f.changeFlags, func(ch *change) error {
		r, err := ch.openRamp(ctx, args[0])
		if err != nil {
			return err
		}
		to, done := f.wanted()
		if r.State == to {
			return ch.printRamp(&rampStarted{Version: ch.current.Version, DryRun: f.dryRun, Ramp: newRampShown(r)},
				fmt.Sprintf("Ramp %d of route %s is %s already: nothing to do.", r.ID, r.Route, to))
		}
		if f.dryRun {
			return ch.printRamp(&rampStarted{Version: ch.current.Version, DryRun: true, Ramp: newRampShown(r)},
				fmt.Sprintf("Dry run: nothing was written. Ramp %d of route %s, now %s, would be %s.", r.ID, r.Route, r.State, done))
		}
		return ch.setRamp(ctx, r, to)
	})
}

// wanted is the state that the flags ask for, and the word for getting there.
func (f *rampFlags) wanted() (to ledger.RampState, done string) {
	switch {
	case f.hold:
		return ledger.RampHeld, "held"
	case f.resume:
		return ledger.RampRunning, "resumed"
	}
	return ledger.RampCancelled, "cancelled"
}

// setRamp changes the state, unless somebody else did meanwhile.
func (ch *change) setRamp(ctx context.Context, r *ledger.Ramp, to ledger.RampState) error {
	err := ch.ledger.SetRamp(ctx, r.ID, r.State, to, ch.flags.reason, ch.flags.author)
	switch {
	case errors.Is(err, ledger.ErrRampMoved):
		return failed(fmt.Errorf(`ramp %d of route %s was changed meanwhile: see "dispatcher weights show %s" and try again`, r.ID, r.Route, r.Route))
	case err != nil:
		return usage(postgresTrouble(ch.settings, err))
	}
	now, err := ch.rampNumbered(ctx, r.ID)
	if err != nil {
		return err
	}
	shown := newRampShown(now)
	return ch.printRamp(&rampStarted{Version: ch.current.Version, Applied: true, Ramp: shown}, shown.sentence())
}

// openRamp finds the ramp of a route that runs or is held.
func (ch *change) openRamp(ctx context.Context, route string) (*ledger.Ramp, error) {
	if err := ch.need(); err != nil {
		return nil, err
	}
	if _, err := routeOf(ch.base(), route); err != nil {
		return nil, usage(err)
	}
	ramps, err := ch.ledger.Ramps(ctx, false)
	if err != nil {
		return nil, usage(postgresTrouble(ch.settings, err))
	}
	if at := slices.IndexFunc(ramps, func(r ledger.Ramp) bool { return r.Route == route }); at >= 0 {
		return &ramps[at], nil
	}
	return nil, failed(fmt.Errorf(`no ramp of route %s runs or is held: "dispatcher routing history" lists the past ones`, route))
}

func (ch *change) rampNumbered(ctx context.Context, id int64) (*ledger.Ramp, error) {
	ramps, err := ch.ledger.Ramps(ctx, true)
	if err != nil {
		return nil, usage(postgresTrouble(ch.settings, err))
	}
	at := slices.IndexFunc(ramps, func(r ledger.Ramp) bool { return r.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("ramp %d is gone", id)
	}
	return &ramps[at], nil
}

// movingChannels are those whose weight the ramp changes, by name.
func movingChannels(r *rampShown) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.To)), func(channel string) bool { return r.From[channel] == r.To[channel] })
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/ledger"
)

// rampStep is one step of a ramp with the weights that it leads to.
type rampStep struct {
	Step    int               `json:"step"`
	At      time.Time         `json:"at"` // the earliest time
	Weights map[string]string `json:"weights"`
}

// rampStarted is what came of weights ramp.
type rampStarted struct {
	Version int64 `json:"version"` // in force, as before: the first step makes the next one
	// Applied is whether the ramp was started or changed.
	Applied bool       `json:"applied"`
	DryRun  bool       `json:"dry_run"`
	Ramp    rampShown  `json:"ramp"`
	Plan    []rampStep `json:"plan,omitempty"`
}

// planned works out every step by the very function that will make them, and finds weights
// that the document could not take before the ramp gets there.
func (ch *change) planned(r *ledger.Ramp) ([]rampStep, error) {
	doc := ch.document
	at := *r
	steps := make([]rampStep, 0, r.Steps)
	for at.Step < r.Steps {
		move := steer.NextRampMove(&at, doc.Routing, nil, time.Time{})
		if move.Kind != steer.RampStep {
			return nil, fmt.Errorf("step %d of %d cannot be made: %s", at.Step+1, r.Steps,
				move.Reason)
		}
		var err error
		if doc, err = doc.SetWeights(r.Route, move.Weights); err != nil {
			return nil, fmt.Errorf("step %d of %d cannot be made: %w", move.Step, r.Steps, err)
		}
		step := rampStep{Step: move.Step, Weights: map[string]string{}}
		for _, w := range move.Weights {
			step.Weights[w.Channel] = w.Weight.String()
		}
		steps = append(steps, step)
		at.Step = move.Step
	}
	return steps, app.CheckChannels(doc.Name, doc.Routing)
}

// runRamp starts the ramp, unless it is a dry run or leads nowhere.
func (ch *change) runRamp(ctx context.Context, r ledger.Ramp, plan []rampStep) error {
	now, err := ch.ledger.Clock(ctx)
	if err != nil {
		return err
	}
	r.NextAt = now.Add(r.Every).UTC().Truncate(time.Second)
	for i := range plan {
		plan[i].At = r.NextAt.Add(time.Duration(i) * r.Every)
	}
	started := rampStarted{Version: ch.current.Version, DryRun: ch.flags.dryRun, Plan: plan}
	switch {
	case leadsNowhere(&r):
		started.Ramp, started.Plan = newRampShown(&r), nil
		return ch.printRamp(&started, fmt.Sprintf("Route %s has these weights already: there is "+
			"nothing to move.", r.Route))
	case ch.flags.dryRun:
		started.Ramp = newRampShown(&r)
		return ch.printRamp(&started, "Dry run: nothing was written, no ramp was started.")
	}
	running, err := ch.ledger.Ramps.Start(ctx, r, &ch.current.Version)
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return ch.overtaken(ctx, conflict)
	}
	switch {
	case errors.Is(err, ledger.ErrRampRunning):
		return ch.rampInTheWay(ctx, r.Route)
	case err != nil:
		return err
	}
	started.Applied, started.Ramp = true, newRampShown(&running)
	return ch.printRamp(&started, started.Ramp.sentence()+" The running dispatchers make the "+
		"steps.")
}

func leadsNowhere(r *ledger.Ramp) bool {
	for channel, to := range r.To {
		if r.From[channel] != to {
			return false
		}
	}
	return true
}

// rampInTheWay says which ramp has to end before another may start.
func (ch *change) rampInTheWay(ctx context.Context, route string) error {
	r, err := ch.openRamp(ctx, route)
	if err != nil {
		return err
	}
	shown := newRampShown(r)
	return failed(fmt.Errorf(`%s It was started by %s (%q). End it with "dispatcher weights `+
		`ramp %s --cancel --reason TEXT", then start the new one`,
		shown.sentence(), r.Author, r.Reason, route))
}

// printRamp shows the steps and then what was done.
func (ch *change) printRamp(started *rampStarted, sentence string) error {
	c, as := ch.cli, ch.flags.as
	rows := rampSheet([]rampShown{started.Ramp}, as)
	if len(started.Plan) > 0 {
		rows = planSheet(started, as)
	}
	if as != formatTable {
		as.warn(c, []string{sentence})
		return as.write(c.out, started, rows)
	}
	if len(started.Plan) > 0 {
		rows.draw(c.out)
	}
	fmt.Fprintln(c.out, sentence)
	return nil
}

// planSheet has a column for each channel that moves, and in CSV one for the ramp, which has no
// number yet in a dry run.
func planSheet(started *rampStarted, as format) sheet {
	columns := []column[rampStep]{
		{name: "ramp", only: formatCSV, cell: func(*rampStep) any {
			if !started.Applied {
				return ""
			}
			return started.Ramp.ID
		}},
		{key: "step"},
		{name: "at", style: zoned, cell: func(r *rampStep) any {
			if r.At.IsZero() {
				return "now"
			}
			return r.At
		}},
	}
	for _, channel := range movingChannels(&started.Ramp) {
		columns = append(columns, column[rampStep]{
			name: channel, right: true, cell: func(r *rampStep) any { return r.Weights[channel] },
		})
	}
	return list(as, append([]rampStep{{Weights: started.Ramp.From}}, started.Plan...), columns...)
}

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/config"
	"dispatcher/ledger"
)

// RampStep is one step of a ramp with the weights after it.
type RampStep struct {
	Step    int               `json:"step"`
	At      time.Time         `json:"at"` // the earliest time
	Weights map[string]string `json:"weights"`
}

// RampStarted is the result of starting or changing a ramp.
type RampStarted struct {
	Version int64 `json:"version"` // in force; the ramp's first step makes the next one
	// Applied is whether the ramp was started or changed.
	Applied bool       `json:"applied"`
	DryRun  bool       `json:"dry_run"`
	Ramp    Ramp       `json:"ramp"`
	Plan    []RampStep `json:"plan,omitempty"`
	// Unchanged reports that the route or the ramp already was as asked.
	Unchanged bool `json:"-"`
}

// NoRamp means that no ramp of the route runs or is held.
type NoRamp struct{ Route string }

func (e *NoRamp) Error() string {
	return "no ramp of route " + e.Route + " runs or is held"
}

// RampRunning means that another ramp of the route runs or is held; it must end first.
type RampRunning struct{ Ramp Ramp }

func (e *RampRunning) Error() string { return e.Ramp.Sentence() + " End it first" }

// RampMoved means that somebody else changed the ramp meanwhile.
type RampMoved struct{ Ramp Ramp }

func (e *RampMoved) Error() string {
	return fmt.Sprintf("ramp %d of route %s was changed meanwhile: look at it and try again",
		e.Ramp.ID, e.Ramp.Route)
}

// RampPlan is a ramp to start. A bound of 0 is not checked.
type RampPlan struct {
	Route                   string
	To                      []config.Weight
	Every                   time.Duration // between two steps
	Steps                   int
	MaxErrors, MaxDeviation float64 // from 0 to 1
	Least                   int64   // messages before the bounds are checked
}

// MostSteps is how many steps a ramp may have, and LeastBetween the shortest time between two.
const (
	MostSteps    = 1000
	LeastBetween = time.Second
)

// StartRamp stores a ramp, which the instances then carry out. It stores nothing in a dry run, or
// when the route has the weights already.
func (d *Draft) StartRamp(ctx context.Context, p *RampPlan) (*RampStarted, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	switch {
	case p.Steps < 1 || p.Steps > MostSteps:
		return nil, refusef("a ramp has 1 to %d steps, not %d", MostSteps, p.Steps)
	case p.Every < LeastBetween:
		return nil, refusef("%d steps leave less than a second for each: take longer, or fewer steps",
			p.Steps)
	}
	r, err := p.ramp(d.Base(), &d.by)
	if err != nil {
		return nil, err
	}
	plan, err := d.planned(&r)
	if err != nil {
		return nil, refuse(err)
	}
	now, err := d.ledger.Clock(ctx)
	if err != nil {
		return nil, err
	}
	r.NextAt = now.Add(r.Every).UTC().Truncate(time.Second)
	for i := range plan {
		plan[i].At = r.NextAt.Add(time.Duration(i) * r.Every)
	}
	started := &RampStarted{Version: d.Current.Version, DryRun: d.by.DryRun, Plan: plan}
	if changesNothing(&r) {
		started.Ramp, started.Plan, started.Unchanged = NewRamp(&r), nil, true
		return started, nil
	}
	if d.by.DryRun {
		started.Ramp = NewRamp(&r)
		return started, nil
	}
	running, err := d.ledger.Ramps.Start(ctx, r, &d.Current.Version)
	if conflict, ok := errors.AsType[*ledger.VersionConflictError](err); ok {
		return nil, d.Overtaken(ctx, conflict)
	}
	if errors.Is(err, ledger.ErrRampRunning) {
		other, err := d.openRamp(ctx, r.Route)
		if err != nil {
			return nil, err
		}
		return nil, &RampRunning{NewRamp(other)}
	}
	if err != nil {
		return nil, err
	}
	started.Applied, started.Ramp = true, NewRamp(&running)
	return started, nil
}

// ramp is the ramp from the weights of the route to those in To. Channels not in To keep theirs.
func (p *RampPlan) ramp(doc *config.Routing, by *By) (ledger.Ramp, error) {
	r := ledger.Ramp{
		Route: p.Route, From: map[string]string{}, To: map[string]string{}, Steps: p.Steps,
		Every: p.Every, State: ledger.RampRunning, LeastMessages: p.Least,
		MaxErrors: p.MaxErrors, MaxDeviation: p.MaxDeviation, Author: by.Author,
		Via: by.Via, Reason: by.Reason,
	}
	route, err := WeightedRoute(doc, p.Route)
	if err != nil {
		return r, err
	}
	for _, w := range route.Weights {
		r.From[w.Channel], r.To[w.Channel] = w.Configured.String(), w.Configured.String()
	}
	for _, w := range p.To {
		if r.From[w.Channel] == "" {
			r.From[w.Channel] = "0"
		}
		r.To[w.Channel] = w.Weight.String()
	}
	return r, nil
}

// planned computes every step by the function that will make them later, so that weights which the
// document cannot take are found before the ramp starts.
func (d *Draft) planned(r *ledger.Ramp) ([]RampStep, error) {
	doc := d.Document
	at := *r
	steps := make([]RampStep, 0, r.Steps)
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
		step := RampStep{Step: move.Step, Weights: map[string]string{}}
		for _, w := range move.Weights {
			step.Weights[w.Channel] = w.Weight.String()
		}
		steps = append(steps, step)
		at.Step = move.Step
	}
	return steps, app.CheckChannels(doc.Name, doc.Routing, d.Base())
}

func changesNothing(r *ledger.Ramp) bool {
	for channel, to := range r.To {
		if r.From[channel] != to {
			return false
		}
	}
	return true
}

// SteeredTo are the states that SteerRamp sets, by what an operator asks for.
var SteeredTo = map[string]ledger.RampState{
	"hold": ledger.RampHeld, "resume": ledger.RampRunning, "cancel": ledger.RampCancelled,
}

// SteerRamp holds, resumes or cancels the ramp of a route. In a dry run, or when the ramp is in
// that state already, it returns the unchanged ramp.
func (d *Draft) SteerRamp(
	ctx context.Context, route string, to ledger.RampState,
) (*RampStarted, error) {
	r, err := d.openRamp(ctx, route)
	if err != nil {
		return nil, err
	}
	was := &RampStarted{Version: d.Current.Version, DryRun: d.by.DryRun, Ramp: NewRamp(r)}
	if r.State == to {
		was.Unchanged = true
		return was, nil
	}
	if d.by.DryRun {
		return was, nil
	}
	err = d.ledger.Ramps.Set(ctx, r.ID, r.State, to,
		ledger.RampChange{By: d.by.Author, Via: d.by.Via, Why: d.by.Reason})
	if errors.Is(err, ledger.ErrRampMoved) {
		return nil, &RampMoved{NewRamp(r)}
	}
	if err != nil {
		return nil, err
	}
	now, err := d.rampNumbered(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return &RampStarted{Version: d.Current.Version, Applied: true, Ramp: NewRamp(now)}, nil
}

// openRamp finds the ramp of a route that runs or is held. The error is a NoRamp if there is none.
func (d *Draft) openRamp(ctx context.Context, route string) (*ledger.Ramp, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	if _, err := RouteOf(d.Base(), route); err != nil {
		return nil, err
	}
	ramps, err := d.ledger.Ramps.List(ctx, false)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(ramps,
		func(r ledger.Ramp) bool { return r.Route == route }); at >= 0 {
		return &ramps[at], nil
	}
	return nil, &NoRamp{route}
}

func (d *Draft) rampNumbered(ctx context.Context, id int64) (*ledger.Ramp, error) {
	ramps, err := d.ledger.Ramps.List(ctx, true)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(ramps, func(r ledger.Ramp) bool { return r.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("ramp %d is gone", id)
	}
	return &ramps[at], nil
}

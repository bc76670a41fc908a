package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Ramps are changes of weights in steps.
type Ramps struct{ *db }

// ErrRampRunning is returned by Start when a running or held ramp moves the weights
// of the same route.
var ErrRampRunning = errors.New("another ramp moves the weights of this route")

// ErrRampMoved means that a ramp is not where the caller believed it to be: somebody else
// made its step, or held, resumed or ended it. Nothing was changed.
var ErrRampMoved = errors.New("the ramp was changed meanwhile")

// RampState is where a ramp stands.
type RampState string

// States of a ramp. A running one makes its next step at NextAt; a held one stands still
// until it is set running again; the rest is final.
const (
	RampRunning    RampState = "running"
	RampHeld       RampState = "held"
	RampDone       RampState = "done"       // it made its last step
	RampCancelled  RampState = "cancelled"  // an operator ended it
	RampSuperseded RampState = "superseded" // the weights or the route were changed otherwise
)

// Final reports whether a ramp in this state never moves again.
func (s RampState) Final() bool { return s != RampRunning && s != RampHeld }

// Ramp moves the weights of one route from From to To in Steps equal steps. The ledger
// remembers it; it does not compute the weights.
type Ramp struct {
	ID    int64
	Route string
	// From and To are weights by channel, as decimal text.
	From, To map[string]string
	// Steps is how many there are and Step how many were made.
	Steps, Step int
	// Every is the time between two steps, and NextAt, by the database's clock, the earliest
	// time of the next one; zero unless the ramp runs.
	Every  time.Duration
	NextAt time.Time
	State  RampState
	// Held says why the ramp is held, was cancelled or was superseded; empty otherwise.
	Held string
	// MaxErrors and MaxDeviation, from 0 to 1, are the band that a ramp must stay in to go
	// on; 0 is not watched. Fewer than LeastMessages tell nothing.
	MaxErrors, MaxDeviation float64
	LeastMessages           int64
	// Author started the ramp, for Reason. ChangedBy changed its state last, at ChangedAt.
	Author, Reason, ChangedBy string
	// Version is the routing version of the last step, 0 before the first.
	Version              int64
	CreatedAt, ChangedAt time.Time
}

// RampMove is one thing that happened to a ramp.
type RampMove struct {
	At time.Time
	// Author is who did it: an operator, or the dispatcher that carries ramps out.
	Author string
	// Move is started, step, done, held, resumed, cancelled or superseded.
	Move string
	// Step is how many steps had been made then, and Version the routing version of the last.
	Step    int
	Version int64
	Reason  string
}

// validate refuses what could never make a step. The rest is up to the table's constraints.
func (r *Ramp) validate() error {
	switch {
	case r.Route == "":
		return errors.New("it names no route")
	case len(r.From) == 0 || len(r.To) == 0:
		return errors.New("it has no weights")
	case r.Steps <= 0:
		return fmt.Errorf("%d steps", r.Steps)
	case r.Every < time.Microsecond: // the database's unit
		return fmt.Errorf("a step every %s", r.Every)
	case !(0 <= r.MaxErrors && r.MaxErrors <= 1) || !(0 <= r.MaxDeviation && r.MaxDeviation <= 1):
		return fmt.Errorf("the band of %g errors and %g deviation is not within 0 and 1", r.MaxErrors, r.MaxDeviation)
	case r.LeastMessages < 0:
		return fmt.Errorf("at least %d messages", r.LeastMessages)
	}
	return nil
}

// legalRampMove refuses moves that no caller may ask for. Only a step makes a ramp done.
func legalRampMove(from, to RampState, why string) error {
	switch {
	case from == RampRunning && to == RampHeld && why == "":
		return errors.New("a ramp is held without a reason")
	case from == RampRunning && to == RampHeld,
		from == RampHeld && to == RampRunning,
		!from.Final() && (to == RampCancelled || to == RampSuperseded):
		return nil
	}
	return fmt.Errorf("a ramp cannot go from %q to %q", from, to)
}

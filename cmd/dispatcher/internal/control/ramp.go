package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// instant is the layout of a time in sentences.
const instant = "2006-01-02 15:04:05 UTC"

// Ramp is a ramp as the commands print it.
type Ramp struct {
	ID    int64  `json:"id"`
	Route string `json:"route"`
	State string `json:"state"` // running, held, done, cancelled or superseded
	// why it is held; empty in any other state
	Held string `json:"held"`
	// why it was held, cancelled or superseded
	Why          string            `json:"why"`
	From         map[string]string `json:"from"`
	To           map[string]string `json:"to"`
	Steps        int               `json:"steps"`
	Step         int               `json:"step"` // steps made so far
	EverySeconds float64           `json:"every_seconds"`
	NextAt       *time.Time        `json:"next_at"` // null unless it runs
	MaxErrors    float64           `json:"max_errors"`
	MaxDeviation float64           `json:"max_deviation"`
	Least        int64             `json:"least_messages"`
	Author       string            `json:"author"`
	Reason       string            `json:"reason"`
	ChangedBy    string            `json:"changed_by"`
	ChangedAt    *time.Time        `json:"changed_at"`
	CreatedAt    *time.Time        `json:"created_at"`
	Version      int64             `json:"version"` // of the last step; 0 before the first
	// Moves is what happened to it, in order; only "routing history" fills it.
	Moves []RampMove `json:"moves,omitempty"`
}

// RampMove is one thing that happened to a ramp.
type RampMove struct {
	At      time.Time  `json:"at"`
	Author  string     `json:"author"`
	Login   string     `json:"login"` // of the database; empty where it was not recorded
	Via     ledger.Via `json:"via"`   // how it came in, as in an Action
	Move    string     `json:"move"`  // started, step, done, held, resumed, cancelled or superseded
	Step    int        `json:"step"`  // steps made until then
	Version int64      `json:"version"`
	Reason  string     `json:"reason"`
}

// RampMoves converts moves of a ramp.
func RampMoves(moves []ledger.RampMove) []RampMove {
	out := make([]RampMove, len(moves))
	for i, m := range moves {
		out[i] = RampMove(m)
	}
	return out
}

// NewRamp converts a ramp of the ledger.
func NewRamp(r *ledger.Ramp) Ramp {
	held := ""
	if r.State == ledger.RampHeld {
		held = r.Held
	}
	return Ramp{
		ID: r.ID, Route: r.Route, State: string(r.State), Held: held, Why: r.Held, From: r.From,
		To: r.To, Steps: r.Steps, Step: r.Step,
		EverySeconds: r.Every.Seconds(), NextAt: report.Moment(r.NextAt), MaxErrors: r.MaxErrors,
		MaxDeviation: r.MaxDeviation, Least: r.LeastMessages,
		Author: r.Author, Reason: r.Reason, ChangedBy: r.ChangedBy,
		ChangedAt: report.Moment(r.ChangedAt), CreatedAt: report.Moment(r.CreatedAt), Version: r.Version,
	}
}

// Sentence says the state and the next step of the ramp.
func (r *Ramp) Sentence() string {
	s := fmt.Sprintf("Ramp %d of route %s to %s is %s", r.ID, r.Route, r.Target(), r.State)
	if r.Step < r.Steps {
		s += fmt.Sprintf(" at step %d of %d", r.Step, r.Steps)
	}
	switch {
	case r.NextAt != nil:
		s += ", the next step is due at " + r.NextAt.UTC().Format(instant)
	case r.Why != "":
		s += " (" + r.Why + ")"
	}
	return s + "."
}

// Target lists the weights that the ramp leads to.
func (r *Ramp) Target() string {
	words := make([]string, 0, len(r.To))
	for channel, weight := range r.To {
		words = append(words, channel+"="+weight)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

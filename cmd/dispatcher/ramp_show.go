package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dispatcher/ledger"
)

// rampShown is a ramp as the commands print it.
type rampShown struct {
	ID    int64  `json:"id"`
	Route string `json:"route"`
	State string `json:"state"` // running, held, done, cancelled or superseded
	// why it does not go on, when it is held; empty else
	Held string `json:"held"`
	// why it came into its state: held, cancelled or superseded
	Why          string            `json:"why"`
	From         map[string]string `json:"from"`
	To           map[string]string `json:"to"`
	Steps        int               `json:"steps"`
	Step         int               `json:"step"` // so many have been made
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
	// Moves is what happened to it, in order; only routing history tells.
	Moves []rampMove `json:"moves,omitempty"`
}

// rampMove is one thing that happened to a ramp.
type rampMove struct {
	At      time.Time `json:"at"`
	Author  string    `json:"author"`
	Move    string    `json:"move"` // started, step, done, held, resumed, cancelled or superseded
	Step    int       `json:"step"` // so many had been made
	Version int64     `json:"version"`
	Reason  string    `json:"reason"`
}

func rampMoves(moves []ledger.RampMove) []rampMove {
	out := make([]rampMove, len(moves))
	for i, m := range moves {
		out[i] = rampMove(m)
	}
	return out
}

func newRampShown(r *ledger.Ramp) rampShown {
	held := ""
	if r.State == ledger.RampHeld {
		held = r.Held
	}
	return rampShown{
		ID: r.ID, Route: r.Route, State: string(r.State), Held: held, Why: r.Held, From: r.From,
		To: r.To, Steps: r.Steps, Step: r.Step,
		EverySeconds: r.Every.Seconds(), NextAt: moment(r.NextAt), MaxErrors: r.MaxErrors,
		MaxDeviation: r.MaxDeviation, Least: r.LeastMessages,
		Author: r.Author, Reason: r.Reason, ChangedBy: r.ChangedBy, ChangedAt: moment(r.ChangedAt),
		CreatedAt: moment(r.CreatedAt), Version: r.Version,
	}
}

// moment is nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// sentence says where the ramp stands.
func (r *rampShown) sentence() string {
	s := fmt.Sprintf("Ramp %d of route %s to %s is %s", r.ID, r.Route, r.target(), r.State)
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

// target lists the weights that the ramp leads to.
func (r *rampShown) target() string {
	words := make([]string, 0, len(r.To))
	for channel, weight := range r.To {
		words = append(words, channel+"="+weight)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// rampSheet has who started and who changed the ramp beside why where room is scarce.
func rampSheet(ramps []rampShown, as format) sheet {
	step := func(r *rampShown) string { return fmt.Sprintf("%d/%d", r.Step, r.Steps) }
	target := func(between string) func(*rampShown) any {
		return func(r *rampShown) any { return strings.ReplaceAll(r.target(), " ", between) }
	}
	s := list(as, ramps, []column[rampShown]{
		{key: "id", name: "ramp"},
		{key: "route", width: 12},
		{key: "to", only: formatCSV, cell: target(" ")},
		{key: "to", only: formatTable, width: 20, cell: target("\n")},
		{key: "state", only: formatCSV},
		{key: "step", only: formatCSV, cell: func(r *rampShown) any { return step(r) }},
		{key: "state", only: formatTable, width: 10, cell: func(r *rampShown) any {
			return r.State + " " + step(r)
		}},
		{key: "changed_at", only: formatCSV},
		{key: "changed_by", only: formatCSV},
		{key: "author", only: formatCSV},
		{key: "reason", only: formatCSV},
		{only: formatTable, head: "changed_at (UTC), by", width: 20, cell: func(r *rampShown) any {
			return as.cell(byType, r.ChangedAt) + "\n" + r.ChangedBy
		}},
		{only: formatTable, head: "author: reason", width: 18, cell: func(r *rampShown) any {
			return r.Author + ": " + r.Reason
		}},
		{key: "why", head: "why in this state", width: 18},
	}...)
	s.tight = true
	return s
}

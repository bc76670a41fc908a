// Package admission decides whether one more message may go to a channel now, and when
// within the window it may leave.
//
//	Limit     what a provider or a contract allows: at most Max units in each Window
//	Counter   the shared state of one Limit: the row that every process locks
//	Fit, Take the decision: a release time under all counters at once, or the exclusion
//	Policy    how the slots are divided among regions and processes (even, curve, counter, exact)
//	Ease      how far a channel's rate is lowered since its provider asked to slow down
//	Ticket    the right of a retry to the active slot of the attempt before
//
// Everything here is pure: the state comes in, the database's clock comes in as now, and
// the changed state goes out. Reading and writing that state under a lock is the work of
// package ledger; waiting for the release time is the channel worker's.
package admission

import (
	"fmt"
	"slices"
)

// Unit is what a limit counts.
type Unit uint8

// Units of a limit.
const (
	Messages Unit = iota // each attempt counts one
	Segments             // each attempt counts its billed parts
	Money                // each attempt counts its price, in micros of Limit.Currency
)

// String returns the word of the routing document and of audit.limit_windows.
func (u Unit) String() string {
	switch u {
	case Segments:
		return "segments"
	case Money:
		return "money"
	case Messages:
	}
	return "messages"
}

// ParseUnit reads a unit; the empty string means messages.
func ParseUnit(s string) (Unit, error) {
	switch s {
	case "", "messages":
		return Messages, nil
	case "segments":
		return Segments, nil
	case "money":
		return Money, nil
	}
	return Messages, fmt.Errorf("unit %q is none of messages, segments, money", s)
}

// Limit is a bound that the provider, the contract or the operator sets: at most Max
// units in each Window.
type Limit struct {
	Scope  Scope
	Window Window
	// Max is 0 for a closed limit. The document gives no Max for a Prepaid limit: it is 0 there, and
	// in a Counter it is the sum of the top-ups.
	Max  int64
	Unit Unit
	// Currency is the currency of a limit in Money; empty for other units.
	Currency string
	// Sliding bounds every span of the window's length, not only calendar windows. See Counter.
	Sliding bool
	// Burst is how many units of a sliding limit may come at once, from 1 to Max. The pace after a
	// burst is Max - Burst + 1 in each window, so that no span holds more than Max. The pace is at
	// least Max/1024: a Burst closer to Max is reduced.
	Burst int64
	// Reserve keeps parts of the window for lanes.
	Reserve []Reserve
}

// Reserve is the part of each window that is kept for one lane. It decays to nothing in the last
// tenth of the window.
type Reserve struct {
	Lane    string
	Percent int64 // 1 to 100; those of a limit sum to at most 100
}

// Key identifies a limit among those of one channel, or among those over all channels.
type Key struct {
	Scope  Scope
	Window Window
	Unit   Unit
}

// Key is the limit's key.
func (l *Limit) Key() Key { return Key{l.Scope, l.Window, l.Unit} }

// Paced reports whether each unit of a window gets a release time of its own. Limits of a second
// do, except those in money.
func (l *Limit) Paced() bool { return l.Window == Second && l.Unit != Money }

// Equal reports whether two limits are the same.
func (l *Limit) Equal(o *Limit) bool {
	return l.Key() == o.Key() && l.Max == o.Max && l.Currency == o.Currency &&
		l.Sliding == o.Sliding && l.Burst == o.Burst &&
		slices.Equal(l.Reserve, o.Reserve)
}

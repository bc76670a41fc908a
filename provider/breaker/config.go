package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Config says when a breaker opens and how it closes again. The zero value of each field but Name
// means the default in its comment.
type Config struct {
	// Name is the channel's name; it is used in error messages only.
	Name string
	// Failures is how many failures in a row open the breaker (5). A row follows the order of
	// submits: a failure does not count once a later submit got a good answer.
	Failures uint32
	// Percent of failures among the submits of one Window, if at least Sample of them have been
	// answered, opens it too (50 % of 20 within 10s). A channel that fails every other message would
	// never reach Failures in a row.
	Percent uint32
	Sample  uint32
	Window  time.Duration
	// AnswerWithin is how long a submit waits for its answer at most (10s). A later failure still
	// counts in a row, but not in the share.
	AnswerWithin time.Duration
	// OpenFor is how long the breaker stays open before it lets probes through (5s).
	OpenFor time.Duration
	// HalfOpenMax is how many probes may then be in flight. As many successes in a row close the
	// breaker, one failure opens it again (1).
	HalfOpenMax uint32
	// OnChange, if set, is called on each change of state, under the breaker's lock: it must return
	// at once and must not call the breaker.
	OnChange func(Change)
}

// Change is a change of state and what led to it.
type Change struct {
	From, To State
	Stats
}

// Stats are how the latest submits of a state ended: those of the window, or of the row of failures
// if that has more failures. They are zero for a change to HalfOpen.
type Stats struct {
	// Failures is how many of Submits failed.
	Failures, Submits int
	// Code is the most frequent Result.Code of the failures, and Coded how many of the latest
	// 64 had it.
	Code  string
	Coded int
}

// Share is the part of submits that failed, from 0 to 1.
func (s Stats) Share() float64 {
	if s.Submits == 0 {
		return 0
	}
	return float64(s.Failures) / float64(s.Submits)
}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("breaker: name is empty")
	case c.Percent > 100:
		return fmt.Errorf("breaker %s: percent %d is above 100", c.Name, c.Percent)
	case c.Window < 0, c.OpenFor < 0, c.AnswerWithin < 0:
		return fmt.Errorf("breaker %s: window, open-for and answer-within must not be negative",
			c.Name)
	case c.Window > 0 && c.Window < periods:
		return fmt.Errorf("breaker %s: window %s is too short", c.Name, c.Window)
	}
	return nil
}

// withDefaults replaces zero values by their defaults.
func (c Config) withDefaults() Config {
	c.Failures = cmp.Or(c.Failures, 5)
	c.Percent = cmp.Or(c.Percent, 50)
	c.Sample = cmp.Or(c.Sample, 20)
	c.Window = cmp.Or(c.Window, 10*time.Second)
	c.AnswerWithin = cmp.Or(c.AnswerWithin, 10*time.Second)
	c.OpenFor = cmp.Or(c.OpenFor, 5*time.Second)
	c.HalfOpenMax = cmp.Or(c.HalfOpenMax, 1)
	return c
}

// settings converts the configuration for the library, which keeps the state. The library's counts
// in closed state are not used: health decides when to open. Errors given to Execute are nil or one
// of the two classes of this package.
func (c *Config) settings(h *health) gobreaker.Settings {
	return gobreaker.Settings{
		Name:        c.Name,
		MaxRequests: c.HalfOpenMax,
		Timeout:     c.OpenFor,
		ReadyToTrip: func(gobreaker.Counts) bool { return h.broken() },
		IsExcluded:  func(err error) bool { return errors.Is(err, errExcluded) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			change := Change{From: stateOf(from), To: stateOf(to), Stats: h.restart()}
			if c.OnChange != nil {
				c.OnChange(change)
			}
		},
	}
}

// State is the state of a breaker.
type State uint8

const (
	// Closed passes every submission on.
	Closed State = iota
	// HalfOpen passes a few probes on, to test whether the channel has recovered.
	HalfOpen
	// Open passes nothing on.
	Open
)

// String returns the word used in metrics and in the console.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half_open"
	case Open:
		return "open"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	case gobreaker.StateClosed:
		return Closed
	}
	return Closed
}

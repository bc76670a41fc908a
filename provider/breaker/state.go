package breaker

import (
	"fmt"

	"github.com/sony/gobreaker/v2"
)

// State is where a breaker stands.
type State uint8

const (
	// Closed lets everything through.
	Closed State = iota
	// HalfOpen lets a few probes through to see whether the channel is back.
	HalfOpen
	// Open lets nothing through.
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

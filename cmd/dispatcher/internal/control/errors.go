// Package control changes what the dispatcher does, as operators ask for it: the routing document
// with weights, states of channels, limits and pauses; ramps; messages that are cancelled;
// ambiguous submissions that are settled. The commands, the API and the console call it, so that
// all of them check, warn and record the same. It knows neither flags nor HTTP, and does not ask
// who may change what.
package control

import (
	"errors"
	"fmt"

	"dispatcher/ledger"
)

// ErrNoRouting is for a change of a routing that does not exist yet.
var ErrNoRouting = errors.New("there is no routing yet")

// Refused is a mistake in what was asked for; its sentence says what to correct.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &Refused{err}
}

func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }

// Unknown names something that is not there.
type Unknown struct{ Err error }

func (u *Unknown) Error() string { return u.Err.Error() }
func (u *Unknown) Unwrap() error { return u.Err }

func unknownf(format string, args ...any) error { return &Unknown{fmt.Errorf(format, args...)} }

// Conflict is a change that was made from another version than the one in force.
type Conflict struct {
	Expected int64 // that the change was made from
	Current  int64
	// Newer brought the document in force. It is the zero version when Expected is none yet.
	Newer ledger.RoutingVersion
}

func (c *Conflict) Error() string {
	if c.Newer.Version == 0 {
		return fmt.Sprintf("there is no routing version %d yet, the current one is %d: nothing "+
			"was changed", c.Expected, c.Current)
	}
	return fmt.Sprintf("the routing was changed after version %d: %s applied version %d (%q). "+
		"Nothing was changed", c.Expected, c.Newer.Author, c.Newer.Version, c.Newer.Reason)
}

// Impossible is a change that the state of things does not allow now.
type Impossible struct{ Err error }

func (i *Impossible) Error() string { return i.Err.Error() }
func (i *Impossible) Unwrap() error { return i.Err }

func impossiblef(format string, args ...any) error {
	return &Impossible{fmt.Errorf(format, args...)}
}

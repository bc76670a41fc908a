// Package control makes the changes that operators ask for: it edits the routing document with its
// weights, states of channels, limits and pauses; it starts, holds and ends ramps, cancels
// messages, settles ambiguous submissions, replays dead records and sends test messages. The
// commands, the API and the console call it, so that all of them check, warn and record the same.
// It knows neither flags nor HTTP; its callers check permissions.
package control

import (
	"errors"
	"fmt"

	"dispatcher/ledger"
)

// ErrNoRouting means that there is no routing to change or read.
var ErrNoRouting = errors.New("there is no routing yet")

// Refused is a mistake in the request; its text says what to correct.
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

// Unknown means that something named in the request does not exist.
type Unknown struct{ Err error }

func (u *Unknown) Error() string { return u.Err.Error() }
func (u *Unknown) Unwrap() error { return u.Err }

func unknownf(format string, args ...any) error { return &Unknown{fmt.Errorf(format, args...)} }

// Conflict means that the change was based on another version than the one in force.
type Conflict struct {
	Expected int64 // the version that the change was based on
	Current  int64
	// Newer is the version that brought the document in force. It is the zero version when Expected
	// is higher than every version.
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

// Impossible means that the present state does not allow the change.
type Impossible struct{ Err error }

func (i *Impossible) Error() string { return i.Err.Error() }
func (i *Impossible) Unwrap() error { return i.Err }

// Busy means that this instance does too much else now; the same request may succeed later.
type Busy struct{ Err error }

func (b *Busy) Error() string { return b.Err.Error() }
func (b *Busy) Unwrap() error { return b.Err }

func impossiblef(format string, args ...any) error {
	return &Impossible{fmt.Errorf(format, args...)}
}

// Problems returns the parts of a joined error, also of one inside a Refused.
func Problems(err error) []error {
	if refused, ok := errors.AsType[*Refused](err); ok {
		return Problems(refused.Err)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, Problems(e)...)
		}
		return out
	}
	return []error{err}
}

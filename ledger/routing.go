package ledger

import (
	"errors"
	"fmt"
	"time"

	"dispatcher/admission"
)

// Routing is the versions of the routing document, and of the weights that override it.
type Routing struct{ *db }

// ErrNoRouting means that no routing was ever applied.
var ErrNoRouting = errors.New("the ledger has no routing yet")

// VersionConflictError is returned by Apply and ApplyOverrides when somebody else
// changed the routing after the version that the change was based on.
type VersionConflictError struct{ Expected, Current int64 }

// Error names both versions.
func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("the routing was changed meanwhile: the change is based on version %d "+
		"and the current one is %d", e.Expected, e.Current)
}

// RoutingVersion is one routing document that was applied.
type RoutingVersion struct {
	Version int64
	Author  string
	Reason  string
	// CreatedAt, by the database's clock, is when it came into force, later than that of every
	// version before it; see Apply and ApplyOverrides.
	CreatedAt time.Time
	Document  string // YAML, as it was given
	Routes    []RouteSpec
	// Overrides, JSON, are the weights that health weighting put in place of the document's; nil
	// when it has not. The database keeps their meaning, not their spelling.
	Effects []byte
	// Base is the version that brought this document: Version itself, which may keep Overrides
	// of the document before, or an earlier one when only Overrides have changed since.
	Base int64
}

// NewRouting is a document to apply. It has been validated: the ledger does not read it.
type NewRouting struct {
	// Expect is the version that the change is based on, 0 for "there is none yet";
	// nil applies whatever is current. Versions that only changed effects do not count: a
	// change based on the version before them holds.
	Expect   *int64
	Author   string
	Reason   string
	Document string
	// Zone is where the document's days begin. Without it, nothing is told about windows of a day:
	// a limit that is added counts from then on, and a window that is over is closed by the next
	// claim.
	Zone *time.Location
	// Channels are all channels of the document in its order.
	Channels []ChannelSpec
	// Limits are those over all channels: each has a narrower scope. No two have the same key.
	Limits []admission.Limit
	// Routes are all routes of the document; each gets a round-robin cursor. Those of
	// other routes are dropped, and their ramps superseded.
	Routes []RouteSpec
	// Overrides tells what remains, under this document, of the effects that are in force on the
	// current version, as JSON; nil for nothing. It is called with the version that the new
	// one will follow, whatever Expect says, while other appliers wait, and must not use the
	// ledger. Without it, and on the first version, the document starts without effects.
	Effects func(current RoutingVersion) []byte
	// EndsRamp says why this document ends a running or held ramp of a route that it has; empty
	// when it does not. It is called while other appliers wait, and must not use the ledger.
	// Without it only the ramps of routes that are gone are ended.
	EndsRamp func(*Ramp) string
	// Ramp is the ramp whose step, number Ramp.Step, this document is; nil for a change by
	// hand. The ramp moves on in the same transaction, or nothing is applied; see ErrRampMoved.
	Ramp *Ramp
}

// NewOverrides are effects to put on the current document.
type NewOverrides struct {
	// Expect is the version that they were computed for, which must still be the current one.
	Expect int64
	Author string
	Reason string
	// Overrides are a JSON object, which the ledger does not read; nil takes all effects back.
	Overrides []byte
}

// RouteSpec is what the ledger keeps of a route: the rotation of its turns, and for auditors, in
// the document's words, how it chooses.
type RouteSpec struct {
	Name string `json:"route"`
	// Members are the route's channels in configured order, at least one.
	Members []string `json:"members"`
	// Weights are plain decimals, one for each member; nil for a route without weights.
	Weights  []string `json:"weights,omitempty"`
	Mode     string   `json:"mode"`
	Fallback string   `json:"fallback"`
	// LowestFirst says that the lowest score of best worker goes first.
	LowestFirst bool `json:"lowest_first"`
	// Sticky says that the route draws by the recipient's number.
	Sticky bool `json:"sticky,omitempty"`
}

// ChannelSpec is what the ledger keeps of a channel: its bounds.
type ChannelSpec struct {
	Name string
	// ActiveMax bounds the attempts under way; 0 means no bound.
	ActiveMax int64
	// Limits has at most one entry for each key: scope, window and unit.
	Limits []admission.Limit
}

// validate refuses what the tables could not hold.
func (n *NewRouting) validate() error {
	names := make(map[string]bool, len(n.Channels))
	for i := range n.Channels {
		c := &n.Channels[i]
		if c.Name == "" || names[c.Name] {
			return fmt.Errorf("channel %q is empty or listed twice", c.Name)
		}
		names[c.Name] = true
		if c.ActiveMax < 0 {
			return fmt.Errorf("channel %s: active max %d is negative", c.Name, c.ActiveMax)
		}
		if err := validateLimits("channel "+c.Name, c.Limits); err != nil {
			return err
		}
	}
	for i := range n.Limits {
		if n.Limits[i].Scope == (admission.Scope{}) {
			return errors.New("a limit over all channels counts all messages: " +
				"it needs a tenant or a prefix")
		}
	}
	if err := validateLimits("all channels", n.Limits); err != nil {
		return err
	}
	return validateRoutes(n.Routes)
}

// validateLimits refuses limits with the same key, and what the columns could not hold.
func validateLimits(owner string, limits []admission.Limit) error {
	keys := make(map[admission.Key]bool, len(limits))
	for i := range limits {
		l := &limits[i]
		switch {
		case keys[l.Key()]:
			return fmt.Errorf("%s: two limits for %s of %s in the same scope", owner, l.Window,
				l.Unit)
		case l.Max < 0, l.Window.Seconds() <= 0:
			return fmt.Errorf("%s: limit %d per %s is out of range", owner, l.Max, l.Window)
		case (l.Unit == admission.Money) != (l.Currency != ""):
			return fmt.Errorf("%s: limit per %s of %s: currency %q", owner, l.Window, l.Unit,
				l.Currency)
		}
		keys[l.Key()] = true
	}
	return nil
}

func validateRoutes(routes []RouteSpec) error {
	seen := make(map[string]bool, len(routes))
	for i := range routes {
		r := &routes[i]
		if r.Name == "" || seen[r.Name] {
			return fmt.Errorf("route %q is empty or listed twice", r.Name)
		}
		seen[r.Name] = true
		if len(r.Members) == 0 {
			return fmt.Errorf("route %s has no members", r.Name)
		}
		members := make(map[string]bool, len(r.Members))
		for _, channel := range r.Members {
			if channel == "" || members[channel] {
				return fmt.Errorf("route %s: member %q is empty or listed twice", r.Name, channel)
			}
			members[channel] = true
		}
	}
	return nil
}

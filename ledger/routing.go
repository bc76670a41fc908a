package ledger

import (
	"errors"
	"fmt"
	"time"

	"dispatcher/admission"
)

// Routing holds the versions of the routing document, and of the effects that override its weights.
type Routing struct{ *db }

// ErrNoRouting means that no routing was ever applied.
var ErrNoRouting = errors.New("the ledger has no routing yet")

// VersionConflictError is returned by Apply and ApplyEffects when somebody else changed the routing
// after the version that the change was based on.
type VersionConflictError struct{ Expected, Current int64 }

// Error names both versions.
func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("the routing was changed meanwhile: the change is based on version %d "+
		"and the current one is %d", e.Expected, e.Current)
}

// RoutingVersion is one version of the routing that was applied.
type RoutingVersion struct {
	Version int64
	Author  string
	// Login is the database's login that applied it; empty where it was not recorded.
	Login  string
	Via    Via
	Reason string
	// CreatedAt, by the database's clock, is when the version came into force. It is later than that
	// of every version before; see Apply and ApplyEffects.
	CreatedAt time.Time
	Document  string // YAML, as it was given
	Routes    []RouteSpec
	// Effects, JSON, are the weights that health weighting put in place of the document's; nil for
	// none. The column is jsonb: spaces and the order of keys are not kept.
	Effects []byte
	// Base is the version that brought this document. It is Version itself, or an earlier one when
	// only effects have changed since. Version itself may still have effects, see NewRouting.Effects.
	Base int64
}

// NewRouting is a document to apply. The caller has validated it: the ledger does not read it.
type NewRouting struct {
	// Expect is the version that the change is based on, 0 for "there is none yet"; nil applies
	// whatever is current. Later versions that changed only effects are not a conflict.
	Expect   *int64
	Author   string
	Via      Via
	Reason   string
	Document string
	// Zone is the time zone in which the document's days begin. Without it the windows of limits of a
	// day are not known: a limit that is added counts from now on, and a window that is over is closed
	// by the next claim.
	Zone *time.Location
	// Channels are all channels of the document in its order.
	Channels []ChannelSpec
	// Limits are those over all channels: each has a narrower scope. No two have the same key.
	Limits []admission.Limit
	// Routes are all routes of the document; each gets a round-robin cursor. The cursors of other
	// routes are dropped, and their ramps superseded.
	Routes []RouteSpec
	// Effects returns, as JSON, which effects of the current version stay in force under this
	// document; nil for none. current is the version that the new one follows, whatever Expect says.
	// It is called while other appliers wait, and must not use the ledger. When Effects is nil, and on
	// the first version, the document starts without effects.
	Effects func(current RoutingVersion) []byte
	// EndsRamp returns why this document ends a running or held ramp of a route that it has; empty
	// when it does not. It is called while other appliers wait, and must not use the ledger. When
	// EndsRamp is nil, only the ramps of removed routes are ended.
	EndsRamp func(*Ramp) string
	// Ramp is the ramp that this document advances to step Ramp.Step; nil for a change by hand. The
	// ramp moves on in the same transaction, or nothing is applied; see ErrRampMoved.
	Ramp *Ramp
}

// NewEffects are effects to put on the current document.
type NewEffects struct {
	// Expect is the version that the effects were computed for. It must still be the current one.
	Expect int64
	Author string
	Reason string
	// Overrides are the effects, a JSON object that the ledger does not read; nil removes all effects.
	Overrides []byte
}

// RouteSpec is what the ledger stores of a route: the members of its round robin and, for auditors,
// how it chooses, in the words of the document.
type RouteSpec struct {
	Name string `json:"route"`
	// Members are the route's channels in configured order, at least one.
	Members []string `json:"members"`
	// Weights are plain decimals, one for each member; nil for a route without weights.
	Weights  []string `json:"weights,omitempty"`
	Mode     string   `json:"mode"`
	Fallback string   `json:"fallback"`
	// LowestFirst says that the mode best_worker takes the lowest score first.
	LowestFirst bool `json:"lowest_first"`
	// Sticky says that the route draws by the recipient's number.
	Sticky bool `json:"sticky,omitempty"`
}

// ChannelSpec is what the ledger stores of a channel: its bounds.
type ChannelSpec struct {
	Name string
	// ActiveMax bounds the attempts in flight; 0 means no bound.
	ActiveMax int64
	// Limits has at most one entry for each key: scope, window and unit.
	Limits []admission.Limit
}

// validate returns an error for what the tables cannot hold.
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

// validateLimits returns an error for limits with the same key, and for what the columns cannot
// hold.
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

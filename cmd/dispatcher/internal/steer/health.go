package steer

import (
	"fmt"
	"math/big"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// HealthKind is the direction of a move of health weighting.
type HealthKind string

// Kinds of HealthMove.
const (
	HealthDown HealthKind = "down"
	HealthUp   HealthKind = "up"
)

// HealthMove is one change of one effective weight.
type HealthMove struct {
	Kind    HealthKind
	Route   string
	Channel string
	From    selector.Weight
	To      selector.Weight
	// Reason is a sentence for the record: "default: c 60 -> 45: 23 errors in 1m0s".
	Reason string
}

// Faults are the figures that health weighting uses: what went wrong on each channel within
// the route's window and within its quiet time.
type Faults struct{ Window, Quiet []ledger.Fault }

// NextHealthMove decides on the one move that health weighting makes on a route now; false when
// there is none to make. lastMove is when it last moved a weight of this route, zero for never.
//
// Down goes the channel with the most errors within the window, by Step percent of its configured
// weight and never below Floor percent of it. It does not when every channel that could carry the
// messages is bad too: then a lower weight only moves the harm. A channel whose lowered weight has
// not had its quiet time still counts as bad. When nothing goes down, the channel furthest below
// its configured weight goes up by Step percent, once it had fewer errors in the quiet time than
// the window allows.
//
// Weights are exact: Step and Floor are percentages, so two more decimals hold them. A weight that
// has no room for these, because of its own decimals or its size, moves by the nearest amount that
// has, and its floor is rounded up.
func NextHealthMove(
	routing *config.Routing, route *config.Route, faults Faults, lastMove, now time.Time,
) (HealthMove, bool) {
	h := route.Health
	if h == nil || now.Before(lastMove.Add(h.Interval)) {
		return HealthMove{}, false
	}
	members := membersOf(routing, route, faults)
	if m := worst(members); m != nil {
		return m.move(route, HealthDown, m.lower(), fmt.Sprintf("%d errors in %s", m.recent,
			h.Window)), true
	}
	if m := furthest(members); m != nil {
		return m.move(route, HealthUp, m.raise(), fmt.Sprintf("%d errors in %s", m.quiet,
			h.Quiet)), true
	}
	return HealthMove{}, false
}

// member is a weighted channel of a route.
type member struct {
	config.Weight
	enabled       bool
	recent, quiet int64 // errors within the window and the quiet time
	limit         int64 // so many make it bad
	step          *big.Rat
	floor         selector.Weight
	places        int
}

func membersOf(routing *config.Routing, route *config.Route, faults Faults) []member {
	states := make(map[string]config.State, len(routing.Channels))
	for i := range routing.Channels {
		states[routing.Channels[i].Name] = routing.Channels[i].State
	}
	recent, quiet := errorsOf(faults.Window), errorsOf(faults.Quiet)
	most, sum := 0, new(big.Rat)
	for _, w := range route.Weights {
		most = max(most, decimals(w.Configured))
		sum.Add(sum, exact(w.Configured))
	}
	places := resolution(2, most, sum)
	var out []member
	for _, w := range route.Weights {
		if w.Configured.IsZero() {
			continue // it draws nothing, whatever it does
		}
		out = append(out, member{
			Weight: w, enabled: states[w.Channel] == config.Enabled,
			recent: recent[w.Channel], quiet: quiet[w.Channel], limit: route.Health.Errors,
			step:  share(w.Configured, route.Health.Step),
			floor: atLeast(share(w.Configured, route.Health.Floor), places), places: places,
		})
	}
	return out
}

func errorsOf(faults []ledger.Fault) map[string]int64 {
	out := make(map[string]int64, len(faults))
	for _, f := range faults {
		out[f.Channel] += f.Errors
	}
	return out
}

// share is so many percent of a weight.
func share(w selector.Weight, percent int) *big.Rat {
	return new(big.Rat).Mul(exact(w), big.NewRat(int64(percent), 100))
}

// failing reports whether the channel has so many errors now.
func (m *member) failing() bool { return m.recent >= m.limit }

// lowered reports whether the channel is below its configured weight.
func (m *member) lowered() bool { return exact(m.Weight.Weight).Cmp(exact(m.Configured)) < 0 }

// bad reports whether the channel is failing or has not yet been shown to have recovered.
func (m *member) bad() bool { return m.failing() || m.lowered() && m.quiet >= m.limit }

// worst is the channel to move down; nil when there is none.
func worst(members []member) *member {
	var out *member
	good := false
	for i := range members {
		m := &members[i]
		if !m.enabled {
			continue // nothing is sent there, and it can take nothing over
		}
		good = good || !m.bad()
		if m.failing() && exact(m.Weight.Weight).Cmp(exact(m.floor)) > 0 &&
			(out == nil || m.recent > out.recent) {
			out = m
		}
	}
	if !good {
		return nil
	}
	return out
}

// furthest is the channel to move up; nil when there is none.
func furthest(members []member) *member {
	var out *member
	for i := range members {
		m := &members[i]
		if m.lowered() && !m.bad() && (out == nil || m.left().Cmp(out.left()) < 0) {
			out = m
		}
	}
	return out
}

// left is the part of the configured weight that is in force.
func (m *member) left() *big.Rat {
	return new(big.Rat).Quo(exact(m.Weight.Weight), exact(m.Configured))
}

// lower is the weight one step down.
func (m *member) lower() selector.Weight {
	to := new(big.Rat).Sub(exact(m.Weight.Weight), m.step)
	if to.Cmp(exact(m.floor)) <= 0 {
		return m.floor
	}
	return m.unlessStuck(nearest(to, m.places), m.floor)
}

// raise is the weight one step up.
func (m *member) raise() selector.Weight {
	to := new(big.Rat).Add(exact(m.Weight.Weight), m.step)
	if to.Cmp(exact(m.Configured)) >= 0 {
		return m.Configured
	}
	return m.unlessStuck(nearest(to, m.places), m.Configured)
}

// unlessStuck moves a weight that rounding would leave where it is all the way.
func (m *member) unlessStuck(to, end selector.Weight) selector.Weight {
	if to == m.Weight.Weight {
		return end
	}
	return to
}

func (m *member) move(
	route *config.Route, kind HealthKind, to selector.Weight, why string,
) HealthMove {
	return HealthMove{
		Kind: kind, Route: route.Name, Channel: m.Channel, From: m.Weight.Weight, To: to,
		Reason: fmt.Sprintf("%s: %s %s -> %s: %s", route.Name, m.Channel, m.Weight.Weight, to, why),
	}
}

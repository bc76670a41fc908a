package steer

import (
	"fmt"
	"math"
	"math/big"
	"slices"
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

// Faults are the figures that health weighting uses, each for the route's window and for its quiet
// time: the errors of each channel, and the messages that each delivered in time. The latter are
// empty when the route does not use receipts, and leave out channels that send no receipts.
type Faults struct {
	Window, Quiet             []ledger.Fault
	WindowTimely, QuietTimely []ledger.Timely
}

// NextHealthMove decides on the one move that health weighting makes on a route now; false when
// there is none. lastMove is when it last moved a weight of this route, zero for never.
//
// Down: of the failing channels, the one with the most errors in the window; if none has too many,
// the one that delivered the smallest part in time. Its weight falls by Step percent of the
// configured weight, never below Floor percent of that. No weight falls when every enabled channel
// of the route is bad, because the messages would only fail elsewhere. Bad is a channel that fails
// now, and one with a lowered weight that failed within its quiet time.
//
// Up: when no weight falls, the channel furthest below its configured weight rises by Step percent,
// unless it is bad.
//
// Step and Floor are percentages, so two more decimals make the new weight exact. Where those do
// not fit (see selector.Places), the weight is rounded to the nearest that fits, and the floor up.
func NextHealthMove(
	routing *config.Routing, route *config.Route, faults Faults, lastMove, now time.Time,
) (HealthMove, bool) {
	h := route.Health
	if h == nil || now.Before(lastMove.Add(h.Interval)) {
		return HealthMove{}, false
	}
	members := membersOf(routing, route, faults)
	if m := worst(members); m != nil {
		return m.move(route, HealthDown, m.lower(), m.whyBad(h)), true
	}
	if m := furthest(members); m != nil {
		return m.move(route, HealthUp, m.raise(), m.whyGood(h)), true
	}
	return HealthMove{}, false
}

// member is a weighted channel of a route.
type member struct {
	config.Weight
	enabled       bool
	recent, quiet int64 // errors within the window and the quiet time
	limit         int64 // this many errors make it fail
	// What it delivered in time, within the window and within the quiet time, if the route uses
	// receipts; and whether that is too little.
	timely, quietTimely ledger.Timely
	slow, quietSlow     bool
	step                *big.Rat
	floor               selector.Weight
	places              int
}

func membersOf(routing *config.Routing, route *config.Route, faults Faults) []member {
	states := make(map[string]config.ChannelState, len(routing.Channels))
	for i := range routing.Channels {
		states[routing.Channels[i].Name] = routing.Channels[i].State
	}
	recent, quiet := errorsOf(faults.Window), errorsOf(faults.Quiet)
	most, sum := 0, new(big.Rat)
	for _, w := range route.Weights {
		most = max(most, w.Configured.Decimals())
		sum.Add(sum, w.Configured.Rat())
	}
	places := selector.Places(most+2, sum)
	var out []member
	for _, w := range route.Weights {
		if w.Configured.IsZero() {
			continue // it gets no messages by draw, and a part of 0 is 0
		}
		m := member{
			Weight: w, enabled: states[w.Channel] == config.Enabled,
			recent: recent[w.Channel], quiet: quiet[w.Channel], limit: route.Health.Errors,
			step:  share(w.Configured, route.Health.Step),
			floor: selector.RoundUp(share(w.Configured, route.Health.Floor), places), places: places,
		}
		m.timely, m.slow = deliveredBy(faults.WindowTimely, w.Channel, route.Health.Receipts)
		m.quietTimely, m.quietSlow = deliveredBy(faults.QuietTimely, w.Channel,
			route.Health.Receipts)
		out = append(out, m)
	}
	return out
}

// deliveredBy is what a channel delivered in time, and whether it is slow: whether that is less
// than h asks for, by more than chance explains.
func deliveredBy(
	figures []ledger.Timely, channel string, h *config.HealthReceipts,
) (t ledger.Timely, slow bool) {
	at := slices.IndexFunc(figures, func(t ledger.Timely) bool { return t.Channel == channel })
	if at < 0 || h == nil {
		return t, false
	}
	t = figures[at]
	n, want := float64(t.Accepted), float64(h.Delivered)/100
	least := n*want - chance*math.Sqrt(n*want*(1-want))
	return t, t.Accepted >= h.Least && float64(t.Delivered) < least
}

// part is the part that was delivered in time, from 0 to 1; 1 when nothing was accepted.
func part(t ledger.Timely) float64 {
	if t.Accepted == 0 {
		return 1
	}
	return float64(t.Delivered) / float64(t.Accepted)
}

// whyBad says why the weight is lowered.
func (m *member) whyBad(h *config.Health) string {
	if m.recent >= m.limit {
		return fmt.Sprintf("%d errors in %s", m.recent, h.Window)
	}
	return fmt.Sprintf("%d of %d messages in %s delivered within %s", m.timely.Delivered,
		m.timely.Accepted, h.Receipts.Window, h.Receipts.Within)
}

// whyGood says why the weight is raised.
func (m *member) whyGood(h *config.Health) string {
	why := fmt.Sprintf("%d errors in %s", m.quiet, h.Quiet)
	if h.Receipts != nil && m.quietTimely.Accepted > 0 {
		why += fmt.Sprintf(", %d of %d messages delivered within %s", m.quietTimely.Delivered,
			m.quietTimely.Accepted, h.Receipts.Within)
	}
	return why
}

func errorsOf(faults []ledger.Fault) map[string]int64 {
	out := make(map[string]int64, len(faults))
	for _, f := range faults {
		out[f.Channel] += f.Errors
	}
	return out
}

// share is a percentage of a weight.
func share(w selector.Weight, percent int) *big.Rat {
	return new(big.Rat).Mul(w.Rat(), big.NewRat(int64(percent), 100))
}

// failing reports whether the channel has too many errors now, or delivers too little in time.
func (m *member) failing() bool { return m.recent >= m.limit || m.slow }

// worse reports whether the channel moves down before another failing one. Channels with too many
// errors come first, those with the most errors before the rest; then the one that delivers the
// smaller part in time.
func (m *member) worse(than *member) bool {
	mine, others := m.recent >= m.limit, than.recent >= than.limit
	switch {
	case mine != others:
		return mine
	case mine:
		return m.recent > than.recent
	}
	return part(m.timely) < part(than.timely)
}

// lowered reports whether the channel is below its configured weight.
func (m *member) lowered() bool { return m.Weight.Weight.Less(m.Configured) }

// bad reports whether the channel is failing or has not yet been shown to have recovered.
func (m *member) bad() bool {
	return m.failing() || m.lowered() && (m.quiet >= m.limit || m.quietSlow)
}

// worst is the channel to move down; nil when there is none.
func worst(members []member) *member {
	var out *member
	good := false
	for i := range members {
		m := &members[i]
		if !m.enabled {
			continue // it gets no messages, and cannot take over those of others
		}
		good = good || !m.bad()
		if m.failing() && m.floor.Less(m.Weight.Weight) && (out == nil || m.worse(out)) {
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

// left is the effective weight as a part of the configured one.
func (m *member) left() *big.Rat {
	return new(big.Rat).Quo(m.Weight.Weight.Rat(), m.Configured.Rat())
}

// lower is the weight one step down.
func (m *member) lower() selector.Weight {
	to := new(big.Rat).Sub(m.Weight.Weight.Rat(), m.step)
	if to.Cmp(m.floor.Rat()) <= 0 {
		return m.floor
	}
	return m.unlessStuck(selector.RoundHalfUp(to, m.places), m.floor)
}

// raise is the weight one step up.
func (m *member) raise() selector.Weight {
	to := new(big.Rat).Add(m.Weight.Weight.Rat(), m.step)
	if to.Cmp(m.Configured.Rat()) >= 0 {
		return m.Configured
	}
	return m.unlessStuck(selector.RoundHalfUp(to, m.places), m.Configured)
}

// unlessStuck returns to, or end where rounding would leave the weight unchanged for ever.
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

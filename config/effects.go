package config

import (
	"encoding/json"
	"fmt"
	"math/big"

	"dispatcher/selector"
)

// Effects are what a routing version adds to its document without changing it: the weights that
// health weighting has lowered, by route and channel.
type Effects struct {
	Weights map[string]map[string]selector.Weight `json:"weights"`
}

// ParseEffects reads the JSON that Encode wrote. Empty text means no effects. Unknown keys belong
// to a later program and are ignored.
func ParseEffects(text []byte) (Effects, error) {
	var e Effects
	if len(text) == 0 {
		return e, nil
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return Effects{}, fmt.Errorf("effects of a routing version: %w", err)
	}
	return e, nil
}

// Set sets one effective weight.
func (e *Effects) Set(route, channel string, w selector.Weight) {
	if e.Weights == nil {
		e.Weights = map[string]map[string]selector.Weight{}
	}
	if e.Weights[route] == nil {
		e.Weights[route] = map[string]selector.Weight{}
	}
	e.Weights[route][channel] = w
}

// Empty reports whether there are no effects.
func (e Effects) Empty() bool {
	for _, weights := range e.Weights {
		if len(weights) > 0 {
			return false
		}
	}
	return true
}

// Encode is the JSON that ParseEffects reads; the same effects give the same bytes. Nil when there
// are no effects.
func (e Effects) Encode() []byte {
	if e.Empty() {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic("config: " + err.Error()) // texts and weights can always be encoded
	}
	return text
}

// VersionName is the name of a version's document in errors.
func VersionName(version int64) string { return fmt.Sprintf("routing version %d", version) }

// ParseVersion reads a stored routing version: its document as ParseApplied does, and its routing
// with the effects on its weights, which may be empty.
//
// Effects belong to the document of their version, since a new document gets those that KeepEffects
// makes for it. Effects that do not fit, because another program wrote them, are dropped without an
// error: of a missing route or channel, of a route without health weighting, a weight that is not
// below the configured one, and all weights of a route that would then have no valid table. So the
// table of every route is always valid.
func ParseVersion(version int64, document string, effects []byte) (*Document, *Routing, error) {
	d, err := ParseApplied(VersionName(version), []byte(document))
	if err != nil {
		return nil, nil, err
	}
	e, err := ParseEffects(effects)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", VersionName(version), err)
	}
	return d, d.Routing.With(e), nil
}

// With returns the routing with effects applied; see ParseVersion.
func (r *Routing) With(e Effects) *Routing {
	if e.Empty() {
		return r
	}
	out := r.clone()
	for i := range out.Routes {
		out.Routes[i].lower(e.Weights[out.Routes[i].Name])
	}
	return out
}

// lower applies effective weights where they fit.
func (r *Route) lower(weights map[string]selector.Weight) {
	if r.Health == nil || len(weights) == 0 {
		return
	}
	for i := range r.Weights {
		w := &r.Weights[i]
		if effective, ok := weights[w.Channel]; ok && effective.Less(w.Configured) {
			w.Weight = effective
		}
	}
	if _, err := selector.NewTable(r.Entries()); err == nil {
		return
	}
	for i := range r.Weights {
		r.Weights[i].Weight = r.Weights[i].Configured
	}
}

// KeepEffects are the effects that remain when the document of after replaces the document of
// before. Each lowered channel keeps the same proportion of its new configured weight, so that no
// change of the document undoes the reduction of a failing channel.
//
// The proportion is as exact as a valid table allows: it is rounded to at most nine decimals, fewer
// next to large weights, and is never below the floor of the new document, rounded up. Effects are
// dropped when their route is gone or has no health weighting any more, and when their channel is
// gone, has the weight 0, or has a weight that leaves no room for a smaller one.
func KeepEffects(before, after *Routing) Effects {
	earlier := make(map[string]*Route, len(before.Routes))
	for i := range before.Routes {
		earlier[before.Routes[i].Name] = &before.Routes[i]
	}
	var e Effects
	for i := range after.Routes {
		route := &after.Routes[i]
		was := earlier[route.Name]
		if was == nil || route.Health == nil {
			continue
		}
		for channel, w := range route.keepLowered(was) {
			e.Set(route.Name, channel, w)
		}
	}
	return e
}

// keepLowered are the lowered weights of a route that stay lowered.
func (r *Route) keepLowered(before *Route) map[string]selector.Weight {
	left := map[string]*big.Rat{} // effective weights as fractions of the configured ones
	for _, w := range before.Weights {
		if w.Weight.Less(w.Configured) {
			left[w.Channel] = new(big.Rat).Quo(w.Weight.Rat(), w.Configured.Rat())
		}
	}
	if len(left) == 0 {
		return nil
	}
	sum := new(big.Rat) // no effective weight is above the configured one
	for _, w := range r.Weights {
		sum.Add(sum, w.Configured.Rat())
	}
	places := selector.Places(selector.MaxDecimals, sum)
	least := big.NewRat(int64(r.Health.Floor), 100)
	out := map[string]selector.Weight{}
	for _, w := range r.Weights {
		part, lowered := left[w.Channel]
		if !lowered {
			continue
		}
		configured := w.Configured.Rat()
		effective := selector.RoundHalfUp(new(big.Rat).Mul(configured, part), places)
		floor := selector.RoundUp(new(big.Rat).Mul(configured, least), places)
		if effective.Less(floor) {
			effective = floor
		}
		if effective.Less(w.Configured) {
			out[w.Channel] = effective
		}
	}
	return out
}

package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"dispatcher/selector"
)

// Effects are what a routing version adds to its document without changing it: the
// lowered weights of health weighting, by route and channel.
type Effects struct {
	Weights map[string]map[string]selector.Weight `json:"weights"`
}

// ParseEffects reads the JSON that Encode wrote. No text at all means no effects. Keys
// that it does not know belong to a later program and are ignored.
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

// EffectsOf are the effects that are in force in a routing: every weight that differs
// from the configured one.
func EffectsOf(r *Routing) Effects {
	var e Effects
	for i := range r.Routes {
		route := &r.Routes[i]
		for _, w := range route.Weights {
			if w.Weight != w.Configured {
				e.Set(route.Name, w.Channel, w.Weight)
			}
		}
	}
	return e
}

// Set puts one weight in force.
func (e *Effects) Set(route, channel string, w selector.Weight) {
	if e.Weights == nil {
		e.Weights = map[string]map[string]selector.Weight{}
	}
	if e.Weights[route] == nil {
		e.Weights[route] = map[string]selector.Weight{}
	}
	e.Weights[route][channel] = w
}

// Empty reports whether nothing is in force.
func (e Effects) Empty() bool {
	for _, weights := range e.Weights {
		if len(weights) > 0 {
			return false
		}
	}
	return true
}

// Encode is the JSON that ParseEffects reads, the same bytes for the same effects; nil
// when nothing is in force.
func (e Effects) Encode() []byte {
	if e.Empty() {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic("config: " + err.Error()) // texts and weights can always be written
	}
	return text
}

// ParseVersion reads a routing version: its document as ParseApplied does, and the
// effects on its weights, which may be empty.
//
// Effects belong to the document of their version, since a new document gets those that
// CarryEffects makes for it. What does not fit all the same, because another program wrote it,
// is left out without an error: a route or channel that is not there, a route without health
// weighting, a weight that is not below the configured one, and all weights of a route
// that would then have no valid table. The table of every route is valid in each case.
func ParseVersion(name string, document, effects []byte) (*Routing, error) {
	d, err := ParseApplied(name, document)
	if err != nil {
		return nil, err
	}
	e, err := ParseEffects(effects)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d.Routing.With(e), nil
}

// With returns the routing with effects in force; see ParseVersion.
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

// lower puts effective weights in force where they fit.
func (r *Route) lower(weights map[string]selector.Weight) {
	if r.Health == nil || len(weights) == 0 {
		return
	}
	for i := range r.Weights {
		w := &r.Weights[i]
		if effective, ok := weights[w.Channel]; ok && compareWeights(effective, w.Configured) < 0 {
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

// compareWeights compares exact decimals: their shortest texts have neither leading
// zeros nor zeros at the end of the fraction.
func compareWeights(a, b selector.Weight) int {
	wholeA, fractionA, _ := strings.Cut(a.String(), ".")
	wholeB, fractionB, _ := strings.Cut(b.String(), ".")
	return cmp.Or(
		cmp.Compare(len(wholeA), len(wholeB)),
		strings.Compare(wholeA, wholeB),
		strings.Compare(fractionA, fractionB),
	)
}

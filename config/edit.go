package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// edited is the name of a document that is changed in place, for error sentences.
const edited = "routing"

// SetWeights returns the document with other weights for some channels of a route and
// every other byte as it was. A channel that the route lacks is added behind the others,
// in the style of its neighbour. It takes Channel and Weight of each member given.
//
// It refuses what would not be a valid document, a route without weights, and a weight
// that is shared by an anchor or written in a way that cannot be edited in place. The
// result has been read again and differs from the document in the weights alone.
func SetWeights(document []byte, route string, weights []Weight) ([]byte, error) {
	want, root, err := readForEdit(document)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(want.Routes, func(r Route) bool { return r.Name == route })
	if at < 0 {
		names := want.routeNames()
		return nil, fmt.Errorf("there is no route %q; %s", route, suggest(route, names, "known are "+strings.Join(names, ", ")))
	}
	if err := checkNewWeights(want, &want.Routes[at], weights); err != nil {
		return nil, err
	}
	e := newEditor(document)
	if err := e.setWeights(root, &want.Routes[at], weights); err != nil {
		return nil, err
	}
	for _, w := range weights {
		want.Routes[at].setWeight(w)
	}
	return e.finish(want)
}

// SetState returns the document with another state for a channel and every other byte as
// it was. A channel that states none gets the key behind its provider. It gives the
// guarantees of SetWeights.
func SetState(document []byte, channel string, state State) ([]byte, error) {
	if !slices.Contains(states, string(state)) {
		return nil, fmt.Errorf("state %q is unknown; use %s", state, strings.Join(states, " or "))
	}
	want, root, err := readForEdit(document)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(want.Channels, func(c Channel) bool { return c.Name == channel })
	if at < 0 {
		return nil, noChannel(want, channel)
	}
	e := newEditor(document)
	if want.Channels[at].State != state {
		if err := e.setState(root, channel, state); err != nil {
			return nil, err
		}
	}
	want.Channels[at].State = state
	return e.finish(want)
}

// readForEdit reads a document twice: as a routing that is the caller's to change, and
// as nodes with their positions.
func readForEdit(document []byte) (*Routing, *yaml.Node, error) {
	routing, err := ParseApplied(edited, document)
	if err != nil {
		return nil, nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", edited, err)
	}
	return routing, root.Content[0], nil
}

func noChannel(r *Routing, name string) error {
	return fmt.Errorf("there is no channel %q; %s", name, suggest(name, r.ChannelNames(), "define it under channels"))
}

func checkNewWeights(routing *Routing, r *Route, weights []Weight) error {
	if r.Weights == nil {
		return fmt.Errorf("route %s lists its channels without weights, because mode %s chooses without them", r.Name, r.Mode)
	}
	named := map[string]bool{}
	for _, w := range weights {
		if !slices.ContainsFunc(routing.Channels, func(c Channel) bool { return c.Name == w.Channel }) {
			return noChannel(routing, w.Channel)
		}
		if named[w.Channel] {
			return fmt.Errorf("channel %s is given two weights", w.Channel)
		}
		named[w.Channel] = true
	}
	return nil
}

// setWeight is the change that SetWeights makes to the text, made to the values.
func (r *Route) setWeight(w Weight) {
	set := Weight{Channel: w.Channel, Weight: w.Weight, Configured: w.Weight}
	for i := range r.Weights {
		if r.Weights[i].Channel == w.Channel {
			r.Weights[i] = set
			return
		}
	}
	r.Weights = append(r.Weights, set)
	r.Channels = append(r.Channels, w.Channel)
}

// setWeights finds the weights of a route in the document and edits them.
func (e *editor) setWeights(root *yaml.Node, r *Route, weights []Weight) error {
	routes, err := e.step(root, "routes")
	if err != nil {
		return err
	}
	route, err := e.item(routes, r.Name)
	if err != nil {
		return err
	}
	node, err := e.step(route, "weights")
	if err != nil {
		return err
	}
	var added []pair
	for _, w := range weights {
		at := keyOf(node, w.Channel)
		if at < 0 {
			added = append(added, pair{key: w.Channel, value: w.Weight.String()})
			continue
		}
		if i := slices.IndexFunc(r.Weights, func(o Weight) bool { return o.Channel == w.Channel }); r.Weights[i].Weight == w.Weight {
			continue // perhaps spelt otherwise, which is not ours to change
		}
		if err := e.replace(node, at, w.Weight.String()); err != nil {
			return err
		}
	}
	return e.insert(node, len(node.Content)-2, added)
}

// setState finds a channel in the document and edits its state. Enabled is the default,
// so a channel without the key, or with an empty one, is enabled.
func (e *editor) setState(root *yaml.Node, channel string, state State) error {
	channels, err := e.step(root, "channels")
	if err != nil {
		return err
	}
	node, err := e.step(channels, channel)
	if err != nil {
		return err
	}
	if at := keyOf(node, "state"); at >= 0 {
		return e.replace(node, at, string(state))
	}
	return e.insert(node, keyOf(node, "provider"), []pair{{key: "state", value: string(state)}})
}

// finish applies the edits and reads the result: nothing but what was wanted may differ.
func (e *editor) finish(want *Routing) ([]byte, error) {
	document := e.apply()
	got, err := ParseApplied(edited, document)
	if err != nil {
		return nil, err
	}
	if unwanted := Diff(want, got); len(unwanted) > 0 {
		return nil, fmt.Errorf("the edit would also change %s; %s", unwanted[0].Path, byHand)
	}
	return document, nil
}

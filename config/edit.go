package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetWeights returns the document with other weights for some channels of a route. A channel that
// the route lacks is added at the end. It uses Channel and Weight of each given member.
//
// Comments, order and quotes stay; see rewrite. It is an error if the result would not be a valid
// document, if the route has no weights, or if a weight is shared by an anchor. The result has been
// parsed again and differs from the document only in the weights.
func (d *Document) SetWeights(route string, weights []Weight) (*Document, error) {
	want := d.Routing.clone()
	r := want.Route(route)
	if r == nil {
		names := want.RouteNames()
		return nil, fmt.Errorf("there is no route %q; %s", route, suggest(route, names,
			"known are "+strings.Join(names, ", ")))
	}
	if err := checkNewWeights(want, r, weights); err != nil {
		return nil, err
	}
	weights = slices.DeleteFunc(slices.Clone(weights),
		func(w Weight) bool { return slices.Contains(r.Weights, configured(w)) })
	if len(weights) == 0 {
		return d, nil
	}
	for _, w := range weights {
		r.setWeight(w)
	}
	return d.rewrite(want, []string{"routes", route, "weights"}, func(mapping *yaml.Node,
		at int,
	) error {
		node := mapping.Content[at+1]
		last := len(node.Content) - 2
		for _, w := range weights {
			if at := indexOf(node, w.Channel); at >= 0 {
				if err := setScalar(node, at, w.Weight.String()); err != nil {
					return err
				}
				continue
			}
			style := node.Content[last+1].Style
			insert(node, len(node.Content)-2, w.Channel, &yaml.Node{
				Kind:  yaml.ScalarNode,
				Value: w.Weight.String(), Style: style & quotes,
			})
		}
		return nil
	})
}

// SetState returns the document with another state for a channel. If the document gives the channel
// no state, the key is added after its provider. It gives the guarantees of SetWeights.
func (d *Document) SetState(channel string, state ChannelState) (*Document, error) {
	if !slices.Contains(states, state) {
		return nil, fmt.Errorf("state %q is unknown; use enabled or draining or disabled", state)
	}
	want := d.Routing.clone()
	c := want.Channel(channel)
	if c == nil {
		return nil, noChannel(want, channel)
	}
	if c.State == state {
		return d, nil
	}
	c.State = state
	path := []string{"channels", channel, "state"}
	if !hasPath(d.root, path) {
		path[2] = "provider"
	}
	return d.rewrite(want, path, func(mapping *yaml.Node, at int) error {
		if mapping.Content[at].Value == "state" {
			return setScalar(mapping, at, string(state))
		}
		style := mapping.Content[at+1].Style
		insert(mapping, at, "state", &yaml.Node{
			Kind: yaml.ScalarNode, Value: string(state),
			Style: style & quotes,
		})
		return nil
	})
}

// rewrite changes the entry at a path, and checks that the new document describes the routing want.
func (d *Document) rewrite(want *Routing, path []string, change func(mapping *yaml.Node,
	at int) error,
) (*Document, error) {
	text, err := rewrite(d.Text, d.root, path, change)
	if err != nil {
		return nil, d.refuse(err)
	}
	return d.edited(text, func(*Routing) *Routing { return want })
}

// hasPath reports whether a path exists in the document.
func hasPath(node *yaml.Node, path []string) bool {
	for _, step := range path {
		at := indexOf(node, step)
		if at < 0 {
			return false
		}
		node = resolve(valueAt(node, at))
	}
	return true
}

func noChannel(r *Routing, name string) error {
	return fmt.Errorf("there is no channel %q; %s", name, suggest(name, r.ChannelNames(),
		"define it under channels"))
}

func checkNewWeights(routing *Routing, r *Route, weights []Weight) error {
	if r.Weights == nil {
		return fmt.Errorf("route %s lists its channels without weights, because mode %s chooses "+
			"without them", r.Name, r.Mode)
	}
	named := map[string]bool{}
	for _, w := range weights {
		if routing.Channel(w.Channel) == nil {
			return noChannel(routing, w.Channel)
		}
		if named[w.Channel] {
			return fmt.Errorf("channel %s is given two weights", w.Channel)
		}
		named[w.Channel] = true
	}
	return nil
}

// configured is a weight without effects.
func configured(w Weight) Weight {
	return Weight{Channel: w.Channel, Weight: w.Weight, Configured: w.Weight}
}

// setWeight makes the change of SetWeights to the parsed route.
func (r *Route) setWeight(w Weight) {
	if at := slices.Index(r.Channels, w.Channel); at >= 0 {
		r.Weights[at] = configured(w)
		return
	}
	r.Weights = append(r.Weights, configured(w))
	r.Channels = append(r.Channels, w.Channel)
}

// quotes are the styles of a quoted scalar.
const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle

// setScalar gives a key another value. Quotes and comments stay; for a key without a value the
// quotes of the key are used.
func setScalar(mapping *yaml.Node, at int, text string) error {
	key, value := mapping.Content[at], mapping.Content[at+1]
	if value.Kind == yaml.AliasNode || value.Anchor != "" {
		return fmt.Errorf("%s is shared by an anchor; %s", key.Value, byHand)
	}
	style := value.Style
	if value.Tag == "!!null" {
		style = key.Style
	}
	value.Kind, value.Tag, value.Value, value.Style = yaml.ScalarNode, "", text, style&quotes
	return nil
}

// insert adds an entry after the one at an index, with the quotes of its key.
func insert(mapping *yaml.Node, at int, name string, value *yaml.Node) {
	key := &yaml.Node{
		Kind: yaml.ScalarNode, Tag: "!!str", Value: name,
		Style: mapping.Content[at].Style & quotes,
	}
	mapping.Content = slices.Insert(mapping.Content, at+2, key, value)
}

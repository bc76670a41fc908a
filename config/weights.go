package config

import (
	"go.yaml.in/yaml/v3"

	"dispatcher/selector"
)

// Weight is one weighted channel of a route.
type Weight struct {
	Channel string
	// Weight is the effective weight: the one used by draws.
	Weight selector.Weight
	// Configured is the weight in the document. Weight differs from it only while health weighting has
	// lowered it.
	Configured selector.Weight
}

// Entries are the weights as selector.NewTable takes them.
func (r *Route) Entries() []selector.Entry {
	out := make([]selector.Entry, len(r.Weights))
	for i, w := range r.Weights {
		out[i] = selector.Entry{Name: w.Channel, Weight: w.Weight}
	}
	return out
}

// readMembers reads the channels of a route: under weights with their weights, or under channels
// without. Draws need weights; modes and rankings without draws do not.
func readMembers(f fields, r *Route, known *scope) {
	weights, hasWeights := f.get("weights")
	channels, hasChannels := f.get("channels")
	switch {
	case hasWeights && hasChannels:
		channels.fail("weights and channels exclude each other; keep weights")
	case hasChannels:
		r.Channels = readList(channels, known)
		refuseUnweighted(channels, r)
		return
	case !hasWeights && r.Draws():
		f.of.fail("weights is missing; write for example weights: {a: 25, b: 75}")
		return
	case !hasWeights:
		f.of.fail("channels is missing; write for example channels: [a, b]")
		return
	}
	r.Weights = readWeights(weights, known)
	for _, w := range r.Weights {
		r.Channels = append(r.Channels, w.Channel)
	}
}

// readList reads members without weights.
func readList(v value, known *scope) []string {
	items := v.items()
	if len(items) == 0 && v.node.Kind == yaml.SequenceNode {
		v.fail("is an empty list; name at least one channel")
	}
	var out []string
	listed := make(map[string]bool, len(items))
	for _, item := range items {
		name, ok := item.text()
		if !ok || !checkChannel(item, name, known) {
			continue
		}
		if listed[name] {
			item.fail("channel %s is listed twice; remove one of the two", name)
			continue
		}
		listed[name] = true
		out = append(out, name)
	}
	return out
}

// refuseUnweighted reports a route that draws among channels without weights.
func refuseUnweighted(channels value, r *Route) {
	switch {
	case r.Mode == Weighted:
		channels.fail("mode weighted needs weights; write weights: {channel: weight}")
	case r.Fallback == Redraw:
		channels.fail("fallback redraw needs weights; write weights: {channel: weight} or " +
			"choose another fallback")
	}
}

func readWeights(v value, known *scope) []Weight {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	var out []Weight
	for _, e := range entries {
		ok = checkChannel(e.value, e.name, known) && ok
		s, isScalar := e.value.raw("a number such as 25 or 34.5")
		if !isScalar {
			ok = false
			continue
		}
		w, err := selector.ParseWeight(s)
		if err != nil {
			e.value.fail("%v", err)
			ok = false
			continue
		}
		out = append(out, Weight{Channel: e.name, Weight: w, Configured: w})
	}
	if !ok {
		return out
	}
	r := Route{Weights: out}
	if _, err := selector.NewTable(r.Entries()); err != nil {
		v.fail("%v", err)
	}
	return out
}

func checkChannel(v value, name string, known *scope) bool {
	if known.channels[name] != nil {
		return true
	}
	v.fail("there is no channel %q; %s", name, v.r.suggest(name, known.names,
		"define it under channels"))
	return false
}

package config

import (
	"fmt"
	"slices"
	"strings"

	"dispatcher/admission"
	"dispatcher/selector"
)

func readRoutes(top fields, routing *Routing) []Route {
	v, ok := top.need("routes", "routes: [{name: default, match: {}, weights: {a: 1}}]")
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("there is no route; write for example - {name: default, match: {}, weights: {a: 1}}")
	}
	var out []Route
	for _, item := range items {
		f, ok := item.fields("name", "match", "mode", "weights", "channels", "fallback", "wait",
			"bypass_selectors", "max_segments", "substitute", "throttled")
		if !ok {
			continue
		}
		r := readRoute(f, routing)
		if r.Name != "" && slices.ContainsFunc(out, func(o Route) bool { return o.Name == r.Name }) {
			item.fail("there is already a route %s; give each its own name", r.Name)
		}
		out = append(out, r)
	}
	return out
}

func readRoute(f fields, routing *Routing) Route {
	r := Route{Mode: modes[0], Fallback: fallbacks[0], MaxSegments: defaultMaxSegments, Throttled: throttleds[0]}
	if v, ok := f.need("name", "name: default"); ok {
		if s, ok := v.text(); ok && v.checkName("route", s) {
			r.Name = s
		}
	}
	if v, ok := f.get("match"); ok {
		r.Match = readMatch(v, routing)
	}
	if v, ok := f.get("mode"); ok {
		r.Mode, _ = v.word("mode", modes)
	}
	if v, ok := f.get("fallback"); ok {
		r.Fallback, _ = v.word("fallback", fallbacks)
	}
	if v, ok := f.get("wait"); ok {
		r.Wait, _ = v.duration(0, day)
	}
	if v, ok := f.get("bypass_selectors"); ok {
		r.BypassSelectors = v.flag()
	}
	if v, ok := f.get("max_segments"); ok {
		n, _ := v.integer(1, 255) // the header counts segments in one octet
		r.MaxSegments = int(n)
	}
	if v, ok := f.get("substitute"); ok {
		r.Substitute = v.flag()
	}
	if v, ok := f.get("throttled"); ok {
		r.Throttled, _ = v.word("throttled", throttleds)
	}
	r.Weights = readMembers(f, routing)
	checkLimits(f, r, routing)
	return r
}

// readMembers reads the channels of a route with their weights.
func readMembers(f fields, routing *Routing) []Weight {
	weights, hasWeights := f.get("weights")
	channels, hasChannels := f.get("channels")
	switch {
	case hasWeights && hasChannels:
		channels.fail("weights and channels exclude each other; keep weights")
	case hasChannels:
		for _, c := range channels.items() {
			if name, ok := c.text(); ok {
				checkChannel(c, name, routing)
			}
		}
		channels.fail("mode weighted needs weights; write weights: {channel: weight}")
		return nil
	case !hasWeights:
		f.of.fail("weights is missing; write for example weights: {a: 25, b: 75}")
		return nil
	}
	return readWeights(weights, routing)
}

func readWeights(v value, routing *Routing) []Weight {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	var out []Weight
	r := Route{}
	for _, e := range entries {
		ok = checkChannel(e.value, e.name, routing) && ok
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
		out = append(out, Weight{Channel: e.name, Weight: w})
	}
	if !ok {
		return out
	}
	r.Weights = out
	if _, err := selector.NewTable(r.Entries()); err != nil {
		v.fail("%v", err)
	}
	return out
}

func checkChannel(v value, name string, routing *Routing) bool {
	names := routing.ChannelNames()
	if slices.Contains(names, name) {
		return true
	}
	known := "define it under channels"
	if len(names) > 0 {
		known = fmt.Sprintf("define it under channels or use %s", strings.Join(names, ", "))
	}
	v.fail("there is no channel %q; %s", name, suggest(name, names, known))
	return false
}

// checkLimits reports a limit that a message of the longest allowed size could never
// pass: it would wait until it expires.
func checkLimits(f fields, r Route, routing *Routing) {
	for _, c := range routing.Channels {
		if !slices.ContainsFunc(r.Weights, func(w Weight) bool { return w.Channel == c.Name && !w.Weight.IsZero() }) {
			continue
		}
		for _, l := range c.Limits {
			if l.Unit == admission.Segments && l.Max < int64(r.MaxSegments) {
				f.of.fail("a message of %d segments would never pass channel %s, which takes %d segments per %s; set max_segments: %d or raise the limit",
					r.MaxSegments, c.Name, l.Max, l.Window, l.Max)
			}
		}
	}
}

// readMatch reads what a route takes. Lists may be written as a single value, and their
// keys in the singular.
func readMatch(v value, routing *Routing) Match {
	f, ok := v.fields("prefixes", "prefix", "countries", "country", "tenants", "tenant", "lanes", "lane", "labels")
	if !ok {
		return Match{}
	}
	m := Match{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readWords(f, "countries", "country", checkCountry),
		Tenants:   readWords(f, "tenants", "tenant", nil),
		Lanes: readWords(f, "lanes", "lane", func(v value, s string) bool {
			names := routing.LaneNames()
			if !slices.Contains(names, s) {
				v.fail("there is no lane %q; %s", s, suggest(s, names, "use "+strings.Join(names, ", ")))
			}
			return true
		}),
	}
	for i, c := range m.Countries {
		m.Countries[i] = strings.ToLower(c)
	}
	if labels, ok := f.get("labels"); ok {
		m.Labels = labels.labels()
	}
	return m
}

// readWords reads a list of texts under either of two keys. A list without members
// would look like "none" and mean "all", so it is refused.
func readWords(f fields, plural, singular string, check func(value, string) bool) []string {
	v, ok := f.get(plural)
	if other, both := f.get(singular); both && ok {
		other.fail("stands beside %s; keep %s", plural, plural)
	} else if both {
		v, ok = other, true
	}
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; remove the key to match all")
	}
	var out []string
	for _, item := range items {
		s, ok := item.text()
		if ok && (check == nil || check(item, s)) {
			out = append(out, s)
		}
	}
	return out
}

func checkCountry(v value, s string) bool {
	if len(s) == 2 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz") == "" {
		return true
	}
	v.fail("%q is not a country; write its two letters, such as GB", s)
	return false
}

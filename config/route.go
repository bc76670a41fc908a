package config

import (
	"slices"
	"strings"

	"dispatcher/admission"
	"dispatcher/selector"
)

// scope is what the routes of a document may name.
type scope struct {
	channels map[string]*Channel
	names    []string // of the channels, in order
	lanes    []string
}

func newScope(routing *Routing) *scope {
	s := &scope{channels: map[string]*Channel{}, names: routing.ChannelNames(), lanes: routing.LaneNames()}
	for i := range routing.Channels {
		s.channels[routing.Channels[i].Name] = &routing.Channels[i]
	}
	return s
}

func readRoutes(top fields, known *scope) []Route {
	v, ok := top.need("routes", "routes: [{name: default, match: {}, weights: {a: 1}}]")
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("there is no route; write for example - {name: default, match: {}, weights: {a: 1}}")
	}
	var out []Route
	taken := map[string]bool{}
	for _, item := range items {
		f, ok := item.fields("name", "match", "mode", "weights", "channels", "fallback", "wait",
			"bypass_selectors", "max_segments", "substitute", "throttled")
		if !ok {
			continue
		}
		r := readRoute(f, known)
		if r.Name != "" && taken[r.Name] {
			item.fail("there is already a route %s; give each its own name", r.Name)
		}
		taken[r.Name] = true
		out = append(out, r)
	}
	return out
}

func readRoute(f fields, known *scope) Route {
	r := Route{Mode: modes[0], Fallback: fallbacks[0], MaxSegments: defaultMaxSegments, Throttled: throttleds[0]}
	if v, ok := f.need("name", "name: default"); ok {
		if s, ok := v.text(); ok && v.checkName("route", s) {
			r.Name = s
		}
	}
	if v, ok := f.get("match"); ok {
		r.Match = readMatch(v, known)
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
	r.Weights = readMembers(f, known)
	checkLimits(f, r, known)
	return r
}

// readMembers reads the channels of a route with their weights.
func readMembers(f fields, known *scope) []Weight {
	weights, hasWeights := f.get("weights")
	channels, hasChannels := f.get("channels")
	switch {
	case hasWeights && hasChannels:
		channels.fail("weights and channels exclude each other; keep weights")
	case hasChannels:
		for _, c := range channels.items() {
			if name, ok := c.text(); ok {
				checkChannel(c, name, known)
			}
		}
		channels.fail("mode weighted needs weights; write weights: {channel: weight}")
		return nil
	case !hasWeights:
		f.of.fail("weights is missing; write for example weights: {a: 25, b: 75}")
		return nil
	}
	return readWeights(weights, known)
}

func readWeights(v value, known *scope) []Weight {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	var out []Weight
	r := Route{}
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

func checkChannel(v value, name string, known *scope) bool {
	if known.channels[name] != nil {
		return true
	}
	v.fail("there is no channel %q; %s", name, v.r.suggest(name, known.names, "define it under channels"))
	return false
}

// checkLimits reports a limit that a message of the longest allowed size could never
// pass: it would wait until it expires.
func checkLimits(f fields, r Route, known *scope) {
	for _, w := range r.Weights {
		c := known.channels[w.Channel]
		if c == nil || w.Weight.IsZero() {
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
func readMatch(v value, known *scope) Match {
	f, ok := v.fields("prefixes", "prefix", "countries", "country", "tenants", "tenant", "lanes", "lane", "labels")
	if !ok {
		return Match{}
	}
	m := Match{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readWords(f, "countries", "country", checkCountry),
		Tenants:   readWords(f, "tenants", "tenant", nil),
		Lanes: readWords(f, "lanes", "lane", func(v value, s string) bool {
			if !slices.Contains(known.lanes, s) {
				v.fail("there is no lane %q; %s", s, v.r.suggest(s, known.lanes, "define it under lanes"))
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

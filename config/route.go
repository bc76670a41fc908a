package config

import (
	"time"

	"dispatcher/admission"
)

// scope is what the routes of a document may name.
type scope struct {
	channels map[string]*Channel
	names    []string // of the channels, in order
	lanes    []string
	limits   []admission.Limit // over all channels
	rates    Rates
	applied  bool // see ParseApplied
}

func newScope(routing *Routing) *scope {
	s := &scope{channels: map[string]*Channel{}, names: routing.ChannelNames(), lanes: routing.LaneNames(), limits: routing.Limits, rates: routing.Rates}
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
			"scoring", "health", "bypass_selectors", "max_segments", "substitute", "price_cap", "throttled", "tolerance")
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
	r := Route{
		Mode: modes[0], Fallback: fallbacks[0],
		MaxSegments: defaultMaxSegments, Tolerance: readTolerance(f),
	}
	if v, ok := f.need("name", "name: default"); ok {
		if s, ok := v.text(); ok && v.checkName("route", s) {
			r.Name = s
		}
	}
	if v, ok := f.get("match"); ok {
		r.Match = readMatch(v, known)
	}
	if v, ok := f.get("mode"); ok {
		r.Mode, _ = wordOf(v, "mode", modes)
	}
	if v, ok := f.get("fallback"); ok {
		r.Fallback, _ = wordOf(v, "fallback", fallbacks)
	}
	r.Wait = readWait(f, r)
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
		word, _ := v.word("throttled", throttleds)
		r.HoldThrottled = word == holdThrottled
	}
	readMembers(f, &r, known)
	r.Scoring = readScoring(f, r)
	checkScoredPrices(f, &r, known)
	r.Health = readHealth(f, r)
	r.PriceCap = readPriceCap(f)
	checkPriceCap(f, &r, known)
	checkLimits(f, &r, known)
	return r
}

// readWait reads how long a message is held for its first choice. The other modes have no
// first choice before a channel can take the message, so there is nothing to hold it for.
func readWait(f fields, r Route) time.Duration {
	v, ok := f.get("wait")
	if !ok {
		return 0
	}
	wait, _ := v.duration(0, day)
	if wait > 0 && r.Mode != Weighted && r.Mode != "" {
		v.fail("holds a message for the channel that a draw picked, which mode %s does not have; remove wait", r.Mode)
	}
	return wait
}

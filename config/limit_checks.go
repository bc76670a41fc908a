package config

import (
	"fmt"
	"slices"
	"strings"

	"dispatcher/admission"
)

// checkLimits reports a limit that might never have slots for a message of the largest allowed
// size: if that channel is the only one left, the message would wait until it expires. A limit of 0
// is meant to let nothing pass, so it is not reported.
func checkLimits(f fields, r *Route, known *scope) {
	for _, name := range r.reliedOn() {
		c := known.channels[name]
		if c == nil {
			continue
		}
		for i := range c.Limits {
			l := &c.Limits[i]
			r.checkSegments(f.of, l, known.lanes, "channel "+c.Name)
			r.checkMoney(f.of, l, known.lanes, c, "channel "+c.Name)
		}
		for i := range known.limits {
			r.checkMoney(f.of, &known.limits[i], known.lanes, c, "the limit over all channels")
		}
	}
	for i := range known.limits {
		r.checkSegments(f.of, &known.limits[i], known.lanes, "the limit over all channels")
	}
}

// reliedOn are the channels of a route, if it draws without those of weight 0.
func (r *Route) reliedOn() []string {
	var out []string
	for i, name := range r.Channels {
		if !r.Draws() || i >= len(r.Weights) || !r.Weights[i].Weight.IsZero() {
			out = append(out, name)
		}
	}
	return out
}

// checkSegments checks limits that count segments or messages; a message takes one unit of a limit
// in messages.
func (r *Route) checkSegments(v value, l *admission.Limit, lanes []string, what string) {
	size := int64(r.MaxSegments)
	switch {
	case l.Unit == admission.Money || l.Max == 0 || !r.meets(l.Scope):
	case l.Unit == admission.Messages:
		r.checkReserve(v, l, lanes, 1, "", what)
	case l.Max < size:
		v.fail("a message of %d segments would never pass %s, which takes %s per %s%s; set "+
			"max_segments: %d or raise the limit",
			size, what, unitsOf(l, l.Max), l.Window, ofScope(l.Scope), l.Max)
	case l.Burst != 0 && l.Burst < size:
		v.fail("a message of %d segments would never pass %s, which takes bursts of %s%s; set "+
			"max_segments: %d or raise the burst",
			size, what, unitsOf(l, l.Burst), ofScope(l.Scope), l.Burst)
	default:
		r.checkReserve(v, l, lanes, size, " of "+unitsOf(l, size), what)
	}
}

// checkMoney checks limits that count what the messages of the route cost on a channel.
func (r *Route) checkMoney(v value, l *admission.Limit, lanes []string, c *Channel, what string) {
	if l.Unit != admission.Money || l.Max == 0 || !r.meets(l.Scope) {
		return
	}
	cost := r.highestPrice(&c.Price, l.Scope) * int64(r.MaxSegments)
	if cost > l.Max {
		v.fail("a message of %s on channel %s may cost %s %s and would never pass %s, which "+
			"spends %s %s per %s%s; lower max_segments or raise the limit",
			segmentsOf(int64(r.MaxSegments)), c.Name, amount(cost), l.Currency, what, amount(l.Max),
			l.Currency, l.Window, ofScope(l.Scope))
		return
	}
	r.checkReserve(v, l, lanes, cost, fmt.Sprintf(" of %s, %s %s on channel %s,",
		segmentsOf(int64(r.MaxSegments)), amount(cost), l.Currency, c.Name), what)
}

// meets reports whether the route may carry messages that a limit counts. Package config does not
// know which country a prefix belongs to, so countries exclude nothing.
func (r *Route) meets(s admission.Scope) bool {
	if s.Tenant != "" && !s.Each() && len(r.Match.Tenants) > 0 &&
		!slices.Contains(r.Match.Tenants, s.Tenant) {
		return false
	}
	return len(r.numbers(s)) > 0
}

// numbers are the prefixes of the numbers that the route and a scope have in common; an empty
// prefix means all numbers.
func (r *Route) numbers(s admission.Scope) []string {
	if len(r.Match.Prefixes) == 0 {
		return []string{s.Prefix}
	}
	var out []string
	for _, p := range r.Match.Prefixes {
		switch {
		case strings.HasPrefix(p, s.Prefix):
			out = append(out, p)
		case strings.HasPrefix(s.Prefix, p):
			out = append(out, s.Prefix)
		}
	}
	return out
}

// highestPrice is the highest price of a segment, now or later, for the numbers that the route and
// a scope have in common. Which countries and networks these belong to is not known here, so the
// prices of all of them count.
func (r *Route) highestPrice(p *Price, s admission.Scope) int64 {
	var most int64
	for i := range p.Lists {
		l := &p.Lists[i]
		most = max(most, r.highestByPrefix(l, s))
		for _, some := range []map[string]int64{l.Countries, l.Networks} {
			for _, micros := range some {
				most = max(most, micros)
			}
		}
	}
	return most
}

// highestByPrefix is the highest price of one list, by prefixes alone.
func (r *Route) highestByPrefix(p *PriceList, s admission.Scope) int64 {
	var most int64
	for _, number := range r.numbers(s) {
		longest, price := "", p.Default
		for prefix, micros := range p.Prefixes {
			switch {
			case strings.HasPrefix(number, prefix) && len(prefix) > len(longest):
				longest, price = prefix, micros
			case strings.HasPrefix(prefix, number):
				most = max(most, micros)
			}
		}
		most = max(most, price)
	}
	return most
}

// longest is the largest max_segments of the routes whose messages a limit counts, or the default
// when there is none.
func (r *Routing) longest(s admission.Scope, channel string) int64 {
	size := 0
	for i := range r.Routes {
		route := &r.Routes[i]
		if route.meets(s) && (channel == "" || slices.Contains(route.reliedOn(), channel)) {
			size = max(size, route.MaxSegments)
		}
	}
	if size == 0 {
		size = defaultMaxSegments
	}
	return int64(size)
}

// checkReserve reports a limit that keeps so much for other lanes that a message of this cost may
// never find enough slots. Reserves decay in the last tenth of a window, but smaller messages may
// take what becomes free then. To exclude messages on purpose, use the match of a route.
func (r *Route) checkReserve(v value, l *admission.Limit, lanes []string, cost int64, size,
	what string,
) {
	if len(l.Reserve) == 0 || l.Max < cost || !r.meets(l.Scope) {
		return // no room even without reserves, see checkSegments and checkMoney
	}
	lane, kept := r.leastRoom(l, lanes)
	if l.Max-kept >= cost {
		return
	}
	advice := "lower the reserve or raise the limit"
	if l.Unit == admission.Money {
		advice = "lower max_segments or the reserve, or raise the limit"
	} else if room := l.Max - kept; l.Unit == admission.Segments && room > 0 {
		advice = "set max_segments: " + number(room) + ", lower the reserve or raise the limit"
	}
	v.fail("a message%s of lane %s would never be sure of room under %s, which takes %s per "+
		"%s%s and keeps %s of that for other lanes (reserve: {%s}); %s",
		size, plain(lane), what, unitsOf(l, l.Max), l.Window, ofScope(l.Scope), unitsOf(l, kept),
		reserveWords(l.Reserve), advice)
}

// leastRoom is the lane of the route for which a limit leaves the least, and how much it keeps from
// that lane.
func (r *Route) leastRoom(l *admission.Limit, lanes []string) (lane string, kept int64) {
	for _, name := range lanes {
		if len(r.Match.Lanes) > 0 && !slices.Contains(r.Match.Lanes, name) {
			continue
		}
		if units := keptFrom(l, name); units > kept {
			lane, kept = name, units
		}
	}
	return lane, kept
}

// keptFrom is what the reserves of other lanes keep from a lane in a whole window, each rounded
// down as in package admission.
func keptFrom(l *admission.Limit, lane string) (units int64) {
	for _, reserve := range l.Reserve {
		if reserve.Lane != lane {
			units += l.Max / 100 * reserve.Percent
			units += l.Max % 100 * reserve.Percent / 100
		}
	}
	return units
}

// unitsOf is a number of units of a limit: "10 segments", "1 message", "0.50 GBP".
func unitsOf(l *admission.Limit, units int64) string {
	switch l.Unit {
	case admission.Money:
		return amount(units) + " " + l.Currency
	case admission.Segments:
		return segmentsOf(units)
	case admission.Messages:
	}
	if units == 1 {
		return "1 message"
	}
	return number(units) + " messages"
}

// segmentsOf is a number of segments in words.
func segmentsOf(n int64) string {
	if n == 1 {
		return "1 segment"
	}
	return number(n) + " segments"
}

// reserveWords are reserves as the document writes them.
func reserveWords(reserves []admission.Reserve) string {
	words := make([]string, len(reserves))
	for i, r := range reserves {
		words[i] = plain(r.Lane) + ": " + number(r.Percent) + "%"
	}
	return strings.Join(words, ", ")
}

package config

import (
	"slices"
	"strings"

	"dispatcher/admission"
)

// checkReserve reports a limit that keeps so much for other lanes that a message of this cost may never
// find room: the last tenth of a window, in which reserves decay, is over when smaller messages have
// taken what came free in it. Who is to have no room at all is kept away by the match of a route.
func (r *Route) checkReserve(v value, l *admission.Limit, lanes []string, cost int64, size, what string) {
	if len(l.Reserve) == 0 || l.Max < cost || !r.meets(l.Scope) {
		return // for want of room without reserves, see checkSegments and checkMoney
	}
	lane, kept := r.leastRoom(l, lanes)
	if l.Max-kept >= cost {
		return
	}
	mend := "lower the reserve or raise the limit"
	if l.Unit == admission.Money {
		mend = "lower max_segments or the reserve, or raise the limit"
	} else if room := l.Max - kept; l.Unit == admission.Segments && room > 0 {
		mend = "set max_segments: " + number(room) + ", lower the reserve or raise the limit"
	}
	v.fail("a message%s of lane %s would never be sure of room under %s, which takes %s per %s%s and keeps %s of that for other lanes (reserve: {%s}); %s",
		size, plain(lane), what, unitsOf(l, l.Max), l.Window, ofScope(l.Scope), unitsOf(l, kept), reserveWords(l.Reserve), mend)
}

// leastRoom is the lane of the route that a limit leaves the least to, and what it keeps from that lane.
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

// keptFrom is what the reserves of other lanes keep from a lane in a whole window, each rounded down as
// admission does.
func keptFrom(l *admission.Limit, lane string) (units int64) {
	for _, reserve := range l.Reserve {
		if reserve.Lane != lane {
			units += l.Max / 100 * reserve.Percent
			units += l.Max % 100 * reserve.Percent / 100
		}
	}
	return units
}

// unitsOf is so many units of a limit: "10 segments", "1 message", "0.50 GBP".
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

// segmentsOf is so many segments.
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

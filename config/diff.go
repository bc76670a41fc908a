package config

import (
	"slices"
	"strings"

	"dispatcher/admission"
)

// Change is one value that differs between two routings.
type Change struct {
	// Path is where the value is, with names in place of positions: routes.default.weights.a,
	// channels.a.limits.1s.messages.
	Path string `json:"path"`
	// From is the old value; empty when there was none.
	From string `json:"from"`
	// To is the new value; empty when it was removed.
	To string `json:"to"`
}

// LimitPath is the path of a change of one limit's max: of a channel, or over all channels when
// none is named. Changes of its other values have this path plus a word.
func LimitPath(channel string, key admission.Key) string {
	return paths{path: ChannelPath(channel)}.below("limits").limit(key).path
}

// ChannelPath is the first part of the path of a channel's changes; empty when none is named.
func ChannelPath(channel string) string {
	if channel == "" {
		return ""
	}
	return paths{}.below("channels", channel).path
}

// Diff lists what differs between two routings, in the order of after, with removed values where
// they used to be. It compares meaning: the spelling of a number, the order of limits and a default
// that is written out make no difference. The order of channels, routes and lanes does, and so does
// the order of a route's members. Diff is empty exactly when the routings are equal.
//
// Default values of a channel, route or lane that only one of the two has are left out. A setting
// that could be a secret is shown as Hidden on both sides.
func Diff(before, after *Routing) []Change {
	old, now := pathsOf(before), pathsOf(after)
	place := make(map[pathKey]int, len(now))
	for i := range now {
		place[now[i].key()] = i
	}
	// Removed values follow the previous value that still exists; slot 0 is the top.
	removed := make([][]Change, len(now)+1)
	counterpart := make([]*pathValue, len(now))
	slot := 0
	for i := range old {
		if at, ok := place[old[i].key()]; ok {
			counterpart[at], slot = &old[i], at+1
		} else if !old[i].silent() {
			removed[slot] = append(removed[slot], Change{Path: old[i].path, From: old[i].shown})
		}
	}
	out := removed[0]
	for i := range now {
		if c, changed := compareValues(counterpart[i], &now[i]); changed {
			out = append(out, c)
		}
		out = append(out, removed[i+1]...)
	}
	return out
}

// compareValues compares a value with its older counterpart. old is nil when there is none.
func compareValues(old, now *pathValue) (Change, bool) {
	c := Change{Path: now.path, To: now.shown}
	switch {
	case old == nil:
		return c, !now.silent()
	case now.isOrder:
		if !moved(old.order, now.order) {
			return c, false
		}
		at := firstDifference(old.order, now.order)
		c.From, c.To = window(old.order, at), window(now.order, at)
		return c, true
	}
	c.From = old.shown
	return c, old.text != now.text
}

// moved reports whether the order of names changed in a way that additions at the end and removals
// do not explain.
func moved(before, after []string) bool {
	was, is := make(map[string]bool, len(before)), make(map[string]bool, len(after))
	for _, name := range before {
		was[name] = true
	}
	for _, name := range after {
		is[name] = true
	}
	expected := make([]string, 0, len(after))
	for _, name := range before {
		if is[name] {
			expected = append(expected, name)
		}
	}
	for _, name := range after {
		if !was[name] {
			expected = append(expected, name)
		}
	}
	return !slices.Equal(expected, after)
}

func firstDifference(a, b []string) int {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at
}

// window shows up to eight names around a place in a list.
func window(names []string, at int) string {
	low := max(0, min(at-1, len(names)-8))
	high := min(low+8, len(names))
	shown := slices.Clone(names[low:high])
	if low > 0 {
		shown = append([]string{"..."}, shown...)
	}
	if high < len(names) {
		shown = append(shown, "...")
	}
	return strings.Join(shown, ", ")
}

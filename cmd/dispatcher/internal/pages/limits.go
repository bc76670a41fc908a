package pages

import (
	"cmp"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/status"
)

// mostLimits is how many limits the page of a channel lists, mostOverview the overview. A limit of
// each tenant has a row for each tenant.
const (
	mostLimits   = 50
	mostOverview = 20
)

// limitTable is a list of limits, the fullest first.
type limitTable struct {
	Rows []limitNow
	More int // limits that are not listed
}

// limitNow is a limit, and how full it is.
type limitNow struct {
	Channel string // empty for a limit over all channels
	Counts  string // which messages it counts
	status.Limit
	Filled float64
	Level  string // CSS class of the bar
}

// newLimitTable lists the limits of one channel, or with an empty name all limits.
func newLimitTable(now *status.Limits, channel string) *limitTable {
	var rows []limitNow
	for i := range now.Channels {
		if c := &now.Channels[i]; channel == "" || c.Channel == channel {
			for j := range c.Limits {
				rows = append(rows, newLimitNow(c.Channel, &c.Limits[j]))
			}
		}
	}
	if channel == "" {
		for i := range now.Limits {
			rows = append(rows, newLimitNow("", &now.Limits[i]))
		}
	}
	slices.SortStableFunc(rows, func(a, b limitNow) int { return cmp.Compare(b.Filled, a.Filled) })
	listed := min(len(rows), mostLimits)
	if channel == "" {
		listed = min(listed, mostOverview)
	}
	return &limitTable{rows[:listed], len(rows) - listed}
}

func newLimitNow(channel string, l *status.Limit) limitNow {
	out := limitNow{Channel: channel, Counts: scopeWords(l), Limit: *l, Filled: 1}
	switch {
	case l.Key.Scope.Each():
		out.Filled = 0 // it grants nothing itself: each tenant has a row of its own
	case l.Max.Units > 0:
		out.Filled = float64(l.Granted.Units) / float64(l.Max.Units)
	}
	switch {
	case out.Filled >= 1:
		out.Level = "bad"
	case out.Filled >= 0.8:
		out.Level = "warn"
	}
	return out
}

// scopeWords says which messages a limit counts.
func scopeWords(l *status.Limit) string {
	kind, name, scoped := strings.Cut(l.Scope, ":")
	switch {
	case !scoped:
		return "all messages"
	case l.Key.Scope.Each():
		return "each tenant"
	}
	return kind + " " + name
}

package status

import (
	"fmt"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
)

// Summaries are one check for each channel and each lane, with its figures. Such a check warns only
// where a finding says what is wrong with the channel or the lane.
func (n *Now) Summaries() []Finding {
	var out []Finding
	for i := range n.Channels {
		c := &n.Channels[i]
		out = append(out, n.summary("channel "+c.Name, c.summary(), c.check()))
	}
	for i := range n.Lanes {
		l := &n.Lanes[i]
		out = append(out, n.summary("lane "+l.Lane, l.summary(), l.check()))
	}
	return out
}

// summary is the check of what. It warns if a finding has the name check, and points to that.
func (n *Now) summary(what, words, check string) Finding {
	if slices.ContainsFunc(n.Findings, func(f Finding) bool { return f.Check == check }) {
		return Warned("summary of "+what, words, `see "`+check+`" below`)
	}
	return Finding{Check: "summary of " + what, Status: OK, Detail: words}
}

// summary leaves out what is not known.
func (c *Channel) summary() string {
	words := []string{strings.ReplaceAll(c.StateWords(), "\n", ", ")}
	if c.Breaker != "" {
		words = append(words, "breaker "+c.BreakerWords())
	}
	if c.AgreedShare != nil {
		carried := "none"
		if c.CarriedShare != nil {
			carried = report.Percent(*c.CarriedShare)
		}
		words = append(words, "carried "+carried+" of "+report.Percent(*c.AgreedShare))
	}
	words = append(words, "rate/s "+c.RateWords())
	if c.P50 != nil && c.P99 != nil {
		words = append(words, fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", *c.P50, *c.P99))
	}
	return strings.Join(words, "; ")
}

func (l *Lane) summary() string {
	lag, paused := "lag unknown", "not paused"
	if l.Lag != nil {
		lag = fmt.Sprintf("lag %d", *l.Lag)
	}
	if l.Paused {
		paused = "paused"
	}
	return fmt.Sprintf("%s; %s; waiting %d", lag, paused, l.Waiting)
}

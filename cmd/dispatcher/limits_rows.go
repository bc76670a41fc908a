package main

import (
	"strconv"
	"strings"
	"time"
)

// limitRows is the CSV: a row for each limit, with what its channel has repeated.
func limitRows(now *limitsNow) sheet {
	s := sheet{header: []string{
		"channel", "scope", "window", "unit", "currency", "max", "configured_max", "effective_max", "granted", "free", "reserved", "waiting",
		"next_place", "window_start", "ahead", "next_window", "sliding", "burst", "sustained", "reserve",
		"policy", "curve_factor", "rate", "paused_until", "active", "active_max", "active_until", "hold_seconds",
	}}
	for i := range now.Channels {
		c := &now.Channels[i]
		for j := range c.Limits {
			s.rows = append(s.rows, append(limitCells(c.Channel, &c.Limits[j]), channelCells(c)...))
		}
	}
	for i := range now.Limits {
		s.rows = append(s.rows, append(limitCells("", &now.Limits[i]), make([]string, 8)...))
	}
	return s
}

// limitCells are those of the limit itself.
func limitCells(channel string, l *limitNow) []string {
	reserve := make([]string, 0, len(l.Reserve))
	for _, lane := range l.lanes() {
		reserve = append(reserve, lane+" "+number(l.Reserve[lane])+"%")
	}
	return []string{
		channel, l.Scope, l.Window, l.Unit, l.Currency, l.Max.String(), l.ConfiguredMax.String(), l.Effective.String(), l.Granted.String(), l.Free.String(),
		l.Reserved.String(), number(l.Waiting), timeOrEmpty(l.NextPlace), l.WindowStart.Format(time.RFC3339), strconv.FormatBool(l.Ahead),
		l.NextWindow.Format(time.RFC3339), strconv.FormatBool(l.Sliding),
		numberOrEmpty(l.Burst), numberOrEmpty(l.Sustained), strings.Join(reserve, ";"),
	}
}

// channelCells are those of the channel that a limit stands on.
func channelCells(c *channelLimits) []string {
	as := format(formatCSV)
	return []string{
		c.Policy, as.fraction(c.CurveFactor), as.share(&c.Rate), timeOrEmpty(c.PausedUntil), number(c.Active), numberOrEmpty(c.ActiveMax),
		c.ActiveUntil, as.fraction(&c.HoldSeconds),
	}
}

// numberOrEmpty is empty for none.
func numberOrEmpty(n *int64) string {
	if n == nil {
		return ""
	}
	return number(*n)
}

// timeOrEmpty writes a time as CSV has it, RFC 3339; empty for none.
func timeOrEmpty(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

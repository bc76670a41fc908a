package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
)

func (c *cli) limitsShowCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "show [CHANNEL...]",
		Short: "Show what is left of each limit, over all instances, and what waits for it",
		Long: `Shows three tables: each channel with its policy, its present rate, its attempts in
flight and how many messages wait for it; each limit with what its running window has granted and
what could be taken now; and the messages that wait, with what for, why, and when the first of them
is considered again. Without a channel it shows all, and the limits over all channels.`,
		Args: arguments(0, anyNumber),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.showLimits(ctx, l, args, as)
			})
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) showLimits(ctx context.Context, l *database, named []string, as format) error {
	v, doc, err := inForce(ctx, l)
	if err != nil {
		return err
	}
	for _, name := range named {
		if _, err := control.ChannelOf(doc, name); err != nil {
			return inCommands(err)
		}
	}
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return err
	}
	now := status.NewLimits(v.Version, doc, &present, named)
	if as != formatTable {
		return as.write(c.out, now, limitSheet(now, as))
	}
	channelLimitSheet(now).draw(c.out)
	if s := limitSheet(now, as); len(s.rows) > 0 {
		s.draw(c.out)
	} else {
		fmt.Fprintln(c.out, "There is no limit.")
	}
	for _, f := range now.Ahead() {
		fmt.Fprintln(c.out, wrapped("Warning: "+f.Check+": "+f.Detail+". To do: "+f.Fix, 110))
	}
	if len(now.Waiting) > 0 {
		waiterSheet(now).draw(c.out)
	} else {
		fmt.Fprintln(c.out, "Nobody waits.")
	}
	return nil
}

// channelLimitSheet has the values that all limits of a channel share.
func channelLimitSheet(now *status.Limits) sheet {
	s := list(formatTable, now.Channels, []column[status.ChannelLimits]{
		{key: "channel", width: 32},
		{head: "policy", cell: func(c *status.ChannelLimits) any {
			if c.CurveFactor != nil {
				return c.Policy + " " + strconv.FormatFloat(*c.CurveFactor, 'g', -1, 64)
			}
			return c.Policy
		}},
		{key: "rate", style: share},
		{head: "active", right: true, cell: func(c *status.ChannelLimits) any { return activeWords(c) }},
		{key: "waiting"},
		{head: "paused until", cell: func(c *status.ChannelLimits) any {
			if c.PausedUntil == nil {
				return nil
			}
			return clock(now, *c.PausedUntil)
		}},
	}...)
	s.title = fmt.Sprintf("version %d at %s, times in %s",
		now.Version, now.Now.In(now.Zone).Format(time.DateTime), now.Timezone)
	return s
}

// activeWords say how many attempts are in flight, of how many, and whether the bound prevents
// more.
func activeWords(c *status.ChannelLimits) string {
	words := number(c.Active)
	if c.ActiveMax != nil {
		words += " of " + number(*c.ActiveMax)
	}
	if c.ActiveUntil != "submit" {
		words += " until " + c.ActiveUntil
	}
	if c.ActiveMax != nil && c.Active >= *c.ActiveMax {
		words += ", full"
	}
	return words
}

// limitRow is a limit with its channel; channel is nil for a limit over all channels.
type limitRow struct {
	channel *status.ChannelLimits
	status.Limit
}

func limitRows(now *status.Limits) []limitRow {
	var rows []limitRow
	for i := range now.Channels {
		for _, l := range now.Channels[i].Limits {
			rows = append(rows, limitRow{&now.Channels[i], l})
		}
	}
	for _, l := range now.Limits {
		rows = append(rows, limitRow{nil, l})
	}
	return rows
}

// limitSheet has a row for each limit. A table has the rate next to the max where it reduces the
// limit; CSV repeats the channel's values that JSON has.
func limitSheet(now *status.Limits, as format) sheet {
	columns := []column[limitRow]{
		{name: "channel", width: 15, cell: func(r *limitRow) any {
			switch {
			case r.channel != nil:
				return r.channel.Channel
			case as == formatCSV:
				return nil
			}
			return allChannels
		}},
		{only: formatTable, head: "limit", width: 21, cell: func(r *limitRow) any {
			return limitWords(&r.Limit)
		}},
		{only: formatTable, key: "granted"},
		{only: formatTable, head: "max", width: 14, right: true, cell: func(r *limitRow) any {
			return maxWords(&r.Limit)
		}},
		{only: formatTable, head: "free", width: 14, right: true, cell: func(r *limitRow) any {
			if r.NextPlace != nil && r.NextPlace.Sub(now.Now) >= time.Second {
				return r.Free.String() + ", next at " + clock(now, *r.NextPlace)
			}
			return r.Free
		}},
		{only: formatTable, key: "reserved"},
		{only: formatTable, key: "waiting"},
		{only: formatTable, head: "next window", cell: func(r *limitRow) any { return r.Ends }},
	}
	columns = append(columns, keys[limitRow](formatCSV, "scope", "window", "unit", "currency",
		"max", "configured_max",
		"effective_max", "granted", "free", "reserved", "waiting", "next_place", "window_start",
		"ahead",
		"next_window", "sliding", "burst", "sustained")...)
	columns = append(columns, column[limitRow]{
		key: "reserve", only: formatCSV, cell: func(r *limitRow) any { return reserveWords(&r.Limit) },
	})
	for _, key := range []string{
		"policy", "curve_factor", "rate", "paused_until", "active",
		"active_max", "active_until", "hold_seconds",
	} {
		columns = append(columns, column[limitRow]{
			key: key, only: formatCSV,
			cell: func(r *limitRow) any {
				if r.channel == nil {
					return nil
				}
				return valueOf(r.channel, key)
			},
		})
	}
	s := list(as, limitRows(now), columns...)
	s.tight = true
	return s
}

// maxWords are the max, its value in the next window, and its value at the reduced rate.
func maxWords(l *status.Limit) string {
	words := l.Max.String()
	if l.Max != l.ConfiguredMax {
		words += ", then " + l.ConfiguredMax.String()
	}
	if l.Effective != l.ConfiguredMax {
		words += ", now " + l.Effective.String()
	}
	return words
}

// reserveWords are the parts for lanes, such as "otp 20%;bulk 5%".
func reserveWords(l *status.Limit) string {
	var words []string
	for _, lane := range l.Lanes() {
		words = append(words, lane+" "+number(l.Reserve[lane])+"%")
	}
	return strings.Join(words, ";")
}

// waiterSheet is the table of what messages wait for, why, and until when at least.
func waiterSheet(now *status.Limits) sheet {
	s := list(formatTable, now.Waiting, []column[status.Waiters]{
		{key: "messages"},
		{head: "for", width: 32, cell: func(w *status.Waiters) any {
			return cmp.Or(w.On, "none in particular")
		}},
		{head: "because", width: 46, cell: func(w *status.Waiters) any {
			if closed(now, w.On) {
				return "this limit is 0, so nothing passes it"
			}
			return report.WaitWords(w.Reason)
		}},
		{head: "next look", cell: func(w *status.Waiters) any { return clock(now, w.Next) }},
	}...)
	s.title, s.tight = "who waits", true
	return s
}

// closed reports whether the thing waited for is a limit of 0, so that nothing was used up.
func closed(now *status.Limits, on string) bool {
	shut := func(channel string, limits []status.Limit) bool {
		return slices.ContainsFunc(limits, func(l status.Limit) bool {
			return l.Key.On(channel) == on && l.ConfiguredMax.Units == 0 &&
				l.Key.Window != admission.Prepaid
		})
	}
	if shut("", now.Limits) {
		return true
	}
	return slices.ContainsFunc(now.Channels, func(c status.ChannelLimits) bool {
		return shut(c.Channel, c.Limits)
	})
}

// clock is a time in the business time zone, with the day if that is not today.
func clock(now *status.Limits, at time.Time) string {
	at = at.In(now.Zone)
	if at.Format(time.DateOnly) == now.Now.In(now.Zone).Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("2 Jan 15:04:05")
}

// limitWords is the limit with its other settings.
func limitWords(l *status.Limit) string {
	words := limitName(l.Key)
	if l.Unit == "money" {
		words = l.Window + " " + l.Currency + strings.TrimPrefix(words, l.Window+" money")
	}
	if l.Sliding {
		words += ", sliding"
	}
	if l.BurstWords != "" {
		words += ", " + l.BurstWords
	}
	for _, lane := range l.Lanes() {
		words += fmt.Sprintf(", %d %% for %s", l.Reserve[lane], lane)
	}
	return words
}

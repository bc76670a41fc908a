package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
)

func (c *cli) limitsShowCommand() *cobra.Command {
	as := format(formatTable)
	cmd := &cobra.Command{
		Use:   "show [CHANNEL...]",
		Short: "Show what limits leave, over all instances, and who waits",
		Long: `Shows for each channel the policy, the rate that its provider leaves it, what is under way and who waits,
and for each limit what its running window has granted and still has. Without a channel: all, and the
limits over all channels.`,
		Args: arguments(0, anyNumber),
		RunE: work(func(ctx context.Context, args []string) error { return c.showLimits(ctx, args, as) }),
	}
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) showLimits(ctx context.Context, named []string, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	v, doc, err := inForce(ctx, l, s)
	if err != nil {
		return err
	}
	for _, name := range named {
		if !slices.Contains(doc.ChannelNames(), name) {
			return unknownChannel(name, doc)
		}
	}
	present, err := l.Present(ctx)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	now := newLimitsNow(v.Version, doc, &present, named)
	if as != formatTable {
		return as.print(c.out, now, limitRows(now))
	}
	channelLimitSheet(now).draw(c.out)
	if s := limitSheet(now); len(s.rows) > 0 {
		s.draw(c.out)
	} else {
		fmt.Fprintln(c.out, "There is no limit.")
	}
	if len(named) == 0 && now.WaitingForOthers > 0 {
		fmt.Fprintln(c.out, waitingSentence(now.WaitingForOthers))
	}
	return nil
}

func waitingSentence(n int64) string {
	if n == 1 {
		return "1 more message waits for none of them in particular."
	}
	return number(n) + " more messages wait for none of them in particular."
}

// channelLimitSheet has what is the same for all limits of a channel.
func channelLimitSheet(now *limitsNow) sheet {
	s := sheet{
		title:  fmt.Sprintf("version %d at %s", now.Version, now.Now.Format(instant)),
		header: []string{"channel", "policy", "rate", "active", "waiting", "paused until"},
		right:  []int{3, 4, 5}, wrap: map[int]int{1: 32},
	}
	for i := range now.Channels {
		c := &now.Channels[i]
		policy, active, paused := c.Policy, number(c.Active), ""
		if c.CurveFactor != nil {
			policy += " " + strconv.FormatFloat(*c.CurveFactor, 'g', -1, 64)
		}
		if c.ActiveMax > 0 {
			active += " of " + number(c.ActiveMax)
		}
		if c.ActiveUntil != "submit" {
			active += " until " + c.ActiveUntil
		}
		if c.PausedUntil != nil {
			paused = c.PausedUntil.Format("15:04:05 UTC")
		}
		s.rows = append(s.rows, []string{c.Channel, policy, strconv.FormatFloat(100*c.Rate, 'f', 0, 64) + " %", active, number(c.Waiting), paused})
	}
	return s
}

// limitSheet has a row for each limit. The rate stands beside the max where it slows the limit down.
func limitSheet(now *limitsNow) sheet {
	s := sheet{
		title:  "limits, times in " + now.Timezone,
		header: []string{"channel", "limit", "granted", "max", "free", "reserved", "waiting", "next window"},
		right:  []int{3, 4, 5, 6, 7}, wrap: map[int]int{1: 15, 2: 19, 4: 14}, tight: true,
	}
	add := func(channel string, l *limitNow) {
		most := l.shown(l.Max)
		if l.Max != l.ConfiguredMax {
			most += ", then " + l.shown(l.ConfiguredMax)
		}
		if l.Effective != nil && *l.Effective != l.ConfiguredMax {
			most += ", now " + l.shown(*l.Effective)
		}
		s.rows = append(s.rows, []string{
			channel, l.words(), l.shown(l.Granted), most, l.shown(l.Free), l.shown(l.Reserved), number(l.Waiting), l.ends,
		})
	}
	for i := range now.Channels {
		for j := range now.Channels[i].Limits {
			add(now.Channels[i].Channel, &now.Channels[i].Limits[j])
		}
	}
	for i := range now.Limits {
		add(allChannels, &now.Limits[i])
	}
	return s
}

// words is the limit with what it does besides counting.
func (l *limitNow) words() string {
	words := limitName(l.key)
	if l.Unit == "money" {
		words = l.Window + " " + l.Currency + strings.TrimPrefix(words, l.Window+" money")
	}
	if l.Sliding {
		words += ", sliding, burst " + number(l.Burst)
	}
	for _, lane := range slices.Sorted(maps.Keys(l.Reserve)) {
		words += fmt.Sprintf(", %d %% for %s", l.Reserve[lane], lane)
	}
	return words
}

// shown is an amount of the limit, of money as a decimal.
func (l *limitNow) shown(n int64) string {
	if l.Unit == "money" {
		return report.Money(n)
	}
	return number(n)
}

// limitRows is the CSV: a row for each limit, with what its channel has repeated.
func limitRows(now *limitsNow) sheet {
	s := sheet{header: []string{
		"channel", "scope", "window", "unit", "currency", "max", "configured_max", "effective_max", "granted", "free", "reserved", "waiting",
		"next_window", "sliding", "burst", "policy", "rate", "paused_until", "active", "active_max",
	}}
	row := func(channel string, l *limitNow) []string {
		effective := ""
		if l.Effective != nil {
			effective = l.shown(*l.Effective)
		}
		return []string{
			channel, l.Scope, l.Window, l.Unit, l.Currency, l.shown(l.Max), l.shown(l.ConfiguredMax), effective, l.shown(l.Granted), l.shown(l.Free),
			l.shown(l.Reserved), number(l.Waiting), l.NextWindow.Format(time.RFC3339), strconv.FormatBool(l.Sliding), number(l.Burst),
		}
	}
	for i := range now.Channels {
		c := &now.Channels[i]
		paused := ""
		if c.PausedUntil != nil {
			paused = c.PausedUntil.Format(time.RFC3339)
		}
		for j := range c.Limits {
			s.rows = append(s.rows, append(row(c.Channel, &c.Limits[j]),
				c.Policy, format(formatCSV).fraction(&c.Rate), paused, number(c.Active), number(c.ActiveMax)))
		}
	}
	for i := range now.Limits {
		s.rows = append(s.rows, append(row("", &now.Limits[i]), "", "", "", "", ""))
	}
	return s
}

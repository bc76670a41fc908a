package main

import (
	"context"
	"fmt"
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
		Long: `Shows for each channel the policy, the rate that its provider leaves it, what is under way and how many
wait, for each limit what its running window has granted and what could be taken now, and who waits for what,
why, and when the first of them is looked at again. Without a channel: all, and the limits over all channels.`,
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
	for _, sentence := range now.aheadSentences() {
		fmt.Fprintln(c.out, wrapped(sentence, 110))
	}
	if len(now.Waiting) > 0 {
		waiterSheet(now).draw(c.out)
	} else {
		fmt.Fprintln(c.out, "Nobody waits.")
	}
	return nil
}

// channelLimitSheet has what is the same for all limits of a channel.
func channelLimitSheet(now *limitsNow) sheet {
	s := sheet{
		title:  fmt.Sprintf("version %d at %s, times in %s", now.Version, now.Now.In(now.zone).Format(time.DateTime), now.Timezone),
		header: []string{"channel", "policy", "rate", "active", "waiting", "paused until"},
		right:  []int{3, 4, 5}, wrap: map[int]int{1: 32},
	}
	for i := range now.Channels {
		c := &now.Channels[i]
		policy, paused := c.Policy, ""
		if c.CurveFactor != nil {
			policy += " " + strconv.FormatFloat(*c.CurveFactor, 'g', -1, 64)
		}
		if c.PausedUntil != nil {
			paused = now.clock(*c.PausedUntil)
		}
		s.rows = append(s.rows, []string{c.Channel, policy, report.Percent(c.Rate), c.activeWords(), number(c.Waiting), paused})
	}
	return s
}

// activeWords say how many attempts are under way, of how many, and whether that is in the way of more.
func (c *channelLimits) activeWords() string {
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

// limitSheet has a row for each limit. The rate stands beside the max where it slows the limit down.
func limitSheet(now *limitsNow) sheet {
	s := sheet{
		header: []string{"channel", "limit", "granted", "max", "free", "reserved", "waiting", "next window"},
		right:  []int{3, 4, 5, 6, 7}, wrap: map[int]int{1: 15, 2: 21, 4: 14, 5: 14}, tight: true,
	}
	add := func(channel string, l *limitNow) {
		most, free := l.Max.String(), l.Free.String()
		if l.Max != l.ConfiguredMax {
			most += ", then " + l.ConfiguredMax.String()
		}
		if l.Effective != l.ConfiguredMax {
			most += ", now " + l.Effective.String()
		}
		if l.NextPlace != nil && l.NextPlace.Sub(now.Now) >= time.Second {
			free += ", next at " + now.clock(*l.NextPlace)
		}
		s.rows = append(s.rows, []string{
			channel, l.words(), l.Granted.String(), most, free, l.Reserved.String(), number(l.Waiting), l.ends,
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

// waiterSheet says who waits, for what, why and until when at least.
func waiterSheet(now *limitsNow) sheet {
	s := sheet{
		title:  "who waits",
		header: []string{"messages", "for", "because", "next look"},
		right:  []int{1}, wrap: map[int]int{2: 32, 3: 46}, tight: true,
	}
	for _, w := range now.Waiting {
		on := w.On
		if on == "" {
			on = "none in particular"
		}
		why := report.WaitWords(w.Reason)
		if now.closed(w.On) {
			why = "this limit is 0, so nothing passes it"
		}
		s.rows = append(s.rows, []string{number(w.Messages), on, why, now.clock(w.Next)})
	}
	return s
}

// closed reports whether that which is waited for is a limit of 0: nothing of it was used up.
func (now *limitsNow) closed(on string) bool {
	shut := func(channel string, limits []limitNow) bool {
		return slices.ContainsFunc(limits, func(l limitNow) bool { return l.key.On(channel) == on && l.ConfiguredMax.units == 0 })
	}
	return shut("", now.Limits) || slices.ContainsFunc(now.Channels, func(c channelLimits) bool { return shut(c.Channel, c.Limits) })
}

// clock is a time in the business time zone, with the day when that is another one.
func (now *limitsNow) clock(at time.Time) string {
	at = at.In(now.zone)
	if at.Format(time.DateOnly) == now.Now.In(now.zone).Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("2 Jan 15:04:05")
}

// words is the limit with what it does besides counting.
func (l *limitNow) words() string {
	words := limitName(l.key)
	if l.Unit == "money" {
		words = l.Window + " " + l.Currency + strings.TrimPrefix(words, l.Window+" money")
	}
	if l.Sliding {
		words += ", sliding"
	}
	if l.burst != "" {
		words += ", " + l.burst
	}
	for _, lane := range l.lanes() {
		words += fmt.Sprintf(", %d %% for %s", l.Reserve[lane], lane)
	}
	return words
}

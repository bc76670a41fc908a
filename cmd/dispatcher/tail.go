package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// tailFlags select events.
type tailFlags struct {
	ids, lanes, channels, states []string
	since                        time.Duration
	untilFinal                   bool
	as                           format
}

// tailHistory is how far "tail --id" looks back by default, because the message usually exists
// already.
const tailHistory = 24 * time.Hour

func (c *cli) tailCommand() *cobra.Command {
	f := tailFlags{as: formatTable}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow status events",
		Long: `Prints the events of the status topic as they come, one a line, until Ctrl-C. --id,
--lane, --channel and --state choose; each may be repeated. With --id it also shows the events of
the last day, and with --until-final it ends when those messages have ended: with 0 when all were
delivered, or accepted by channels that send no receipts, else with 1. No number and no text is
shown: events have none.`,
		Example: `  dispatcher tail --lane otp --state failed --state dead
  dispatcher tail --id order-7731-otp --until-final
  dispatcher tail --since 10m --format json`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		if len(f.ids) > 0 && !cmd.Flags().Changed("since") {
			f.since = tailHistory
		}
		return c.tail(ctx, &f)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&f.ids, "id", nil, "only events of this message; may be repeated")
	flags.StringArrayVar(&f.lanes, "lane", nil, "only of this lane; may be repeated")
	flags.StringArrayVar(&f.channels, "channel", nil, "only of this channel; may be repeated")
	flags.StringArrayVar(&f.states, "state", nil, "only of this state; may be repeated")
	flags.DurationVar(&f.since, "since", 0,
		"begin with the events of this long ago, such as 10m (default now; 24h with --id)")
	flags.BoolVar(&f.untilFinal, "until-final", false, "end when the messages of --id have ended")
	flags.Var(&f.as, "format", "output format: table is one line of text, json one object a line")
	return cmd
}

// statusStates are all states of events.
var statusStates = []string{
	"scheduled", "waiting", "retry", "sending", "accepted", "delivered", "undelivered",
	"no_receipt", "rejected", "failed", "unknown", "dead",
}

func (f *tailFlags) check() error {
	for _, state := range f.states {
		if !slices.Contains(statusStates, state) {
			return fmt.Errorf("--state %q is none of %s", state, strings.Join(statusStates, ", "))
		}
	}
	switch {
	case f.untilFinal && len(f.ids) == 0:
		return errors.New("--until-final needs --id: without one there is no end")
	case f.since < 0:
		return errors.New("--since must not be negative")
	}
	return nil
}

func (c *cli) tail(ctx context.Context, f *tailFlags) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	s, err := c.settings(needKafka)
	if err != nil {
		return err
	}
	doc, err := knownRouting(ctx, s)
	if err != nil && f.untilFinal {
		return err
	}
	var since time.Time
	if f.since > 0 {
		since = time.Now().Add(-f.since)
	}
	from, err := follow(ctx, s, since)
	if err != nil {
		return err
	}
	defer from.close()
	t := &tailer{
		flags: f, receipts: receiptsOf(doc), events: newEventPrinter(c.out, f.as),
		open: map[string]bool{},
	}
	for _, id := range f.ids {
		t.open[id] = true
	}
	switch err := from.each(ctx, t.take); {
	case err != nil && ctx.Err() == nil:
		return err
	case t.failed > 0:
		return failed(nil) // the lines have been printed
	case f.untilFinal && len(t.open) > 0:
		return err // told to stop before the end
	}
	return nil
}

// tailer shows events and counts the messages that it waits for.
type tailer struct {
	flags    *tailFlags
	receipts receiptChannels
	events   *eventPrinter
	open     map[string]bool // ids of --id whose messages have not ended
	failed   int             // how many of them ended without having arrived
}

// take shows one event and reports whether more are needed.
func (t *tailer) take(event *statusEvent, raw []byte) (bool, error) {
	if !t.flags.wants(event) {
		return true, nil
	}
	if t.flags.shows(event) {
		if err := t.events.show(event, raw); err != nil {
			return false, err
		}
	}
	if t.flags.untilFinal && t.open[event.ID] && event.ended(t.receipts) {
		delete(t.open, event.ID)
		if !event.arrived() {
			t.failed++
		}
	}
	return !t.flags.untilFinal || len(t.open) > 0, nil
}

// wants selects events by id. shows selects them by the other flags, because the end of a message
// counts even if its state is not shown. A record that was refused because its id is already used
// is shown, and is not the end of the message.
func (f *tailFlags) wants(e *statusEvent) bool {
	return oneOf(f.ids, e.ID) || slices.Contains(f.ids, e.ConflictingID)
}

func (f *tailFlags) shows(e *statusEvent) bool {
	return oneOf(f.lanes, e.Lane) && oneOf(f.channels, e.Channel) && oneOf(f.states, e.State)
}

// oneOf reports whether a value is chosen; an empty choice chooses all.
func oneOf(chosen []string, value string) bool {
	return len(chosen) == 0 || slices.Contains(chosen, value)
}

// eventPrinter writes events as they come, one a line.
type eventPrinter struct {
	out    io.Writer
	as     format
	header bool // the CSV header is written
}

func newEventPrinter(out io.Writer, as format) *eventPrinter {
	return &eventPrinter{
		out: out,
		as:  as,
	}
}

var eventColumns = slices.Concat(
	[]column[statusEvent]{{key: "at"}, {key: "id", cell: func(e *statusEvent) any {
		return e.key()
	}}},
	keys[statusEvent]("", "seq", "state", "lane", "tenant", "route", "channel", "attempt", "reason",
		"detail", "cause", "code", "segments", "possible_duplicate", "conflicting_id"),
)

func (p *eventPrinter) show(e *statusEvent, raw []byte) error {
	var err error
	switch p.as {
	case formatJSON:
		_, err = p.out.Write(append(bytes.TrimSpace(raw), '\n'))
	case formatCSV:
		err = p.row(e)
	default:
		_, err = io.WriteString(p.out, e.line()+"\n")
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (p *eventPrinter) row(e *statusEvent) error {
	rows := list(p.as, []statusEvent{*e}, eventColumns...)
	if p.header {
		return writeCSV(p.out, rows.rows...)
	}
	p.header = true
	return p.as.write(p.out, nil, rows)
}

// line is an event for display: time, id, state and the other values.
func (e *statusEvent) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %-11s", e.At, e.key(), e.State)
	for _, part := range []struct{ name, value string }{
		{"lane", e.Lane},
		{"tenant", e.Tenant},
		{"route", e.Route},
		{"channel", e.Channel},
		{"attempt", count(e.Attempt)},
		{"reason", e.Reason},
		{"cause", e.Cause},
		{"code", e.Code},
		{"segments", count(e.Segments)},
		{"parts_accepted", count(e.PartsAccepted)},
		{"conflicting_id", e.ConflictingID},
		{"detail", e.Detail},
	} {
		if part.value != "" {
			b.WriteString("  " + part.name + "=" + quotedValue(part.value))
		}
	}
	if e.PossibleDuplicate {
		b.WriteString("  possible_duplicate")
	}
	return b.String()
}

// count is a number for display; empty for 0.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// quotedValue is a value after its name, in quotes if it could not be told from what follows.
func quotedValue(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return r == ' ' || r == '"' || !unicode.IsPrint(r)
	}) {
		return strconv.Quote(s)
	}
	return s
}

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// statusEvery is the interval of --watch.
const statusEvery = 2 * time.Second

func (c *cli) statusCommand() *cobra.Command {
	var as format
	var watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show channels, lanes, queues and instances as they are now",
		Long: `Shows what an operator looks at first: each channel with its state, its breaker and
since when, the share that it carried of late against the agreed one, its rate against its limits,
errors by code and answer times; each lane with its lag in Kafka and what waits; then what should be
looked at, and what to do about it. Shares, rates and codes are those of the last five minutes over
all instances. Breakers, answer times and the lag are what the instances last said, every
DISPATCHER_STATE_INTERVAL. The oldest message of a lane, or of those that wait for a channel or one
of its limits, has waited since its receipt, or since its send_at if that came later: before its
time a scheduled message does not wait. --watch shows it again every two seconds, until Ctrl-C; with
--format json or csv one status follows the other.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.status(ctx, l, watch, as)
			})
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every two seconds, until Ctrl-C")
	as.addTo(cmd.Flags())
	return cmd
}

// clearScreen clears a terminal and moves to its first line.
const clearScreen = "\x1b[H\x1b[2J"

// status prints the status once, or again and again. A database that does not answer for a while
// does not end a watch: the last status stays on the screen.
func (c *cli) status(ctx context.Context, l *database, watch bool, as format) error {
	for seen := false; ; seen = true {
		s, err := readStatus(ctx, l)
		switch {
		case err != nil && (!seen || ctx.Err() != nil):
			return err
		case err != nil:
			fmt.Fprintf(c.err, "dispatcher: %s no status: %v; it is tried again\n",
				time.Now().UTC().Format(instant), err)
		default:
			if watch && as == formatTable && isTerminal(c.out) {
				_, _ = io.WriteString(direct(c.out), clearScreen)
			}
			if err := c.printStatus(s, as); err != nil || !watch {
				return err
			}
		}
		if !ledger.Pause(ctx, statusEvery) {
			return ctx.Err()
		}
	}
}

// readStatus reads the routing in force and the state of its channels and lanes.
func readStatus(ctx context.Context, l *database) (*status.Now, error) {
	v, doc, err := inForce(ctx, l)
	if err != nil {
		return nil, err
	}
	return lookup.Status(ctx, l.Ledger, l.settings.DeadAfter, v.Version, doc)
}

func (c *cli) printStatus(s *status.Now, as format) error {
	if as != formatTable {
		return as.write(c.out, s, statusSheet(s, as))
	}
	statusSheet(s, as).draw(c.out)
	laneSheet(s).draw(c.out)
	if len(s.Waiting) > 0 {
		waitingSheet(s).draw(c.out)
	}
	fmt.Fprintf(c.out, "Ambiguous: %d. Dead records of the last day: %d. Instances: %d.\n",
		s.Ambiguous, s.Dead, s.Instances)
	if s.Dead > 0 {
		fmt.Fprintln(c.out, `What is wrong with dead records: "dispatcher dead list --since 24h".`)
	}
	if s.PendingCancellations > 0 {
		fmt.Fprintf(c.out, "Cancellations that wait for their message: %d, the oldest since %s.\n",
			s.PendingCancellations, s.OldestPending.Format(instant))
	}
	for _, f := range s.Findings {
		fmt.Fprintln(c.out, paragraph(c.out, f.Check+": "+f.Detail+". To do: "+f.Fix+"."))
	}
	return nil
}

// statusSheet has a row for each channel.
func statusSheet(s *status.Now, as format) sheet {
	ms := func(of func(*status.Channel) *float64) func(*status.Channel) any {
		return func(c *status.Channel) any {
			if of(c) == nil {
				return nil
			}
			return strconv.FormatFloat(*of(c), 'f', 0, 64)
		}
	}
	sheet := list(as, s.Channels, []column[status.Channel]{
		{key: "channel", width: 14},
		{key: "state", only: formatTable, width: 14, cell: func(c *status.Channel) any {
			return c.StateWords()
		}},
		{key: "state", only: formatCSV},
		{key: "breaker", only: formatTable, width: 14, cell: func(c *status.Channel) any {
			return c.BreakerWords()
		}},
		{key: "breaker", only: formatCSV},
		{key: "breaker_since", only: formatCSV},
		{key: "not_ready", only: formatCSV, cell: func(c *status.Channel) any { return c.WhyWords() }},
		{key: "silent", only: formatCSV},
		{key: "agreed_share", head: "agreed", style: share},
		{key: "effective_share", only: formatCSV, style: share},
		{key: "carried_share", head: "carried", style: share},
		{key: "rate", head: "rate/s", only: formatTable, right: true, cell: func(c *status.Channel) any {
			return c.RateWords()
		}},
		{key: "rate", only: formatCSV},
		{key: "limit", only: formatCSV},
		{key: "throttled_to", only: formatCSV},
		{key: "paused_until", only: formatCSV},
		{key: "accepted", only: formatCSV},
		{key: "codes", only: formatTable, head: "errors", width: 20, cell: func(c *status.Channel) any {
			return c.ErrorWords()
		}},
		{key: "codes", only: formatCSV, cell: func(c *status.Channel) any {
			return status.CountWords(c.Codes, ", ")
		}},
		{key: "unsent", only: formatCSV, cell: func(c *status.Channel) any {
			return status.CountWords(c.Unsent, ", ")
		}},
		{
			key: "p50_ms", head: "p50 ms", only: formatTable, right: true,
			cell: ms(func(c *status.Channel) *float64 { return c.P50 }),
		},
		{
			key: "p99_ms", head: "p99 ms", only: formatTable, right: true,
			cell: ms(func(c *status.Channel) *float64 { return c.P99 }),
		},
		{key: "p50_ms", only: formatCSV},
		{key: "p99_ms", only: formatCSV},
		{key: "unanswered", only: formatCSV},
		{key: "waiting"},
		{
			key: "oldest_seconds", head: "oldest", only: formatTable, right: true,
			cell: func(c *status.Channel) any { return age(c.OldestSeconds) },
		},
		{key: "oldest_seconds", only: formatCSV},
	}...)
	sheet.title = fmt.Sprintf("version %d at %s", s.RoutingVersion, s.Now.UTC().Format(instant))
	sheet.tight = true
	return sheet
}

// age is a duration of so many seconds, for tables; nil when there is none.
func age(seconds *float64) any {
	if seconds == nil {
		return nil
	}
	return time.Duration(*seconds * float64(time.Second)).Round(time.Second).String()
}

func laneSheet(s *status.Now) sheet {
	return list(formatTable, s.Lanes, []column[status.Lane]{
		{key: "lane"},
		{key: "lag"},
		{head: "paused", cell: func(l *status.Lane) any {
			if l.Paused {
				return "paused"
			}
			return "no"
		}},
		{key: "readers"},
		{key: "waiting"},
		{head: "oldest", right: true, cell: func(l *status.Lane) any { return age(l.OldestSeconds) }},
		{key: "scheduled"},
		{key: "held"},
	}...)
}

func waitingSheet(s *status.Now) sheet {
	return list(formatTable, s.Waiting, []column[status.Group]{
		{head: "messages", right: true, cell: func(w *status.Group) any { return w.Messages }},
		{head: "oldest", right: true, cell: func(w *status.Group) any { return age(w.OldestSeconds) }},
		{head: "wait for", width: 32, cell: func(w *status.Group) any {
			if w.On == "" {
				return "none in particular"
			}
			return w.On
		}},
		{head: "because", width: 60, cell: func(w *status.Group) any {
			return report.WaitWords(w.Reason)
		}},
	}...)
}

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

const (
	// statusWithin is how far back a status looks.
	statusWithin = 5 * time.Minute
	// statusEvery is how often --watch shows it.
	statusEvery = 2 * time.Second
)

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
DISPATCHER_STATE_INTERVAL. --watch shows it again every two seconds, until Ctrl-C; with --format
json or csv one status follows the other.`,
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

// clearScreen takes a terminal back to its first line.
const clearScreen = "\x1b[H\x1b[2J"

func (c *cli) status(ctx context.Context, l *database, watch bool, as format) error {
	for {
		s, err := readStatus(ctx, l)
		if err != nil {
			return err
		}
		if watch && as == formatTable && isTerminal(c.out) {
			_, _ = io.WriteString(direct(c.out), clearScreen)
		}
		if err := c.printStatus(s, as); err != nil || !watch {
			return err
		}
		select {
		case <-time.After(statusEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readStatus reads the routing in force and how it does now.
func readStatus(ctx context.Context, l *database) (*statusNow, error) {
	v, doc, err := inForce(ctx, l)
	if err != nil {
		return nil, err
	}
	return statusOf(ctx, l, v.Version, doc)
}

func statusOf(
	ctx context.Context, l *database, version int64, doc *config.Routing,
) (*statusNow, error) {
	f := statusFacts{version: version, doc: doc, within: statusWithin}
	var err error
	if f.present, err = l.Limits.Present(ctx); err != nil {
		return nil, err
	}
	if f.recent, err = l.Reports.Recent(ctx, statusWithin); err != nil {
		return nil, err
	}
	if f.instances, _, err = l.Instances.List(ctx, l.settings.DeadAfter); err != nil {
		return nil, err
	}
	return newStatusNow(&f), nil
}

func (c *cli) printStatus(s *statusNow, as format) error {
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
	for _, f := range s.Findings {
		fmt.Fprintln(c.out, paragraph(c.out, f.Check+": "+f.Detail+". To do: "+f.Fix+"."))
	}
	return nil
}

// statusSheet has a row for each channel.
func statusSheet(s *statusNow, as format) sheet {
	ms := func(of func(*channelStatus) *float64) func(*channelStatus) any {
		return func(c *channelStatus) any {
			if of(c) == nil {
				return nil
			}
			return strconv.FormatFloat(*of(c), 'f', 0, 64)
		}
	}
	sheet := list(as, s.Channels, []column[channelStatus]{
		{key: "channel", width: 14},
		{key: "state", only: formatTable, width: 14, cell: func(c *channelStatus) any {
			return c.stateWords()
		}},
		{key: "state", only: formatCSV},
		{key: "breaker", only: formatTable, width: 14, cell: func(c *channelStatus) any {
			return c.breakerWords()
		}},
		{key: "breaker", only: formatCSV},
		{key: "breaker_since", only: formatCSV},
		{key: "not_ready", only: formatCSV, cell: func(c *channelStatus) any { return c.whyWords() }},
		{key: "silent", only: formatCSV},
		{key: "agreed_share", head: "agreed", style: share},
		{key: "effective_share", only: formatCSV, style: share},
		{key: "carried_share", head: "carried", style: share},
		{key: "rate", head: "rate/s", only: formatTable, right: true, cell: func(c *channelStatus) any {
			words := strconv.FormatFloat(c.Rate, 'f', 1, 64)
			if c.Limit != nil {
				words += " of " + strconv.FormatFloat(*c.Limit, 'f', -1, 64)
			}
			return words
		}},
		{key: "rate", only: formatCSV},
		{key: "limit", only: formatCSV},
		{key: "throttled_to", only: formatCSV},
		{key: "paused_until", only: formatCSV},
		{key: "accepted", only: formatCSV},
		{key: "codes", only: formatTable, head: "errors", width: 20, cell: func(c *channelStatus) any {
			return c.errorWords("\n")
		}},
		{key: "codes", only: formatCSV, cell: func(c *channelStatus) any {
			return c.errorWords(", ")
		}},
		{
			key: "p50_ms", head: "p50 ms", only: formatTable, right: true,
			cell: ms(func(c *channelStatus) *float64 { return c.P50 }),
		},
		{
			key: "p99_ms", head: "p99 ms", only: formatTable, right: true,
			cell: ms(func(c *channelStatus) *float64 { return c.P99 }),
		},
		{key: "p50_ms", only: formatCSV},
		{key: "p99_ms", only: formatCSV},
		{key: "unanswered", only: formatCSV},
		{key: "waiting"},
	}...)
	sheet.title = fmt.Sprintf("version %d at %s", s.RoutingVersion, s.Now.UTC().Format(instant))
	sheet.tight = true
	return sheet
}

// stateWords are the state and what keeps it from sending.
func (c *channelStatus) stateWords() string {
	words := []string{c.State}
	if why := c.whyWords(); why != "" {
		words = append(words, why)
	}
	if c.Silent {
		words = append(words, "silent")
	}
	if c.Throttled < 1 || c.PausedUntil != nil {
		words = append(words, "throttled to "+format(formatTable).share(&c.Throttled))
	}
	return strings.Join(words, "\n")
}

// whyWords say why instances cannot send on it.
func (c *channelStatus) whyWords() string {
	var words []string
	for _, r := range c.NotReady {
		words = append(words, fmt.Sprintf("%s on %d", r.Reason, r.Instances))
	}
	return strings.Join(words, ", ")
}

func (c *channelStatus) errorWords(between string) string {
	var words []string
	for _, code := range c.Codes {
		words = append(words, fmt.Sprintf("%s: %d", code.Code, code.Count))
	}
	return strings.Join(words, between)
}

func laneSheet(s *statusNow) sheet {
	return list(formatTable, s.Lanes, []column[laneStatus]{
		{key: "lane"},
		{key: "lag"},
		{head: "paused", cell: func(l *laneStatus) any {
			if l.Paused {
				return "paused"
			}
			return "no"
		}},
		{key: "readers"},
		{key: "waiting"},
		{head: "oldest", right: true, cell: func(l *laneStatus) any {
			if l.OldestSeconds == nil {
				return nil
			}
			age := time.Duration(*l.OldestSeconds * float64(time.Second))
			return age.Round(time.Second).String()
		}},
	}...)
}

func waitingSheet(s *statusNow) sheet {
	return list(formatTable, s.Waiting, []column[waitersNow]{
		{key: "messages"},
		{head: "wait for", width: 32, cell: func(w *waitersNow) any {
			if w.On == "" {
				return "none in particular"
			}
			return w.On
		}},
		{head: "because", width: 60, cell: func(w *waitersNow) any {
			return report.WaitWords(w.Reason)
		}},
	}...)
}

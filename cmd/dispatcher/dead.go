package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

func (c *cli) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List, show and publish again records that could not be used",
	}
	cmd.AddCommand(c.deadListCommand(), c.deadShowCommand(), c.deadReplayCommand())
	return cmd
}

// deadLine is one dead record as the commands show it, without number and text.
type deadLine struct {
	Record     string     `json:"record"` // its position: topic/partition/offset
	ID         string     `json:"id"`     // empty when it has no usable id
	Lane       string     `json:"lane"`
	Tenant     string     `json:"tenant"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
	Topic      string     `json:"topic"`
	Partition  int32      `json:"partition"`
	Offset     int64      `json:"offset"`
	ReceivedAt time.Time  `json:"received_at"`
	ReplayedAt *time.Time `json:"replayed_at"` // null if never
	ReplayedBy string     `json:"replayed_by"`
	ReplayedAs string     `json:"replayed_as"` // the id under which it was published
	// ReplayedVia is how the replay came in; empty where it was not recorded.
	ReplayedVia string `json:"replayed_via"`
}

func newDeadLine(d *ledger.DeadRecord) deadLine {
	line := deadLine{
		Record: d.Origin.String(), ID: d.ID, Lane: d.Lane, Tenant: d.Tenant, Reason: d.Reason,
		Detail: d.Detail, Topic: d.Origin.Topic, Partition: d.Origin.Partition,
		Offset: d.Origin.Offset, ReceivedAt: d.ReceivedAt,
	}
	if r := d.Replay; r != nil {
		line.ReplayedAt, line.ReplayedBy, line.ReplayedAs = &r.At, r.Author, r.As
		line.ReplayedVia = string(r.Via)
	}
	return line
}

// deadFilter are the flags that select dead records.
type deadFilter struct {
	lane, topic, reason, since string
	limit                      int
}

func (c *cli) deadListCommand() *cobra.Command {
	var f deadFilter
	var as format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records that could not be used",
		Long: `Lists records that could not be used, the latest first: where each was read, what is
wrong with it, and whether it was published again. Neither number nor text is shown. A record whose
id belongs to another message (conflict) is on the topic of dead letters alone, and so is not here;
nor are messages that have failed, of which "dispatcher explain" tells.`,
		Example: `  dispatcher dead list --since 1h
  dispatcher dead list --lane bulk --reason no_route --format csv`,
		Args: arguments(0, 0),
		RunE: work(func(ctx context.Context, _ []string) error {
			filter, err := f.parse(time.Now())
			if err != nil {
				return misused(err)
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.deadList(ctx, l, &filter, f.limit, as)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.lane, "lane", "", "only those of this lane")
	flags.StringVar(&f.topic, "topic", "", "only those that were read from this topic")
	flags.StringVar(&f.reason, "reason", "", "only those with this reason, such as bad_number")
	flags.StringVar(&f.since, "since", "", "only those that were read since then: a time such as "+
		"2026-11-21T10:00:00Z, or for how long, such as 2h")
	flags.IntVar(&f.limit, "limit", 100, "at most this many")
	as.addTo(flags)
	return cmd
}

func (f *deadFilter) parse(now time.Time) (parsed ledger.DeadFilter, err error) {
	if f.limit < 1 {
		return parsed, errors.New("--limit must be above 0")
	}
	parsed = ledger.DeadFilter{Lane: f.lane, Topic: f.topic, Reason: f.reason}
	if f.since != "" {
		parsed.Since, err = timeOrAgo("since", f.since, now)
	}
	return parsed, err
}

// timeOrAgo reads a flag that is a time with its zone, or a duration before now.
func timeOrAgo(flag, text string, now time.Time) (time.Time, error) {
	at, err := control.TimeOrAgo(text, now)
	if err != nil {
		err = fmt.Errorf("--%s: %w", flag, err)
	}
	return at, err
}

// timeRange reads --since and --until; an empty one leaves its bound as it is.
func timeRange(since, until string, now time.Time, from, before *time.Time) error {
	for _, bound := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", since, from}, {"until", until, before}} {
		if bound.text == "" {
			continue
		}
		at, err := timeOrAgo(bound.flag, bound.text, now)
		if err != nil {
			return err
		}
		*bound.at = at
	}
	return nil
}

func (c *cli) deadList(
	ctx context.Context, l *database, f *ledger.DeadFilter, limit int, as format,
) error {
	found, err := l.DeadRecords.List(ctx, f, limit)
	if err != nil {
		return err
	}
	total, err := l.DeadRecords.Count(ctx, f)
	if err != nil {
		return err
	}
	if as == formatTable && len(found) == 0 {
		fmt.Fprintln(c.out, "No record is dead.")
		return nil
	}
	lines := make([]deadLine, len(found))
	for i := range found {
		lines[i] = newDeadLine(&found[i])
	}
	if err := as.write(c.out, struct {
		Dead  []deadLine `json:"dead"`
		Total int64      `json:"total"`
	}{lines, total}, deadSheet(lines, as)); err != nil || as != formatTable {
		return err
	}
	fmt.Fprintf(c.out, "%d of %d. What is to be done about one: \"%s dead show RECORD\"\n",
		len(lines), total, c.self())
	return nil
}

// deadKeys are the columns of the CSV.
var deadKeys = []string{
	"record", "id", "lane", "tenant", "reason", "detail", "topic", "partition", "offset",
	"received_at", "replayed_at", "replayed_by", "replayed_as", "replayed_via",
}

// deadSheet has every field in CSV; a table leaves out those without room.
func deadSheet(lines []deadLine, as format) sheet {
	s := list(as, lines, append(keys[deadLine](formatCSV, deadKeys...), []column[deadLine]{
		{only: formatTable, key: "received_at", head: "read (UTC)", width: 10},
		{only: formatTable, key: "record", width: 26},
		{only: formatTable, key: "id", width: 20},
		{only: formatTable, key: "reason", width: 18},
		{only: formatTable, key: "detail", width: 30},
		{only: formatTable, head: "replayed", width: 14, cell: func(d *deadLine) any {
			return replayedWord(d)
		}},
	}...)...)
	s.tight = true
	return s
}

// replayedWord is a cell that says whether a record was published again, and under which id if that
// is another one.
func replayedWord(d *deadLine) string {
	switch {
	case d.ReplayedAt == nil:
		return "no"
	case d.ReplayedAs != d.ID:
		return "as " + d.ReplayedAs
	}
	return "yes"
}

// findDead reads the dead record with an id or at a position.
func findDead(ctx context.Context, l *database, name string) (ledger.DeadRecord, error) {
	d, err := control.FindDead(ctx, l.Ledger, name)
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		return d, failed(unknown.Err)
	}
	return d, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// replayFlags are the arguments of "dead replay".
type replayFlags struct {
	sets, unsets         []string
	file, reason, author string
	dryRun, again        bool
	filter               deadFilter // used without records as arguments
	all                  bool
	as                   format
}

func (c *cli) deadReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [RECORD...] --reason TEXT",
		Short: "Publish records again that could not be used, corrected or as they are",
		Long: `Publishes a record that could not be used to its lane's topic again: as it is, after
what was wrong around it has been corrected (a route, a limit of segments), or changed by --set,
--unset or --file. What would be a dead record again is refused.

It keeps its id, which the dead record gives back. If it has none, or another message has the id, it
gets a new one, such as dead-4711, and keeps that when it is replayed again. Who replayed it, when
and why is recorded. A record that was replayed is refused; --again publishes it once more under the
same id, when it was lost on its way to Kafka: no id is ever sent twice.

RECORD is an id, or a position as "dead list" shows it. --set and --file go with one record. Without
RECORD, --lane, --topic, --dead-reason and --since, or --all, select among the records that were not
replayed yet, the oldest first: look at them with --dry-run first.`,
		Example: `  dispatcher dead replay sms.otp/3/17 --set to=+447700900123 --reason "typo" --dry-run
  dispatcher dead replay order-7731-otp --file corrected.json --reason "corrected by the shop"
  dispatcher dead replay --dead-reason no_route --reason "route for +44 added" --dry-run`,
		Args: arguments(0, anyNumber),
		RunE: work(func(ctx context.Context, args []string) error {
			changes, err := f.check(len(args))
			if err != nil {
				return misused(err)
			}
			return c.replayDead(ctx, &f, changes, args)
		}),
	}
	f.addTo(cmd.Flags(), c)
	return cmd
}

func (f *replayFlags) addTo(flags *pflag.FlagSet, c *cli) {
	flags.StringArrayVar(&f.sets, "set", nil, "field=value: give a field of the envelope a value, "+
		"in JSON for labels, selectors and metadata; may be repeated")
	flags.StringArrayVar(&f.unsets, "unset", nil, "leave a field out; may be repeated")
	flags.StringVar(&f.file, "file", "", "file with the corrected envelope (JSON), in place of "+
		"the record; - is standard input")
	flags.StringVar(&f.reason, "reason", "", "why; the record shows it (required); do not write "+
		"numbers into it")
	c.authorFlag(flags, &f.author)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what would be published, without number "+
		"and text")
	flags.BoolVar(&f.again, "again", false,
		"publish again a record that was replayed and has not arrived")
	flags.StringVar(&f.filter.lane, "lane", "", "all records of this lane")
	flags.StringVar(&f.filter.topic, "topic", "", "all that were read from this topic")
	flags.StringVar(&f.filter.reason, "dead-reason", "", "all that are dead for this reason, such "+
		"as no_route")
	flags.StringVar(&f.filter.since, "since", "", "all that were read since then: a time such as "+
		"2026-11-21T10:00:00Z, or for how long, such as 2h")
	flags.IntVar(&f.filter.limit, "limit", 100, "of them, at most this many; up to 1000")
	flags.BoolVar(&f.all, "all", false, "all records")
	f.as.addTo(flags)
}

// filtered reports whether a flag selects records.
func (f *replayFlags) filtered() bool {
	return f.all || f.filter.lane != "" || f.filter.topic != "" || f.filter.reason != "" ||
		f.filter.since != ""
}

// check refuses flags that exclude each other, and reads the changes.
func (f *replayFlags) check(records int) (changes []envelope.Change, err error) {
	for _, set := range f.sets {
		field, value, ok := strings.Cut(set, "=")
		if !ok || field == "" {
			return nil, errors.New("--set is not field=value")
		}
		changes = append(changes, envelope.Change{Field: field, Value: value})
	}
	for _, field := range f.unsets {
		changes = append(changes, envelope.Change{Field: field, Remove: true})
	}
	switch {
	case strings.TrimSpace(f.reason) == "":
		return nil, errors.New(`--reason is missing: write why, for example --reason ` +
			`"corrected by the shop"`)
	case strings.TrimSpace(f.author) == "":
		return nil, errors.New("--author is empty: name who replays")
	case f.file != "" && len(changes) > 0:
		return nil, errors.New("--file excludes --set and --unset: the file holds the whole envelope")
	case records > 0 && f.filtered():
		return nil, errors.New("name records, or say which are meant by flags: not both")
	case records == 0 && !f.filtered():
		return nil, errors.New("name a record, or say which are meant: --lane, --topic, " +
			"--dead-reason, --since or --all")
	case f.filter.limit > control.MostReplayed:
		return nil, fmt.Errorf("--limit is above %d", control.MostReplayed)
	case records != 1 && (f.file != "" || len(f.sets) > 0):
		return nil, errors.New("--file and --set change one record: name one")
	}
	return changes, control.CheckReason(f.reason)
}

// replayedLine is the result for one record.
type replayedLine struct {
	control.Replayed
	// Envelope is what would be published, without number and text; only in a dry run.
	Envelope []shownField `json:"envelope,omitempty"`
}

// replayDead replays the records one by one. If it fails, what it has published stays published.
func (c *cli) replayDead(
	ctx context.Context, f *replayFlags, changes []envelope.Change, names []string,
) error {
	needs := []need{needPostgres, needKafka}
	if f.dryRun {
		needs = needs[:1]
	}
	s, err := c.settings(needs...)
	if err != nil {
		return err
	}
	l, err := c.openLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	r := &replayer{cli: c, ledger: l, flags: f, how: control.Replaying{
		Changes: changes, Again: f.again,
		By: control.By{
			Author: f.author, Via: ledger.ViaCommand, Reason: f.reason, DryRun: f.dryRun,
		},
	}}
	if err := r.prepare(ctx); err != nil {
		return l.sentence(err)
	}
	defer r.close()
	records, err := r.records(ctx, names)
	if err != nil {
		return l.sentence(err)
	}
	lines, left := make([]replayedLine, 0, len(records)), false
	for i := range records {
		line, err := r.replay(ctx, &records[i])
		if err != nil {
			return errors.Join(c.printReplayed(lines, f), l.sentence(err))
		}
		lines, left = append(lines, line), left || line.Why != ""
	}
	if err := c.printReplayed(lines, f); err != nil || !left {
		return err
	}
	return failed(nil) // the records left were reported
}

func (c *cli) printReplayed(lines []replayedLine, f *replayFlags) error {
	if f.as != formatTable {
		return f.as.write(c.out, struct {
			DryRun   bool           `json:"dry_run"`
			Replayed []replayedLine `json:"replayed"`
		}{f.dryRun, lines}, list(f.as, lines,
			keys[replayedLine]("", "record", "published", "id", "new_id", "topic", "why")...))
	}
	if len(lines) == 0 {
		fmt.Fprintln(c.out, "No record matches that was not replayed.")
	}
	for i := range lines {
		line := &lines[i]
		switch {
		case line.Why != "":
			fmt.Fprintf(c.err, "dispatcher: %s %s\n", line.Record, line.Why)
		case f.dryRun:
			fmt.Fprintf(c.out, "%s would be published to %s as:\n", line.Record, line.Topic)
			envelopeSheet(line.Envelope).draw(c.out)
		default:
			fmt.Fprintf(c.out, "%s is published to %s as %s.\n", line.Record, line.Topic, line.ID)
		}
	}
	if n := slices.IndexFunc(lines, func(l replayedLine) bool { return l.Published }); n >= 0 {
		fmt.Fprintf(c.out, "\nWhat became of it:\n  %s explain %s\n", c.self(), quoted(lines[n].ID))
	}
	return nil
}

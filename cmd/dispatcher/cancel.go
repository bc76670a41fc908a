package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// cancelFlags are the arguments of "cancel".
type cancelFlags struct {
	author, reason, file string
	lane, route, tenant  string
	prefix, since, until string
	pending, dryRun, yes bool
	format               format
}

func (c *cli) cancelCommand() *cobra.Command {
	f := cancelFlags{format: formatTable}
	cmd := &cobra.Command{
		Use:   "cancel ID|--file FILE --reason TEXT | cancel --tenant NAME --until TIME --reason TEXT",
		Short: "End a message that has not left, or many",
		Long: `Ends a message that is scheduled, waits, or is to be tried again after a channel has
refused it: it fails with the reason "cancelled", which its status event says, and is never sent. A
message with an attempt in flight, or of which a provider may have any part, is not changed, and the
command says why. With --file each message is ended by itself, and those that cannot be are listed.

A message that is still in Kafka is not in the ledger yet. With --pending its cancellation is
stored: it fails as soon as it is read, without having been sent. Look at the id twice: nobody can
tell yet whether a message has it. "dispatcher explain" says that a cancellation is pending, and
"dispatcher status" counts them. One whose message does not come within DISPATCHER_ID_RETENTION is
removed.

In place of an id, --lane, --route, --tenant, --prefix, --since and --until name all messages that
match every one of them and were stored before the command began. --dry-run counts them and changes
nothing, and --yes ends them. Those that leave meanwhile are listed, and the exit code is 1. What
was cancelled before the command is interrupted stays so. Pause what you cancel first, or new
messages go out while you count; by route, tenant or prefix, because a paused lane is not read, and
a filter does not find what is still in Kafka. The command says how much that is.`,
		Example: `  dispatcher cancel order-7731-otp --reason "scheduled for the wrong day"
  dispatcher cancel order-7732-otp --pending --reason "still in Kafka"
  dispatcher cancel --file campaign.txt --reason "wrong text"
  dispatcher cancel --tenant shop --since 2h --reason "wrong text" --dry-run
  dispatcher cancel --tenant shop --since 2h --reason "wrong text" --yes`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if err := f.check(len(args) == 1); err != nil {
				return misused(err)
			}
			return c.withLedger(ctx, func(l *database) error {
				switch {
				case len(args) == 1:
					return c.cancelMessage(ctx, l, args[0], &f)
				case f.file != "":
					return c.cancelFile(ctx, l, &f)
				}
				return c.cancelMany(ctx, l, &f)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "ids of messages, one a line; - reads standard input")
	flags.BoolVar(&f.pending, "pending", false, "also a message that is not in the ledger yet: it is "+
		"cancelled when it comes")
	flags.StringVar(&f.reason, "reason", "", "why; the record shows it (required); do not "+
		"write numbers into it")
	c.authorFlag(flags, &f.author)
	flags.StringVar(&f.lane, "lane", "", "only those of this lane")
	flags.StringVar(&f.route, "route", "", "only those on this route")
	flags.StringVar(&f.tenant, "tenant", "", "only those of this tenant")
	flags.StringVar(&f.prefix, "prefix", "", "only those to numbers that begin so, such as +44")
	flags.StringVar(&f.since, "since", "", "only those that were stored since then: a time such as "+
		"2026-11-21T10:00:00Z, or for how long, such as 2h")
	flags.StringVar(&f.until, "until", "", "only those that were stored before then")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with a filter: only count what would be cancelled")
	flags.BoolVar(&f.yes, "yes", false, "with a filter: cancel what --dry-run counts")
	flags.Var(&f.format, "format", "output format, with a filter")
	return cmd
}

func (f *cancelFlags) by() control.By {
	return control.By{Author: f.author, Via: ledger.ViaCommand, Reason: f.reason}
}

// filter is what the flags select.
func (f *cancelFlags) filter(now time.Time) (out control.Unsent, err error) {
	out.Lane, out.Route, out.Tenant, out.Prefix = f.lane, f.route, f.tenant, f.prefix
	return out, timeRange(f.since, f.until, now, &out.Since, &out.Before)
}

func (f *cancelFlags) check(named bool) error {
	filter, err := f.filter(time.Now())
	filtered := f.lane+f.route+f.tenant+f.prefix+f.since+f.until != ""
	switch {
	case named && f.file != "":
		return errors.New("an id and --file exclude each other")
	case (named || f.file != "") && (filtered || f.dryRun || f.yes):
		return errors.New("an id or --file, and a filter, --dry-run or --yes exclude each other")
	case (named || f.file != "") && f.format != formatTable:
		return errors.New("--format goes with a filter: with an id or --file the exit code tells " +
			"the result")
	case !named && f.file == "" && !filtered:
		return errors.New("name a message, a file of ids with --file, or at least one of --lane, " +
			"--route, --tenant, --prefix, --since and --until")
	case filtered && f.pending:
		return errors.New("--pending goes with an id or --file: a filter finds only what is in the " +
			"ledger")
	case f.dryRun && f.yes:
		return errors.New("--dry-run and --yes exclude each other")
	case strings.TrimSpace(f.reason) == "":
		return errors.New(`--reason is missing: write why, for example --reason ` +
			`"scheduled for the wrong day"`)
	case strings.TrimSpace(f.author) == "":
		return errors.New("--author is empty: name who cancels")
	case filtered && err == nil:
		err = filter.Check()
	}
	return cmp.Or(err, control.CheckReason(f.reason))
}

func (c *cli) cancelMessage(
	ctx context.Context, l *database, id string, f *cancelFlags,
) error {
	was, err := control.Cancel(ctx, l.Ledger, id, f.pending, f.by())
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		return failed(fmt.Errorf("%w; with --pending it is cancelled when it comes", unknown.Err))
	}
	switch {
	case err != nil:
		return err
	case was == "":
		fmt.Fprintln(c.out, control.PendingWords(id))
	default:
		fmt.Fprintf(c.out, "Message %s is cancelled. It was %s.\n", id, was)
	}
	return nil
}

// cancelFile ends the messages of a file, and lists those that it cannot end.
func (c *cli) cancelFile(ctx context.Context, l *database, f *cancelFlags) error {
	in := c.in
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return usage(fmt.Errorf("--file: %w", err))
		}
		defer file.Close() //nolint:errcheck // It was only read.
		in = file
	}
	var done, pending, left int64
	err := eachLine(withoutMark(in), func(_ int, line []byte) error {
		was, err := control.Cancel(ctx, l.Ledger, string(line), f.pending, f.by())
		_, unknown := errors.AsType[*control.Unknown](err)
		_, impossible := errors.AsType[*control.Impossible](err)
		switch {
		case unknown, impossible:
			left++
			fmt.Fprintf(c.out, "%s\n", err)
		case err != nil:
			return err
		case was == "":
			pending++
		default:
			done++
		}
		return nil
	})
	if pending > 0 {
		fmt.Fprintf(c.out, "%s not in the ledger yet: cancelled if they come within "+
			"DISPATCHER_ID_RETENTION.\n", counted(pending, "message is", "messages are"))
	}
	fmt.Fprintf(c.out, "%s cancelled; %s not.\n", counted(done, "message is", "messages are"),
		counted(left, "is", "are"))
	if err == nil && left > 0 {
		return failed(nil) // they have been listed
	}
	return err
}

// cancelledMany is the result of cancelling by a filter. Scripts rely on the JSON names.
type cancelledMany struct {
	DryRun    bool           `json:"dry_run"`
	Matched   int64          `json:"matched"`
	Cancelled int64          `json:"cancelled"`
	Left      []control.Left `json:"left"`
}

// cancelPageSize is how many messages are cancelled at once.
const cancelPageSize = 500

// cancelMany ends the messages that the filter finds, up to the start of the command.
func (c *cli) cancelMany(ctx context.Context, l *database, f *cancelFlags) error {
	now, err := l.Clock(ctx)
	if err != nil {
		return err
	}
	filter, err := f.filter(now)
	if err != nil {
		return misused(err)
	}
	if filter.Before.IsZero() {
		filter.Before = now
	}
	result := cancelledMany{DryRun: f.dryRun, Left: []control.Left{}}
	if result.Matched, err = control.CountUnsent(ctx, l.Ledger, &filter); err != nil {
		return inCommands(err)
	}
	switch {
	case f.dryRun:
		return c.printCancelled(ctx, l, &result, f)
	case !f.yes && result.Matched > 0:
		return usage(fmt.Errorf("%s would be cancelled, and nothing was changed: cancel them with "+
			"--yes", counted(result.Matched, "message", "messages")))
	}
	if err := control.NoteCancellation(ctx, l.Ledger, &filter, f.by()); err != nil {
		return err
	}
	show, wipe := c.progress("cancelling", result.Matched)
	done, err := control.EachPage(0, control.Never,
		func(after int64, sum *control.Page[int64]) (control.Page[int64], error) {
			show(sum.Tried())
			return control.CancelPage(ctx, l.Ledger, &filter, after, cancelPageSize, f.by())
		})
	wipe()
	result.Cancelled, result.Left = done.Done, append(result.Left, done.Left...)
	return printedLeft(c.printCancelled(ctx, l, &result, f), err, result.Left)
}

func (c *cli) printCancelled(
	ctx context.Context, l *database, r *cancelledMany, f *cancelFlags,
) error {
	sentence := fmt.Sprintf("%d of %d messages are cancelled.", r.Cancelled, r.Matched)
	if r.DryRun {
		sentence = fmt.Sprintf("%s would be cancelled; with --yes in place of --dry-run they are.",
			counted(r.Matched, "message", "messages"))
	}
	if err := c.printMany(r, r.Left, f.format, sentence); err != nil || f.format != formatTable {
		return err
	}
	return c.printUnread(ctx, l, f.lane)
}

// printUnread says how many records are still in Kafka, where no filter finds them.
func (c *cli) printUnread(ctx context.Context, l *database, lane string) error {
	now, err := readStatus(ctx, l)
	if err != nil {
		return err
	}
	for i := range now.Lanes {
		one := &now.Lanes[i]
		if one.Lag == nil || *one.Lag == 0 || lane != "" && lane != one.Lane {
			continue
		}
		said := fmt.Sprintf("Lane %s has %s in Kafka, which no filter finds: do it again when they "+
			"are read.", one.Lane, counted(*one.Lag, "more record", "more records"))
		if slices.Contains(now.Paused, "lane "+one.Lane) || slices.Contains(now.Paused, "all") {
			said += " A paused lane is not read, and resuming it sends them: pause their route, tenant " +
				"or prefix, then resume the lane."
		}
		fmt.Fprintln(c.out, paragraph(c.out, said))
	}
	return nil
}

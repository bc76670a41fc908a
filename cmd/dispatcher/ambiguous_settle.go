package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// settleFlags are the arguments of "ambiguous settle".
type settleFlags struct {
	as, reference, reason, author string
	filter                        ambiguousFilter
	dryRun, yes                   bool
	format                        format
}

func (c *cli) ambiguousSettleCommand() *cobra.Command {
	f := settleFlags{format: formatTable}
	cmd := &cobra.Command{
		Use: "settle ID --as WHAT --reason TEXT | settle --channel NAME --until TIME " +
			"--as WHAT --reason TEXT",
		Short: "Record what became of an ambiguous message, or of all that a filter finds",
		Long: `Records what became of a message that a provider may or may not have taken, as
you know it from the provider's own log:

  --as taken       the provider has it: it counts as accepted and is billed
  --as not_taken   the provider does not have it: it is sent by another channel, or failed when its
                   deadline has passed
  --as final       nobody will know: it stays unknown, counts as possibly billable and is never sent
                   again

In place of an id, --channel, --lane, --tenant, --code, --since and --until name many at once.
--dry-run counts them and changes nothing, and --yes settles them. Each is settled by itself: one
that cannot be is left as it is and listed, and the exit code is 1. What was settled before the
command is interrupted stays settled. --outcome is the same as --as.`,
		Example: `  dispatcher ambiguous settle order-7731-otp --as taken --reference 8a71 \
      --reason "in the carrier's log of today"
  dispatcher ambiguous settle --channel b --until 2026-11-21T10:00:00Z --as final \
      --reason "b keeps no log" --dry-run
  dispatcher ambiguous settle --channel b --until 2026-11-21T10:00:00Z --as final \
      --reason "b keeps no log" --yes`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if err := f.check(len(args) == 1); err != nil {
				return misused(err)
			}
			return c.withLedger(ctx, func(l *database) error {
				if len(args) == 1 {
					return c.settleOne(ctx, l, args[0], &f)
				}
				return c.settleMany(ctx, l, &f)
			})
		}),
	}
	cmd.Flags().StringVar(&f.as, "as", "",
		"what became of it: taken, not_taken or final (required)")
	cmd.Flags().StringVar(&f.reference, "reference", "",
		"the provider's id of the message; only with --as taken and one id")
	cmd.Flags().StringVar(&f.reason, "reason", "",
		"how you know it; the history shows it (required)")
	c.authorFlag(cmd.Flags(), &f.author)
	f.filter.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false,
		"with a filter: only count what would be settled")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with a filter: settle what --dry-run counts")
	cmd.Flags().Var(&f.format, "format", "output format, with a filter")
	return cmd
}

// settlement is the outcome that the flags state.
func (f *settleFlags) settlement() *control.Settlement {
	return &control.Settlement{
		As: f.as, Reference: f.reference, By: control.By{
			Author: f.author, Via: ledger.ViaCommand, Reason: f.reason,
		},
	}
}

func (f *settleFlags) check(named bool) error {
	known := slices.Contains(control.Resolutions, f.as)
	_, err := f.filter.parse(time.Now())
	switch {
	case !known:
		return errors.New("--as must be taken, not_taken or final")
	case strings.TrimSpace(f.reason) == "":
		return errors.New(`--reason is missing: write how you know, for example --reason "in ` +
			`the carrier's log of today"`)
	case strings.TrimSpace(f.author) == "":
		return errors.New("--author is empty: name who decides")
	case f.reference != "" && (f.as != "taken" || !named):
		return errors.New("--reference goes with --as taken and one id")
	case named && (f.filter.given() || f.filter.all || f.dryRun || f.yes):
		return errors.New("an id and a filter, --all, --dry-run or --yes exclude each other")
	case named && f.format != formatTable:
		return errors.New("--format goes with a filter: with an id the exit code tells the result")
	case !named && !f.filter.given():
		return errors.New("name the id of a message, or at least one of --channel, --lane, " +
			"--tenant, --code, --since and --until")
	case f.dryRun && f.yes:
		return errors.New("--dry-run and --yes exclude each other")
	}
	return cmp.Or(err, control.CheckReason(f.reason))
}

// settleOne settles the message with an id and prints the result.
func (c *cli) settleOne(ctx context.Context, l *database, id string, f *settleFlags) error {
	attempt, why, err := control.Settle(ctx, l.Ledger, id, 0, f.settlement())
	switch {
	case err != nil:
		return err
	case why != "":
		return failed(fmt.Errorf("message %s %s", quoted(id), why))
	}
	after, err := l.Messages.Record(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Attempt %d of message %s on %s is settled as %s. State of the message: "+
		"%s.\n",
		attempt.Number, id, attempt.Channel, f.as, after.Message.State)
	return nil
}

// settledMany is the result of settling by a filter. Scripts rely on the JSON names.
type settledMany struct {
	As      string         `json:"as"`
	DryRun  bool           `json:"dry_run"`
	Matched int64          `json:"matched"`
	Settled int64          `json:"settled"`
	Left    []control.Left `json:"left"`
}

// settlePage is how many submissions are read at once.
const settlePage = 500

// settleMany settles each message that the filter finds, in the order in which they became
// ambiguous, up to the start of the command. If it fails or is interrupted, what it has settled
// stays settled.
func (c *cli) settleMany(ctx context.Context, l *database, f *settleFlags) error {
	now, err := l.Clock(ctx)
	if err != nil {
		return err
	}
	filter, err := f.filter.parse(now)
	if err != nil {
		return misused(err)
	}
	if filter.Before.IsZero() {
		filter.Before = now
	}
	result := settledMany{As: f.as, DryRun: f.dryRun, Left: []control.Left{}}
	if result.Matched, err = control.CountAmbiguous(ctx, l.Ledger, &filter); err != nil {
		return inCommands(err)
	}
	switch {
	case f.dryRun:
		return c.printSettled(&result, f)
	case !f.yes && result.Matched > 0:
		return usage(fmt.Errorf("%s would be settled as %s, and nothing was changed: list them "+
			"with \"dispatcher ambiguous list\" and the same filter, then settle them with --yes",
			counted(result.Matched, "message", "messages"), f.as))
	}
	show, wipe := c.progress("settling", result.Matched)
	done, err := settlePages(ctx, l, f, &filter, settlePage, show)
	wipe()
	result.Settled, result.Left = done.Done, append(result.Left, done.Left...)
	return printedLeft(c.printSettled(&result, f), err, result.Left)
}

// settlePages settles page by page; size is the number of submissions of a page.
func settlePages(
	ctx context.Context, l *database, f *settleFlags, filter *ledger.AmbiguousFilter, size int,
	show func(done int64),
) (control.Page[ledger.AmbiguityRecord], error) {
	type page = control.Page[ledger.AmbiguityRecord]
	return control.EachPage(ledger.AmbiguityRecord{}, control.Never,
		func(last ledger.AmbiguityRecord, sum *page) (page, error) {
			tried := sum.Tried()
			return control.SettlePage(ctx, l.Ledger, filter, &last, size, f.settlement(), func() {
				tried++
				show(tried)
			})
		})
}

func (c *cli) printSettled(r *settledMany, f *settleFlags) error {
	sentence := fmt.Sprintf("%d of %d messages are settled as %s.", r.Settled, r.Matched, r.As)
	if r.DryRun {
		sentence = fmt.Sprintf("%d messages would be settled as %s; with --yes in place of "+
			"--dry-run they are.", r.Matched, r.As)
	}
	return c.printMany(r, r.Left, f.format, sentence)
}

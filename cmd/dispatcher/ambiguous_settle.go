package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// settleFlags are the arguments of "ambiguous settle".
type settleFlags struct {
	as, reference, reason, author string
	filter                        ambiguousFilter
	dryRun                        bool
	format                        format
}

func (c *cli) ambiguousSettleCommand() *cobra.Command {
	f := settleFlags{format: formatTable}
	cmd := &cobra.Command{
		Use:   "settle ID | settle --channel NAME --before TIME",
		Short: "Record what became of an ambiguous message, or of all that a filter finds",
		Long: `Records what became of a message that a provider may or may not have taken, as
you know it from the provider's own log:

  --as taken       the provider has it: it counts as accepted and is billed
  --as not_taken   the provider does not have it: it is sent by another channel, or failed when its
                   deadline has passed
  --as final       nobody will know: it stays unknown, counts as possibly billable and is never sent
                   again

In place of an id, --channel, --lane and --before name many at once; --dry-run counts them and
changes nothing. Each is settled by itself: one that cannot be is left as it is and listed, and
the exit code is 1.`,
		Example: `  dispatcher ambiguous settle order-7731-otp --as taken --reference 8a71 \
      --reason "in the carrier's log of today"
  dispatcher ambiguous settle --channel b --before 2026-11-21T10:00:00Z --as final \
      --reason "b keeps no log" --dry-run`,
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
	cmd.Flags().Var(&f.format, "format", "output format, with a filter")
	return cmd
}

// verdicts are the words of --as.
var verdicts = map[string]ledger.ResolvedAs{
	"taken": ledger.Taken, "not_taken": ledger.NotTaken,
	"final": ledger.Unresolved,
}

func (f *settleFlags) check(named bool) error {
	_, known := verdicts[f.as]
	_, err := f.filter.parse()
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
	case named && (f.filter.given() || f.filter.all || f.dryRun):
		return errors.New("an id and --channel, --lane, --before, --all or --dry-run exclude " +
			"each other")
	case !named && !f.filter.given():
		return errors.New("name the id of a message, or at least one of --channel, --lane and " +
			"--before")
	}
	return err
}

// settleOne settles the message with an id and says what became of it.
func (c *cli) settleOne(ctx context.Context, l *database, id string, f *settleFlags) error {
	attempt, why, err := settle(ctx, l, id, 0, f)
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

// settle settles an ambiguous attempt of a message, by its number or, when that is 0, the latest.
// Where that cannot be, why completes the sentence "message ID ...".
func settle(
	ctx context.Context, l *database, id string, number int, f *settleFlags,
) (attempt ledger.Attempt, why string, err error) {
	open, err := l.Ambiguities.Of(ctx, id, number)
	if errors.Is(err, ledger.ErrNotAmbiguous) {
		if _, err := l.Messages.Record(ctx, id); errors.Is(err, ledger.ErrNoMessage) {
			return attempt, "is not in the ledger: no message has this id", nil
		}
		return attempt, `is not ambiguous: "dispatcher explain" tells what became of it`, nil
	}
	if err != nil {
		return attempt, "", err
	}
	if verdicts[f.as] == ledger.NotTaken && open.Partly {
		return attempt, "is known to have been taken in part: settle it as taken, or as final", nil
	}
	now, err := l.Clock(ctx)
	if err != nil {
		return attempt, "", err
	}
	if verdicts[f.as] == ledger.NotTaken && open.Message.Envelope == nil &&
		open.Message.ExpiresAt.After(now) {
		return attempt, "cannot be sent again, because its number and text are not kept any " +
			"more: settle it as taken, or as final", nil
	}
	resolution := decide.Resolve(&open, verdicts[f.as], decide.CodeOperator, f.reference, now)
	resolution.Author, resolution.Note = f.author, f.reason
	ended, err := l.Ambiguities.Resolve(ctx, resolution)
	if err == nil && !ended {
		why = "has been settled meanwhile, or is being submitted again just now: look at it once " +
			"more in a few seconds"
	}
	return open.Attempt, why, err
}

// settledMany is what settling by a filter came to. The JSON names are relied on by scripts.
type settledMany struct {
	As      string     `json:"as"`
	DryRun  bool       `json:"dry_run"`
	Matched int64      `json:"matched"`
	Settled int64      `json:"settled"`
	Left    []leftOpen `json:"left"`
}

// leftOpen is a message that could not be settled.
type leftOpen struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// settleMany settles each message that the filter finds, in the order in which they became
// ambiguous. What was settled before it fails or is interrupted stays settled.
func (c *cli) settleMany(ctx context.Context, l *database, f *settleFlags) error {
	filter, err := f.filter.parse()
	if err != nil {
		return misused(err)
	}
	found, err := l.Ambiguities.List(ctx, &filter, 0)
	if err != nil {
		return err
	}
	result := settledMany{
		As: f.as, DryRun: f.dryRun, Matched: int64(len(found)),
		Left: []leftOpen{},
	}
	for i := range found {
		if f.dryRun {
			break
		}
		_, why, err := settle(ctx, l, found[i].ID, found[i].Last, f)
		switch {
		case err != nil:
			return errors.Join(c.printSettled(&result, f), err)
		case why != "":
			result.Left = append(result.Left, leftOpen{found[i].ID, why})
		default:
			result.Settled++
		}
	}
	if err := c.printSettled(&result, f); err != nil || len(result.Left) == 0 {
		return err
	}
	return &codedError{code: exitFailed} // the list of those left has said it
}

func leftSheet(r *settledMany, as format) sheet {
	return list(as, r.Left, []column[leftOpen]{
		{key: "id"},
		{key: "why", name: "why_it_was_left", head: "why it was left", width: 80},
	}...)
}

func (c *cli) printSettled(r *settledMany, f *settleFlags) error {
	left := leftSheet(r, f.format)
	if f.format != formatTable {
		return f.format.write(c.out, r, left)
	}
	if len(left.rows) > 0 {
		left.draw(c.out)
	}
	if r.DryRun {
		fmt.Fprintf(c.out, "%d messages would be settled as %s; without --dry-run they are.\n",
			r.Matched, r.As)
	} else {
		fmt.Fprintf(c.out, "%d of %d messages are settled as %s.\n", r.Settled, r.Matched, r.As)
	}
	return nil
}

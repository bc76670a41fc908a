package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/ledger"
)

func (c *cli) ambiguousCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ambiguous",
		Short: "List and settle messages of which nobody knows whether a provider took them",
	}
	cmd.AddCommand(c.ambiguousListCommand(), c.ambiguousSettleCommand())
	return cmd
}

// doubtLine is one doubt as the command shows it.
type doubtLine struct {
	ID          string    `json:"id"`
	Lane        string    `json:"lane"`
	Tenant      string    `json:"tenant"`
	Channel     string    `json:"channel"`
	Attempt     int       `json:"attempt"`
	Segments    int       `json:"segments"`
	PriceMicros int64     `json:"price_micros"`
	Currency    string    `json:"currency"`
	Code        string    `json:"code"`
	Step        string    `json:"step"`
	OpenedAt    time.Time `json:"opened_at"`
	Until       time.Time `json:"until"`
	Asked       int       `json:"asked"`
	Verdict     string    `json:"verdict"` // empty while it is open
	Author      string    `json:"author"`
	Note        string    `json:"note"`
}

func (c *cli) ambiguousListCommand() *cobra.Command {
	as := format(formatTable)
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what nobody knows",
		Long: `Lists submissions that a provider may or may not have taken, oldest first: those about which the dispatcher
still tries to find out, and with --all also those that ended without anybody knowing. Those are booked as possibly billable.`,
		Args: arguments(0, 0),
		RunE: work(func(ctx context.Context, _ []string) error {
			if limit < 1 {
				return misused(errors.New("--limit must be above 0"))
			}
			return c.ambiguousList(ctx, all, limit, as)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that ended without anybody knowing")
	cmd.Flags().IntVar(&limit, "limit", 100, "so many at most")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) ambiguousList(ctx context.Context, all bool, limit int, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	doubts, err := l.AllDoubts(ctx, all, limit)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	if as == formatTable && len(doubts) == 0 {
		fmt.Fprintln(c.out, "There is no doubt about any message.")
		return nil
	}
	lines := make([]doubtLine, len(doubts))
	for i := range doubts {
		d := &doubts[i]
		lines[i] = doubtLine{
			ID: d.ID, Lane: d.Lane, Tenant: d.Tenant, Channel: d.Channel, Attempt: d.Attempt, Segments: d.Segments, PriceMicros: d.PriceMicros,
			Currency: d.Currency, Code: d.Code, Step: string(d.Step), OpenedAt: d.OpenedAt, Until: d.Until, Asked: d.Asked,
			Verdict: string(d.Verdict), Author: d.Author, Note: d.Note,
		}
	}
	return as.print(c.out, struct {
		Ambiguous []doubtLine `json:"ambiguous"`
	}{lines}, doubtSheet(lines, as))
}

// doubtSheet has everything in CSV; a table leaves out what only scripts want, so that it fits a terminal.
func doubtSheet(lines []doubtLine, as format) sheet {
	if as != formatCSV {
		return doubtTable(lines)
	}
	s := sheet{header: []string{
		"id", "lane", "tenant", "channel", "attempt", "segments", "price_micros", "currency", "code", "step", "opened_at", "until", "asked", "verdict", "author", "note",
	}}
	for i := range lines {
		d := &lines[i]
		s.rows = append(s.rows, []string{
			d.ID, d.Lane, d.Tenant, d.Channel, number(int64(d.Attempt)), number(int64(d.Segments)), number(d.PriceMicros), d.Currency, d.Code, d.Step,
			d.OpenedAt.Format(time.RFC3339), d.Until.Format(time.RFC3339), number(int64(d.Asked)), d.Verdict, d.Author, d.Note,
		})
	}
	return s
}

func doubtTable(lines []doubtLine) sheet {
	s := sheet{
		header: []string{"id", "lane", "attempt", "price", "code", "since (UTC)", "found out (UTC)"}, tight: true,
		right: []int{4}, wrap: map[int]int{1: 24, 2: 13, 3: 18, 4: 13, 5: 12, 6: 10, 7: 14},
	}
	for i := range lines {
		d := &lines[i]
		s.rows = append(s.rows, []string{
			d.ID, d.Lane, number(int64(d.Attempt)) + " on " + d.Channel, amount(d.PriceMicros, d.Currency), d.Code, d.OpenedAt.Format(time.DateTime), d.standing(),
		})
	}
	return s
}

// standing is how it is tried to find out, and until when; once that has ended, the verdict.
func (d *doubtLine) standing() string {
	if d.Verdict != "" {
		return d.Verdict
	}
	return d.Step + ", until " + d.Until.Format(time.DateTime)
}

// settleFlags are the arguments of "ambiguous settle".
type settleFlags struct{ as, reference, reason, author string }

func (c *cli) ambiguousSettleCommand() *cobra.Command {
	f := settleFlags{}
	cmd := &cobra.Command{
		Use:   "settle ID",
		Short: "Say what became of a message",
		Long: `Writes down what became of a message that a provider may or may not have taken, as you know it from the provider's
own log:

  --as taken       the provider has it: it counts as accepted and is billed
  --as not_taken   the provider does not have it: it is sent by another channel, or failed when its deadline has passed
  --as final       nobody will know: it stays unknown, is booked as possibly billable and never sent again`,
		Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error { return c.ambiguousSettle(ctx, args[0], &f) }),
	}
	cmd.Flags().StringVar(&f.as, "as", "", "taken, not_taken or final (required)")
	cmd.Flags().StringVar(&f.reference, "reference", "", "the provider's id of the message, with --as taken")
	cmd.Flags().StringVar(&f.reason, "reason", "", "how you know, for those who look at the history (required)")
	cmd.Flags().StringVar(&f.author, "author", c.user(), "who")
	return cmd
}

// verdicts are the words of --as.
var verdicts = map[string]ledger.Verdict{"taken": ledger.Taken, "not_taken": ledger.NotTaken, "final": ledger.FinalWord}

func (f *settleFlags) check() error {
	_, known := verdicts[f.as]
	switch {
	case !known:
		return misused(errors.New("--as must be taken, not_taken or final"))
	case strings.TrimSpace(f.reason) == "":
		return misused(errors.New(`--reason is missing: write how you know, for example --reason "in the carrier's log of today"`))
	case strings.TrimSpace(f.author) == "":
		return misused(errors.New("--author is empty: name who decides"))
	case f.reference != "" && f.as != "taken":
		return misused(errors.New("--reference goes with --as taken"))
	}
	return nil
}

func (c *cli) ambiguousSettle(ctx context.Context, id string, f *settleFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	doubt, err := l.DoubtAbout(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNoDoubt) && !c.stored(ctx, l, id):
		return failed(fmt.Errorf("no message has the id %s", quoted(id)))
	case errors.Is(err, ledger.ErrNoDoubt):
		return failed(fmt.Errorf("there is no doubt about a message %s: \"dispatcher explain\" tells what became of it", quoted(id)))
	case err != nil:
		return usage(postgresTrouble(s, err))
	}
	now, err := l.Clock(ctx)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	if verdicts[f.as] == ledger.NotTaken && doubt.Partly {
		return failed(fmt.Errorf("parts of message %s are known to have been taken: settle it as taken, or as final", quoted(id)))
	}
	j := dispatch.Judge(&doubt, verdicts[f.as], dispatch.CodeOperator, f.reference, now)
	j.Author, j.Note = f.author, f.reason
	ended, err := l.Judge(ctx, j)
	switch {
	case err != nil:
		return usage(postgresTrouble(s, err))
	case !ended:
		return failed(fmt.Errorf("message %s has been settled meanwhile, or is being submitted again just now: look again in a few seconds", quoted(id)))
	}
	after, err := l.Record(ctx, id)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	fmt.Fprintf(c.out, "Attempt %d of message %s on %s is settled as %s. State of the message: %s.\n", doubt.Attempt.Number, id, doubt.Attempt.Channel, f.as, after.Message.State)
	return nil
}

// stored reports whether the ledger has a message of that id.
func (*cli) stored(ctx context.Context, l *ledger.Ledger, id string) bool {
	_, err := l.Record(ctx, id)
	return !errors.Is(err, ledger.ErrNoMessage)
}

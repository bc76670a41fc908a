package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

// eraseFlags are the flags of "erase".
type eraseFlags struct {
	number, tenant, region, author, reason string
	dryRun                                 bool
	as                                     format
}

func (c *cli) eraseCommand() *cobra.Command {
	var f eraseFlags
	cmd := &cobra.Command{
		Use:   "erase --number NUMBER --reason TEXT",
		Short: "Erase a subscriber's number and the texts of his messages",
		Long: `Erases the number and the texts of all messages to a subscriber who asks for it, and what
came from him and waits for further parts. What the audit needs stays: when which channel was chosen
for which price, the country, and a keyed hash of the number. That he asked is recorded with this
hash, not with the number. He stays on the opt-out lists that he is on.

Messages that have not ended are left, because they could not be sent without their number: erase
again when they have. Number and text stay in Kafka, and in backups of the database, for as long as
these are kept. It reads each day that has payloads, which takes a while where there are many.`,
		Example: `  dispatcher erase --number +447700900123 --reason "asked by letter" --dry-run
  dispatcher erase --number +447700900123 --reason "asked by letter"`,
		Args: arguments(0, 0),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.number, "number", "", "the subscriber's number (required)")
	flags.StringVar(&f.tenant, "tenant", "", `only messages of this tenant (default all; "" is `+
		`messages without a tenant)`)
	flags.StringVar(&f.region, "default-region", "", "country of a number without country "+
		"code, such as GB (default DISPATCHER_DEFAULT_REGION)")
	flags.StringVar(&f.reason, "reason", "",
		"why; the record shows it (required); do not write numbers into it")
	c.authorFlag(flags, &f.author)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only count what would be erased")
	f.as.addTo(flags)
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		e, err := f.erasure(c)
		if err != nil {
			return err
		}
		if flags.Changed("tenant") {
			e.Tenant = &f.tenant
		}
		return c.withLedger(ctx, func(l *database) error { return c.erase(ctx, l, e, f.as) })
	})
	return cmd
}

// erasure is the request described by the flags, without its tenant.
func (f *eraseFlags) erasure(c *cli) (*ledger.Erasure, error) {
	switch {
	case f.number == "":
		return nil, misused(errors.New("--number is missing: name whose messages are to be erased"))
	case strings.TrimSpace(f.reason) == "":
		return nil, misused(errors.New(`--reason is missing: write why, for example --reason ` +
			`"asked by letter"`))
	case strings.TrimSpace(f.author) == "":
		return nil, misused(errors.New("--author is empty: name who erases"))
	}
	if err := control.CheckReason(f.reason); err != nil {
		return nil, misused(err)
	}
	s, err := c.settings()
	if err != nil {
		return nil, err
	}
	region, err := numbers.ParseRegion(cmp.Or(f.region, s.DefaultRegion))
	if err != nil {
		return nil, usage(fmt.Errorf("--default-region %w", err))
	}
	number, ok := numbers.Typed(region, f.number)
	if !ok {
		return nil, usage(errors.New("--number is not a number: write it with plus and country " +
			"code, such as +447700900000, or give --default-region"))
	}
	return &ledger.Erasure{
		Number: number, Written: numbers.Written(number),
		Author: f.author, Reason: f.reason, DryRun: f.dryRun,
	}, nil
}

// erased is what "erase" did. Scripts rely on the JSON names.
type erased struct {
	DryRun   bool           `json:"dry_run"`
	Messages int64          `json:"messages"`
	Unended  int64          `json:"unended"`
	Parts    int64          `json:"parts"`
	Tenants  []erasedTenant `json:"tenants"`
}

type erasedTenant struct {
	Tenant   string `json:"tenant"`
	Messages int64  `json:"messages"`
	Unended  int64  `json:"unended"`
}

func (c *cli) erase(ctx context.Context, l *database, e *ledger.Erasure, as format) error {
	keys, err := drawKeys(l.settings, "the messages were drawn with")
	if err != nil {
		return err
	}
	e.NumberHMAC = decide.NumberHMAC(keys[0], e.Number)
	found, err := l.Days.Erase(ctx, e, func(day ledger.Day, at, of int) {
		fmt.Fprintf(c.err, "%s (%d of %d)\n", day, at, of)
	})
	if err != nil {
		if n := found.Messages(); n > 0 && !e.DryRun {
			err = fmt.Errorf("%d messages were erased before this; erase again: %w", n,
				postgresTrouble(l.settings, err))
		}
		return err
	}
	done := erased{
		DryRun: e.DryRun, Messages: found.Messages(), Unended: found.Unended(),
		Parts: found.Parts, Tenants: []erasedTenant{},
	}
	for _, t := range found.Tenants {
		done.Tenants = append(done.Tenants, erasedTenant(t))
	}
	if err := c.printErased(&done, as); err != nil || done.Unended == 0 || e.DryRun {
		return err
	}
	return failed(fmt.Errorf("%s not ended and cannot be sent without a number: erase again later",
		counted(done.Unended, "message has", "messages have")))
}

func (c *cli) printErased(done *erased, as format) error {
	rows := list(as, done.Tenants, []column[erasedTenant]{
		{key: "tenant"},
		{key: "messages"},
		{key: "unended", head: "not ended"},
	}...)
	verb := "erased"
	if done.DryRun {
		verb = "to be erased"
	}
	rows.title = fmt.Sprintf("%s and %s %s", counted(done.Messages, "message", "messages"),
		counted(done.Parts, "incoming part", "incoming parts"), verb)
	if as == formatTable && len(done.Tenants) == 0 {
		fmt.Fprintln(c.out, rows.title+".")
		return nil
	}
	return as.write(c.out, done, rows)
}

// counted is a number with its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

// recipient reads a number as people write it: with blanks, dots, dashes or brackets between its digits.
// It is false for what is no number with a country code then.
func recipient(r numbers.Region, text string) (number string, ok bool) {
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune(" \u00a0\t.-/()", c) {
			return -1
		}
		return c
	}, text)
	if rest, found := strings.CutPrefix(text, "00"); found && r == "" {
		text = "+" + rest
	}
	number = r.E164(text)
	digits := strings.TrimPrefix(number, "+")
	switch {
	case digits == number || len(digits) < 7 || len(digits) > 15 || digits[0] == '0':
		return "", false
	case strings.Trim(digits, "0123456789") != "":
		return "", false
	}
	return number, true
}

// listFlags say who changes a list, and why.
type listFlags struct {
	whom
	author, reason string
	as             format
}

func (f *listFlags) addTo(cmd *cobra.Command, c *cli) {
	f.whom.addTo(cmd)
	f.as = formatTable
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for those who look at the history (required); do not write numbers into it")
	c.authorFlag(cmd.Flags(), &f.author)
	cmd.Flags().Var(&f.as, "format", "output format")
}

// listing refuses a change without a reason.
func (f *listFlags) listing(source ledger.OptOutSource) (ledger.Listing, error) {
	switch {
	case strings.TrimSpace(f.reason) == "":
		return ledger.Listing{}, misused(errors.New(`--reason is missing: write why, for example --reason "asked by letter"`))
	case strings.TrimSpace(f.author) == "":
		return ledger.Listing{}, misused(errors.New("--author is empty: name who makes the change"))
	}
	return ledger.Listing{Tenant: f.tenant, Source: source, Author: f.author, Reason: f.reason}, nil
}

// listChanged is what a change of a list did.
type listChanged struct {
	Tenant  string `json:"tenant"`
	Numbers int    `json:"numbers"`
	Changed int64  `json:"changed"`
	// Skipped are the lines of an import that hold no number.
	Skipped int `json:"skipped"`
}

func (c *cli) optOutsAddCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "add NUMBER...",
		Short: "Put numbers on a tenant's opt-out list",
		Args:  arguments(1, anyNumber),
	}
	f.addTo(cmd, c)
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		return c.changeOptOuts(ctx, cmd, &f, args, (*ledger.Ledger).OptOuts, putOn)
	})
	return cmd
}

func (c *cli) optOutsRemoveCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "remove NUMBER...",
		Short: "Take numbers off a tenant's opt-out list",
		Long: `Takes numbers off a tenant's opt-out list, so that messages go out to them again. Do so only when the subscriber asked
for it. That a number was on the list stays on record.`,
		Args: arguments(1, anyNumber),
	}
	f.addTo(cmd, c)
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		return c.changeOptOuts(ctx, cmd, &f, args, (*ledger.Ledger).OptIns, takenOff)
	})
	return cmd
}

// putOn says how many of the numbers came onto a list.
func putOn(done *listChanged) string { return done.sentence("put on the list", "on it before") }

// takenOff says how many of the numbers came off a list.
func takenOff(done *listChanged) string { return done.sentence("taken off the list", "not on it") }

// sentence says what became of the numbers, and how those stood that nothing was done with.
func (d *listChanged) sentence(changed, stood string) string {
	rest := int64(d.Numbers) - d.Changed
	said := fmt.Sprintf("%d of %d %s", d.Changed, d.Numbers, changed)
	switch {
	case rest <= 0:
		return said + "."
	case d.Changed == 0 && rest == 1:
		return said + "; it was " + stood + "."
	case d.Changed == 0:
		return said + "; they were " + stood + "."
	case rest == 1:
		return said + "; the other was " + stood + "."
	}
	return said + "; the others were " + stood + "."
}

// changeOptOuts makes one change; sentence says what it did.
func (c *cli) changeOptOuts(
	ctx context.Context, cmd *cobra.Command, f *listFlags, args []string,
	change func(*ledger.Ledger, context.Context, ledger.Listing, []string) (int64, error), sentence func(*listChanged) string,
) error {
	by, err := f.listing(ledger.ByCommand)
	if err != nil {
		return err
	}
	recipients, err := f.numbers(c, cmd, args)
	if err != nil {
		return err
	}
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	n, err := change(l, ctx, by, recipients)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	done := &listChanged{Tenant: f.tenant, Numbers: len(recipients), Changed: n}
	return c.printListChange(done, f.as, sentence(done))
}

func (c *cli) printListChange(done *listChanged, as format, sentence string) error {
	if as == formatTable {
		fmt.Fprintln(c.out, sentence)
		return nil
	}
	return as.print(c.out, done, sheet{
		header: []string{"tenant", "numbers", "changed", "skipped"},
		rows:   [][]string{{done.Tenant, number(int64(done.Numbers)), number(done.Changed), number(int64(done.Skipped))}},
	})
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

func (c *cli) budgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show the prepaid budgets, top one up, and list the top-ups",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(c.budgetListCommand(), c.budgetTopUpCommand(), c.budgetHistoryCommand())
	return cmd
}

func (c *cli) budgetListCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show what each prepaid budget has used and has left, and what waits for it",
		Long: `Shows the prepaid budgets of the routing in force, the most used first. A budget of
each tenant has a row for every tenant that was topped up or has sent something. The level is low
from 80 % used on.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			return c.withLedger(ctx, func(l *database) error {
				v, doc, err := inForce(ctx, l)
				if err != nil {
					return err
				}
				now, err := status.ReadBudgets(ctx, l.Ledger, v.Version, doc)
				if err != nil {
					return err
				}
				return as.write(c.out, now, budgetSheet(now, as))
			})
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func budgetSheet(now *status.Budgets, as format) sheet {
	s := list(as, now.Budgets, []column[status.Budget]{
		{name: "channel", cell: func(b *status.Budget) any {
			if as == formatTable {
				return cmp.Or(b.Channel, allChannels)
			}
			return b.Channel
		}},
		{key: "scope"},
		{key: "currency"},
		{key: "topped_up", head: "topped up"},
		{key: "used"},
		{key: "left"},
		{key: "used_share", head: "used", style: share},
		{key: "level"},
		{key: "waiting"},
	}...)
	s.title = fmt.Sprintf("prepaid budgets of version %d", now.Version)
	return s
}

func (c *cli) budgetTopUpCommand() *cobra.Command {
	f, asked, all := &changeFlags{}, &control.TopUp{}, false
	cmd := &cobra.Command{
		Use: "top-up CHANNEL --amount N --reason TEXT | " +
			"top-up --all-channels --tenant NAME --amount N --reason TEXT",
		Short: "Add to a prepaid budget, from the next claim on",
		Long: `Adds an amount to a prepaid budget: a limit of the routing document with window
prepaid. Messages that wait are considered again at once. The top-up is on record with its author,
the login of the database and the reason, and nobody changes it; a mistake is corrected by a
negative amount, which may take back what the budget has left. With --key it is recorded once,
however often the command is repeated: name the payment.`,
		Example: `  dispatcher budget top-up --all-channels --tenant shop --amount 250.00 \
      --key invoice-2026-118 --reason "paid in advance"
  dispatcher budget top-up a --amount 1000 --reason "the balance at the provider"`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			which := limitFlags{all: all}
			var err error
			if asked.Channel, err = which.channel(args); err != nil {
				return err
			}
			switch {
			case asked.Amount == "":
				return misused(errors.New("--amount is missing: write for example --amount 250.00"))
			case all && asked.Tenant == "":
				return misused(errors.New("a budget over all channels is one of a tenant: add " +
					"--tenant"))
			}
			return c.withRouting(ctx, f, func(ch *change) error {
				done, err := ch.TopUp(ctx, asked)
				if err != nil {
					return err
				}
				return c.printTopUp(done, f.as)
			})
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all-channels", false, "a budget over all channels, instead of that of one")
	flags.StringVar(&asked.Tenant, "tenant", "", "the budget of this tenant")
	flags.StringVar(&asked.Amount, "amount", "",
		"in whole units of the currency, such as 250.00; below 0 it is a correction")
	flags.StringVar(&asked.Key, "key", "",
		"of your choice: a top-up that comes again with it is not recorded again")
	f.addTo(cmd, c)
	return cmd
}

// printTopUp prints what was recorded.
func (c *cli) printTopUp(done *control.ToppedUp, as format) error {
	if as != formatTable {
		return as.write(c.out, done, topUpSheet([]control.ToppedUp{*done}, as))
	}
	text := fmt.Sprintf("The budget was topped up with %s %s: it comes to %s, of which %s are used.",
		done.Amount, done.Currency, done.After, done.Used)
	switch {
	case done.DryRun:
		text = fmt.Sprintf("Dry run: nothing was written. The budget would come to %s %s, of which "+
			"%s are used.", done.After, done.Currency, done.Used)
	case done.Repeated:
		text = fmt.Sprintf("Nothing is changed: this top-up of %s %s was recorded at %s (UTC) under "+
			"the same key.", done.Amount, done.Currency, done.At.Format("2 Jan 2006 15:04:05"))
	}
	fmt.Fprintln(c.out, wrapped(text, 100))
	return nil
}

func (c *cli) budgetHistoryCommand() *cobra.Command {
	var as format
	var f ledger.TopUpFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the top-ups, newest first: who, when, why and how much",
		Args:  cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if limit < 1 {
				return misused(errors.New("--limit must be above 0"))
			}
			return c.withLedger(ctx, func(l *database) error {
				found, err := l.Limits.TopUps(ctx, &f, limit)
				if err != nil {
					return err
				}
				rows := make([]control.ToppedUp, len(found))
				for i := range found {
					rows[i] = control.NewToppedUp(&found[i])
				}
				return as.write(c.out, struct {
					TopUps []control.ToppedUp `json:"top_ups"`
				}{rows}, topUpSheet(rows, as))
			})
		}),
	}
	cmd.Flags().StringVar(&f.Tenant, "tenant", "",
		"only those of budgets of this tenant (default all)")
	cmd.Flags().IntVar(&limit, "limit", 20, "at most this many")
	as.addTo(cmd.Flags())
	return cmd
}

// topUpSheet has a column for each field in CSV; a table has what fits a terminal.
func topUpSheet(rows []control.ToppedUp, as format) sheet {
	s := list(as, rows, append(keys[control.ToppedUp](formatCSV, "id", "at", "author", "login",
		"reason", "channel", "scope", "currency", "amount", "topped_up_before", "topped_up", "used",
		"key", "repeated", "via"), []column[control.ToppedUp]{
		{
			only: formatTable, head: "when (UTC), who (login)", width: 20,
			cell: func(u *control.ToppedUp) any {
				return as.cell(byType, u.At) + "\n" + withLogin(u.Author, u.Login, u.Via)
			},
		},
		{only: formatTable, head: "budget", width: 18, cell: func(u *control.ToppedUp) any {
			if u.Channel == "" {
				return allChannels + " " + u.Scope
			}
			return u.Channel + " " + u.Scope
		}},
		{only: formatTable, key: "amount", right: true},
		{only: formatTable, key: "topped_up", head: "comes to", right: true},
		{only: formatTable, key: "used", right: true},
		{only: formatTable, key: "currency", head: "in"},
		{only: formatTable, key: "reason", width: 20},
		{only: formatTable, key: "key", width: 14},
	}...)...)
	s.tight = true
	return s
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
)

func (c *cli) optOutsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "optouts",
		Short: "Show and change the opt-out lists: who gets no messages of a tenant any more",
		Long: `Each tenant has an opt-out list. Subscribers come onto it, and off it again, with
keywords such as STOP and START, which docs/inbound.md tells about; these commands do the same for
those who ask in another way. A message to somebody who is on the list ends as rejected with the
reason opted_out, unless its lane ignores opt-outs.

The lists hold no numbers, only what stands for them, so nobody can list the numbers that are on
one.`,
	}
	cmd.AddCommand(c.optOutsListCommand(), c.optOutsShowCommand(), c.optOutsAddCommand(),
		c.optOutsRemoveCommand(), c.optOutsImportCommand())
	return cmd
}

func (c *cli) optOutsListCommand() *cobra.Command {
	var as format
	var tenant string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Count the opt-outs of each tenant by where they came from",
		Args:  arguments(0, 0),
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this tenant (default all)")
	as.addTo(cmd.Flags())
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		var only *string // nil for all tenants
		if cmd.Flags().Changed("tenant") {
			only = &tenant
		}
		return c.withLedger(ctx, func(l *database) error {
			return c.listOptOuts(ctx, l, only, as)
		})
	})
	return cmd
}

func (c *cli) listOptOuts(ctx context.Context, l *database, tenant *string, as format) error {
	value, err := control.CountOptOuts(ctx, l.Ledger, tenant)
	if err != nil {
		return err
	}
	rows := list(as, value.OptOuts, []column[control.OptOutCount]{
		{key: "tenant"},
		{key: "source"},
		{key: "channel"},
		{key: "current"},
		{key: "ended"},
		{key: "first", head: "first (UTC)"},
		{key: "last", head: "last (UTC)"},
	}...)
	rows.title = fmt.Sprintf("%d opt-outs", value.Current)
	if value.Current == 1 {
		rows.title = "1 opt-out"
	}
	return as.write(c.out, value, rows)
}

func (c *cli) optOutsShowCommand() *cobra.Command {
	var as format
	var f whom
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Tell whether a number is on a tenant's opt-out list, since when and why",
		Args:  arguments(1, 1),
	}
	f.addTo(cmd)
	as.addTo(cmd.Flags())
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		recipients, err := f.numbers(c, cmd, args)
		if err != nil {
			return err
		}
		return c.withLedger(ctx, func(l *database) error {
			return c.showOptOut(ctx, l, f.tenant, recipients[0], as)
		})
	})
	return cmd
}

func (c *cli) showOptOut(
	ctx context.Context, l *database, tenant, recipient string, as format,
) error {
	value, err := control.OptOutsOf(ctx, l.Ledger, tenant, recipient)
	if err != nil {
		return err
	}
	if as == formatTable && len(value.History) == 0 {
		fmt.Fprintln(c.out, "It is not on the list and never was.")
		return nil
	}
	rows := optOutHistory(value.History, as)
	rows.title = "not on the list"
	if value.OptedOut {
		rows.title = "on the list"
	}
	return as.write(c.out, value, rows)
}

// optOutHistory has a column for each field in CSV. A table has how and by whom in one column, to
// fit a terminal.
func optOutHistory(history []control.OptOut, as format) sheet {
	columns := keys[control.OptOut](formatCSV, "since", "source", "channel", "author", "reason",
		"until",
		"ended_by", "ended_channel", "ended_author", "ended_reason", "login", "ended_login")
	s := list(as, history, append(columns, []column[control.OptOut]{
		{only: formatTable, key: "since", head: "since (UTC)"},
		{only: formatTable, head: "by", width: 16, cell: func(h *control.OptOut) any {
			return joined([]string{h.Source, h.Channel, withLogin(h.Author, h.Login, "")})
		}},
		{only: formatTable, key: "reason", width: 17},
		{only: formatTable, key: "until", head: "until (UTC)"},
		{only: formatTable, head: "ended by", width: 16, cell: func(h *control.OptOut) any {
			return joined([]string{h.EndedBy, h.EndedChannel, withLogin(h.EndedAuthor, h.EndedLogin, "")})
		}},
		{only: formatTable, key: "ended_reason", head: "reason", width: 17},
	}...)...)
	s.tight = true
	return s
}

// joined joins the words that are not empty.
func joined(words []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(words),
		func(word string) bool { return word == "" }), " ")
}

// whom says whose list and which numbers a command is about.
type whom struct{ tenant, region string }

func (w *whom) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.tenant, "tenant", "",
		`whose list (required; "" is that of messages without a tenant)`)
	cmd.Flags().StringVar(&w.region, "default-region", "", "country of numbers without country "+
		"code, such as GB (default DISPATCHER_DEFAULT_REGION)")
}

// check refuses a command without --tenant, which would change the list of the tenant without a
// name.
func (w *whom) check(c *cli, cmd *cobra.Command) (numbers.Region, error) {
	if !cmd.Flags().Changed("tenant") {
		return "", misused(errors.New(`--tenant is missing: name whose list, or write --tenant ` +
			`"" for messages without a tenant`))
	}
	s, err := c.settings()
	if err != nil {
		return "", err
	}
	r, err := numbers.ParseRegion(cmp.Or(w.region, s.DefaultRegion))
	if err != nil {
		return "", usage(fmt.Errorf("--default-region %w", err))
	}
	return r, nil
}

// numbers are the numbers in the arguments, in the form of envelopes.
func (w *whom) numbers(c *cli, cmd *cobra.Command, args []string) ([]string, error) {
	r, err := w.check(c, cmd)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(args))
	for i, arg := range args {
		n, ok := numbers.Typed(r, arg)
		if !ok {
			return nil, usage(fmt.Errorf("argument %d is not a number: write it with plus and "+
				"country code, such as +447700900000, or give --default-region", i+1))
		}
		out[i] = n
	}
	return out, nil
}

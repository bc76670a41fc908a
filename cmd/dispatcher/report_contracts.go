package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
)

func (c *cli) reportContractsCommand() *cobra.Command {
	var as format
	var day string
	cmd := &cobra.Command{
		Use:   "contracts",
		Short: "Show what was bought of each channel's commitment and cap for the month",
		Long: `Adds up what each channel with a contract in the routing document has accepted since
the month of the contract began, with a forecast for its end at the same pace. It warns when 80 % of
a cap are used, when a cap will be exceeded, and when a commitment will be missed. A month that is
over is compared with the contracts of the document that was in force at its end.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.contracts(ctx, l, day, as)
			})
		}),
	}
	cmd.Flags().StringVar(&day, "day", "", "a day of the month, such as 2026-11-21 (default today)")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) contracts(ctx context.Context, l *database, day string, as format) error {
	routing, err := currentRouting(ctx, l)
	if err != nil {
		return err
	}
	found, err := lookup.Contracts(ctx, l.Ledger, routing, "--day", day, time.Now())
	if err != nil {
		return inCommands(err)
	}
	if as == formatTable && len(found) == 0 {
		fmt.Fprintln(c.out, "No channel of the routing document has a contract.")
		return nil
	}
	if err := as.write(c.out, struct {
		Contracts []report.Contract `json:"contracts"`
	}{found}, contractSheet(found, routing.Timezone, as)); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(c report.Contract) bool { return c.Warning != "" }) {
		return failed(nil) // the table has been printed
	}
	return nil
}

func contractSheet(found []report.Contract, zone *time.Location, as format) sheet {
	shown := func(c *report.Contract, n *int64) any {
		if n == nil {
			return nil
		}
		return status.Quantity{Units: *n, Money: c.Currency != ""}.String()
	}
	return list(as, found, append(keys[report.Contract](formatCSV, "channel", "from", "to", "unit",
		"currency", "to_date", "forecast", "commitment", "cap", "warning"),
		[]column[report.Contract]{
			{only: formatTable, key: "channel", width: 20},
			{only: formatTable, head: "month from", cell: func(c *report.Contract) any {
				return c.From.In(zone).Format(time.DateOnly)
			}},
			{only: formatTable, head: "unit", cell: func(c *report.Contract) any {
				if c.Currency != "" {
					return c.Currency
				}
				return c.Unit
			}},
			{only: formatTable, head: "to date", right: true, cell: func(c *report.Contract) any {
				return shown(c, &c.ToDate)
			}},
			{only: formatTable, head: "forecast", right: true, cell: func(c *report.Contract) any {
				return shown(c, &c.Forecast)
			}},
			{only: formatTable, head: "commitment", right: true, cell: func(c *report.Contract) any {
				return shown(c, c.Commitment)
			}},
			{only: formatTable, head: "cap", right: true, cell: func(c *report.Contract) any {
				return shown(c, c.Cap)
			}},
			{only: formatTable, key: "warning", width: 30},
		}...)...)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
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
	now := time.Now()
	routing, err := currentRouting(ctx, l)
	if err != nil {
		return err
	}
	at := now
	if day != "" {
		if at, err = parseDay(day, routing.Timezone); err != nil {
			return usage(err)
		}
		if admission.Day.Start(at, routing.Timezone).After(now) {
			return usage(fmt.Errorf("--day %s has not begun in %s: name a day that has", day,
				routing.Timezone))
		}
	}
	found := []report.Contract{}
	for begins := 1; begins <= config.LastBegin; begins++ {
		from, to := report.ContractMonth(at, routing.Timezone, begins)
		some, err := contractsOf(ctx, l, routing, &contractMonth{begins, from, to, now})
		if err != nil {
			return err
		}
		found = append(found, some...)
	}
	names := routing.ChannelNames()
	place := func(c *report.Contract) int {
		if at := slices.Index(names, c.Channel); at >= 0 {
			return at
		}
		return len(names) // the channel was removed since
	}
	slices.SortStableFunc(found, func(a, b report.Contract) int {
		return cmp.Compare(place(&a), place(&b))
	})
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
		return &codedError{code: exitFailed} // the table has been printed
	}
	return nil
}

// contractMonth is a month of the contracts that begin on one day of the calendar month.
type contractMonth struct {
	begins        int
	from, to, now time.Time
}

// contractsOf compares a month with the contracts that were in force at its end.
func contractsOf(
	ctx context.Context, l *database, routing *config.Routing, m *contractMonth,
) (found []report.Contract, err error) {
	if !m.to.After(m.now) {
		v, err := l.Routing.At(ctx, m.to)
		if errors.Is(err, ledger.ErrNoRouting) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if routing, err = control.StoredRouting(&v); err != nil {
			return nil, err
		}
	}
	var month ledger.RangeFigures
	for i := range routing.Channels {
		channel := &routing.Channels[i]
		if channel.Contract.Begins != m.begins {
			continue
		}
		if found == nil {
			if month, err = daysFrom(ctx, l, m.from, decide.Earlier(m.to, m.now)); err != nil {
				return nil, err
			}
		}
		toDate := int64(0)
		for j := range month.Parts {
			toDate += report.Billed(channel, month.Parts[j].Rows)
		}
		found = append(found, report.NewContract(channel, m.from, m.to, m.now, toDate))
	}
	return found, nil
}

// daysFrom adds up the days of a month so far.
func daysFrom(
	ctx context.Context, l *database, from, to time.Time,
) (ledger.RangeFigures, error) {
	var days []ledger.RangeDay
	end := to.Add(12 * time.Hour)
	for noon := from.Add(12 * time.Hour); noon.Before(end); noon = noon.AddDate(0, 0, 1) {
		days = append(days, ledger.RangeDay{BusinessDay: ledger.NewBusinessDay(noon, noon.Location())})
	}
	return l.Reports.Range(ctx, days, ledger.Split{}, nil)
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

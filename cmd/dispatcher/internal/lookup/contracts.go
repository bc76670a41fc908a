package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Contracts adds up what each channel with a contract has accepted so far in the contract month
// that contains the day. An empty day is today. A month that is over is compared with the contracts
// in force at its end. name is what errors call the day, such as a flag.
func Contracts(
	ctx context.Context, l *ledger.Ledger, doc *config.Routing, name, day string, now time.Time,
) ([]report.Contract, error) {
	at, err := contractDay(doc, name, day, now)
	if err != nil {
		return nil, err
	}
	end, err := turn(ctx, l)
	if err != nil {
		return nil, err
	}
	defer end()
	found := []report.Contract{}
	for begins := 1; begins <= config.LastBegin; begins++ {
		from, to := report.ContractMonth(at, doc.Timezone, begins)
		some, err := contractsOf(ctx, l, doc, &contractMonth{begins, from, to, now})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	names := doc.ChannelNames()
	place := func(c *report.Contract) int {
		if at := slices.Index(names, c.Channel); at >= 0 {
			return at
		}
		return len(names) // the channel was removed since
	}
	slices.SortStableFunc(found, func(a, b report.Contract) int {
		return cmp.Compare(place(&a), place(&b))
	})
	return found, nil
}

// contractMonth is a month of the contracts that begin on one day of the calendar month.
type contractMonth struct {
	begins        int
	from, to, now time.Time
}

// contractsOf compares a month with the contracts that were in force at its end.
func contractsOf(
	ctx context.Context, l *ledger.Ledger, routing *config.Routing, m *contractMonth,
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
		var rows []ledger.DailyRow
		for j := range month.Parts {
			rows = append(rows, month.Parts[j].Rows...)
		}
		found = append(found, report.NewContract(channel, m.from, m.to, m.now, rows))
	}
	return found, nil
}

// contractDay is noon of a day that has begun, or now for an empty day.
func contractDay(doc *config.Routing, name, day string, now time.Time) (time.Time, error) {
	if day == "" {
		return now, nil
	}
	at, err := app.ParseDate(day, doc.Timezone)
	switch {
	case err != nil:
		return at, &control.Refused{Err: fmt.Errorf("%s %w", name, err)}
	case admission.Day.Start(at, doc.Timezone).After(now):
		return at, notBegun(name, day, doc.Timezone)
	}
	return at, nil
}

// daysFrom adds up the days of a month so far.
func daysFrom(
	ctx context.Context, l *ledger.Ledger, from, to time.Time,
) (ledger.RangeFigures, error) {
	last := to.Add(-time.Nanosecond).In(from.Location())
	return app.Figures(ctx, l.Routing, l.Reports, datesBetween(from, last))
}

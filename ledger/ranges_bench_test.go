package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkRangeOfAYear adds up the figures of 365 closed days, as a sender with three routes of
// five channels, ten tenants and twenty countries has them: 120 of these 3000 combinations have
// traffic in an hour, which are 1 051 200 rows a year in each of the three tables. Each combination
// has one of seven senders.
func BenchmarkRangeOfAYear(b *testing.B) {
	url := ledgertest.Fresh(b)
	l, db := connect(b, ledger.Config{URL: url}), raw(b, url)
	first := time.Date(2025, 11, 20, 0, 0, 0, 0, time.UTC)
	const from = ` from generate_series(0, 365 * 24 - 1) h,
		lateral (select $1::timestamptz + make_interval(hours => h) as hour) t,
		lateral (select 'route' || n % 3 as route, 'channel' || n / 3 % 5 as channel,
		    'tenant' || n / 15 % 10 as tenant, (n / 150 + 30)::smallint as country,
		    'sender' || n % 7 as sender
		  from generate_series(h % 25, 2999, 25) n) combination`
	execute(b, db, `insert into dispatcher.choice_figures
		select hour::date, 1, hour, 1, route, channel, tenant, country, 100, 0, 0, 0, 0, 110, sender`+from, first)
	execute(b, db, `insert into dispatcher.attempt_figures
		select hour::date, 1, hour, 1, route, channel, 'first_choice', 'GBP', tenant, country,
		  100, 100, 100, 0, 0, 0, 0, 0, 0, 99, 1, 0, 100, 2800000, 0, 0, 99, 2772000, sender`+from, first)
	execute(b, db, `insert into dispatcher.carried_figures
		select hour::date, 1, hour, 1, route, channel, channel, '', tenant, country, 100,
		  sender, 'GBP', 100, 2800000, 110`+from, first)
	execute(b, db, `insert into dispatcher.closings
		select d, 1, 'UTC', d::timestamptz, d::timestamptz + interval '1 day', now(), 1
		from (select distinct hour::date as d`+from+`) days`, first)
	execute(b, db, `analyze`)
	year := func(period string) []ledger.RangeDay {
		days := make([]ledger.RangeDay, 365)
		for i := range days {
			noon := first.AddDate(0, 0, i).Add(12 * time.Hour)
			days[i] = ledger.RangeDay{
				BusinessDay: ledger.NewBusinessDay(noon, time.UTC), Period: noon.Format(period),
			}
		}
		return days
	}
	const days, months = time.DateOnly, "2006-01"
	const two = 8 * time.Second
	for _, c := range []struct {
		name, period string
		split        ledger.Split
		most         time.Duration // that it may take
	}{
		{"months", months, ledger.Split{}, time.Second},
		{"days", days, ledger.Split{}, time.Second},
		{"months by reason", months, ledger.Split{Reason: true}, time.Second},
		{"months by hour", months, ledger.Split{Hour: true}, time.Second},
		{"months by tenant", months, ledger.Split{Tenant: true}, time.Second},
		{"months by country", months, ledger.Split{CallingCode: true}, time.Second},
		{"months by sender", months, ledger.Split{Sender: true}, time.Second},
		// These have 120 000 to 330 000 rows.
		{"days by hour", days, ledger.Split{Hour: true}, 6 * time.Second},
		{"days by tenant", days, ledger.Split{Tenant: true}, 6 * time.Second},
		{"days by country", days, ledger.Split{CallingCode: true}, 6 * time.Second},
		// There are no sums for a split by two things, so the figures are read.
		{"months by hour and tenant", months, ledger.Split{Hour: true, Tenant: true}, two},
		{"months by tenant and country", months, ledger.Split{Tenant: true, CallingCode: true}, two},
	} {
		b.Run(c.name, func(b *testing.B) {
			of := year(c.period)
			var m measured
			for b.Loop() {
				var r ledger.RangeFigures
				m.round(b, func() {
					var err error
					if r, err = l.Reports.Range(b.Context(), of, c.split, nil); err != nil {
						b.Fatal(err)
					}
				})
				if len(r.Open) > 0 {
					b.Fatal(r.Open)
				}
				messages := int64(0)
				for _, p := range r.Parts {
					for i := range p.Choices {
						messages += p.Choices[i].FirstChoice
					}
				}
				if messages != 105_120_000 {
					b.Fatalf("%d messages", messages)
				}
			}
			m.within(b, c.most)
		})
	}
}

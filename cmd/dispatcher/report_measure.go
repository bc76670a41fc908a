package main

import (
	"errors"
	"slices"

	"dispatcher/cmd/dispatcher/internal/report"
)

// measure is what a table of a range counts. Files have all measures.
type measure string

const (
	inMessages measure = "messages"
	inSegments measure = "segments"
	inMoney    measure = "money"
	inAttempts measure = "attempts"
)

// String implements pflag.Value.
func (m *measure) String() string { return string(*m) }

// Type names the value in help.
func (m *measure) Type() string { return "messages|segments|money|attempts" }

// Set reads the name of a measure.
func (m *measure) Set(s string) error {
	if !slices.Contains([]measure{inMessages, inSegments, inMoney, inAttempts}, measure(s)) {
		return errors.New("must be messages, segments, money or attempts")
	}
	*m = measure(s)
	return nil
}

// carried is what a row carried, and its share. Attempts have no share.
func (m measure) carried(row *report.RangeRow) (n int64, share float64) {
	switch m {
	case inSegments:
		return row.Segments, row.SegmentsShare
	case inMoney:
		return row.CostMicros, row.CostShare
	case inAttempts:
		return row.Attempts, 0
	case inMessages:
	}
	return row.Carried, row.CarriedShare
}

// text is a number in the measure.
func (m measure) text(n int64) string {
	if m == inMoney {
		return report.Money(n)
	}
	return number(n)
}

// columns are those after the agreed share: drawn, carried and delivered, each with its share; or
// the attempts by outcome, and how many were made again on the same channel.
func (m measure) columns() []column[report.RangeRow] {
	share := func(of func(*report.RangeRow) float64) column[report.RangeRow] {
		return column[report.RangeRow]{head: "share", right: true, cell: func(row *report.RangeRow) any {
			if row.Period == totalsRow {
				return nil
			}
			return report.Percent(of(row))
		}}
	}
	carried := share(func(row *report.RangeRow) float64 {
		_, of := m.carried(row)
		return of
	})
	money := func(head string, of func(*report.RangeRow) int64) column[report.RangeRow] {
		return column[report.RangeRow]{head: head, right: true, cell: func(row *report.RangeRow) any {
			return report.Amount(of(row), row.Currency)
		}}
	}
	cost := money("cost", func(row *report.RangeRow) int64 { return row.CostMicros })
	switch m {
	case inSegments:
		return []column[report.RangeRow]{
			{key: "first_choice_segments", head: "drawn"},
			share(func(row *report.RangeRow) float64 { return row.FirstChoiceSegmentsShare }),
			{key: "segments", head: "carried"},
			carried,
			{key: "delivered_segments", head: "delivered"},
			share(func(row *report.RangeRow) float64 { return row.DeliveredSegmentsShare }),
			cost,
		}
	case inMoney:
		return []column[report.RangeRow]{
			money("drawn", func(row *report.RangeRow) int64 { return row.FirstChoiceMicros }),
			share(func(row *report.RangeRow) float64 { return row.FirstChoiceCostShare }),
			cost, carried,
			money("of\ndelivered", func(row *report.RangeRow) int64 { return row.DeliveredMicros }),
			share(func(row *report.RangeRow) float64 { return row.DeliveredCostShare }),
			money("may be\nbilled", func(row *report.RangeRow) int64 { return row.UnknownMicros }),
		}
	case inAttempts:
		return []column[report.RangeRow]{
			{key: "attempts"},
			{key: "fallback", head: "fall-\nbacks"},
			{key: "accepted"},
			{key: "failed"},
			{key: "unknown", head: "no\nanswer"},
			{key: "unsent", head: "never\nsent"},
			{key: "pending", head: "open"},
			{key: "retries", head: "re-\ntries"},
			{key: "resends", head: "re-\nsends"},
			{key: "currency", head: "in"}, // rows and totals are by currency
		}
	case inMessages:
	}
	return []column[report.RangeRow]{
		{key: "first_choice", head: "drawn"},
		share(func(row *report.RangeRow) float64 { return row.FirstChoiceShare }),
		{key: "carried"},
		carried,
		{key: "delivered"},
		share(func(row *report.RangeRow) float64 { return row.DeliveredShare }),
		{key: "failed"},
		{key: "segments"},
		cost,
	}
}

package report

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// RangeFigures are the figures of the ledger for several days.
type RangeFigures struct {
	Unit Unit
	By   []Dimension
	// Days are consecutive days, each as noon in the time zone of that day.
	Days []time.Time
	// Complete is false when the last day is not over.
	Complete bool
	Ledger   ledger.RangeFigures
	Versions map[int64]*config.Routing
	InForce  []ledger.InForce // from the first day to the last
	Current  *config.Routing
	// Checkpoint is as in Figures.
	Checkpoint string
}

// Range is a report of several periods.
type Range struct {
	Unit     Unit        `json:"unit"`
	Day      string      `json:"day"` // the first one
	LastDay  string      `json:"last_day"`
	Timezone string      `json:"timezone"` // of the last day
	By       []Dimension `json:"by"`
	Complete bool        `json:"complete"`
	// OpenDays are the days that are not closed: their figures may still change.
	OpenDays []string `json:"open_days"`
	// CorrectedDays are closed days whose figures have changed since they were closed.
	CorrectedDays []CorrectedDay `json:"corrected_days"`
	// Checkpoint is the signed head of the log of hashes; empty where nothing is sealed.
	Checkpoint string          `json:"checkpoint"`
	Rows       []RangeRow      `json:"rows"`
	Totals     []RangeTotal    `json:"totals"`
	Routes     []PeriodVerdict `json:"routes"`
}

// CorrectedDay sums the corrections of a closed day. At is the time of the last one.
type CorrectedDay struct {
	Day string `json:"day"`
	Correction
}

// Found reports whether any period has a finding.
func (r *Range) Found() bool {
	return slices.ContainsFunc(r.Routes, func(v PeriodVerdict) bool { return v.Found() })
}

// RangePeriod is one period of a range, cut to the days of the range.
type RangePeriod struct {
	Period   string `json:"period"`
	Unit     Unit   `json:"unit"`
	Day      string `json:"day"` // the first day
	LastDay  string `json:"last_day"`
	Timezone string `json:"timezone"` // of the last day
}

// RangeRow has the figures of one period for one value of each dimension, in one currency.
// Dimensions that were not asked for are empty. Messages have neither currency nor reason: of rows
// that differ only in these, the first has the first choices, carried messages, shares and moves.
//
// With the dimensions route and channel a row equals that of the daily report. In general a share
// is a row's part of the rows that differ from it only in the last dimension.
type RangeRow struct {
	RangePeriod
	Hour    *int   `json:"hour"`
	Tenant  string `json:"tenant"`
	Country string `json:"country"` // calling code, as +44
	Sender  string `json:"sender"`  // a name, a short code, or long_code for a number
	Reason  string `json:"reason"`
	DailyRow
}

// RangeTotal sums the rows of a period in one currency; with an empty period, those of the range.
type RangeTotal struct {
	Period string `json:"period"`
	DailyTotal
}

// PeriodVerdict is a route's verdict in one period.
type PeriodVerdict struct {
	RangePeriod
	RouteVerdict
}

// PlottedRanges makes the two reports that plots need: by route and channel, and by hour.
func PlottedRanges(f *RangeFigures) (byChannel, byHour Range) {
	channels, hours := *f, *f
	channels.By, hours.By = []Dimension{ByRoute, ByChannel}, []Dimension{ByHour}
	return NewRange(&channels), NewRange(&hours)
}

// NewRange makes the report of a range: it sums each period and makes a verdict of each route in
// it.
func NewRange(f *RangeFigures) Range {
	first, last := f.Days[0], f.Days[len(f.Days)-1]
	r := Range{
		Unit: f.Unit, Day: first.Format(time.DateOnly), LastDay: last.Format(time.DateOnly),
		Timezone: last.Location().String(), By: f.By, Complete: f.Complete, Checkpoint: f.Checkpoint,
		OpenDays: append([]string{}, f.Ledger.Open...), CorrectedDays: f.corrected(),
		Rows: []RangeRow{}, Totals: []RangeTotal{}, Routes: []PeriodVerdict{},
	}
	parts := map[string][]*ledger.PartFigures{}
	for i := range f.Ledger.Parts {
		p := &f.Ledger.Parts[i]
		parts[p.Period] = append(parts[p.Period], p)
	}
	var all []DailyRow
	for _, period := range f.periods() {
		whole := f.figures(parts[period.Period]...)
		whole.InForce = f.inForce(period.Period)
		rows := f.rows(period, parts[period.Period], whole)
		r.Rows = append(r.Rows, rows...)
		daily := make([]DailyRow, len(rows))
		for i := range rows {
			daily[i] = rows[i].DailyRow
		}
		all = append(all, daily...)
		r.Totals = append(r.Totals, rangeTotals(period.Period, daily)...)
		for _, name := range whole.routes() {
			r.Routes = append(r.Routes, PeriodVerdict{period, newRouteDay(whole, name).verdict()})
		}
	}
	r.Totals = append(r.Totals, rangeTotals("", all)...)
	return r
}

// corrected returns the corrected days, with times by the clock of each day's time zone.
func (f *RangeFigures) corrected() []CorrectedDay {
	out := []CorrectedDay{}
	for _, c := range f.Ledger.Corrected {
		zone := time.UTC
		for _, noon := range f.Days {
			if noon.Format(time.DateOnly) == c.Date {
				zone = noon.Location()
			}
		}
		out = append(out, CorrectedDay{c.Date, newCorrection(c.At, c.Changes, c.Figures, zone)})
	}
	return out
}

// periods returns the periods of the days, in order.
func (f *RangeFigures) periods() (out []RangePeriod) {
	for _, day := range f.Days {
		name, date := f.Unit.Period(day), day.Format(time.DateOnly)
		if n := len(out); n == 0 || out[n-1].Period != name {
			out = append(out, RangePeriod{Period: name, Unit: f.Unit, Day: date})
		}
		last := &out[len(out)-1]
		last.LastDay, last.Timezone = date, day.Location().String()
	}
	return out
}

// merged groups the parts that differ only in dimensions that were not asked for. The figures may
// have more dimensions than the report.
func (f *RangeFigures) merged(parts []*ledger.PartFigures) (out [][]*ledger.PartFigures) {
	at := map[ledger.Part]int{}
	for _, p := range parts {
		part := f.asked(p.Part)
		i, known := at[part]
		if !known {
			i = len(out)
			at[part], out = i, append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// asked returns a part without the dimensions that were not asked for.
func (f *RangeFigures) asked(p ledger.Part) ledger.Part {
	if !f.by(ByHour) {
		p.Hour = 0
	}
	if !f.by(ByTenant) {
		p.Tenant = ""
	}
	if !f.by(ByCountry) {
		p.CallingCode = 0
	}
	if !f.by(BySender) {
		p.Sender = ""
	}
	return p
}

// figures sums some parts.
func (f *RangeFigures) figures(parts ...*ledger.PartFigures) *Figures {
	sum := &Figures{Versions: f.Versions, Current: f.Current}
	for _, p := range parts {
		sum.Rows = append(sum.Rows, p.Rows...)
		sum.Choices = append(sum.Choices, p.Choices...)
		sum.Carried = append(sum.Carried, p.Carried...)
	}
	for i := range sum.Rows {
		if !f.by(ByReason) {
			sum.Rows[i].Reason = ""
		}
	}
	return sum
}

// inForce are the versions that were in force in a period, with their times in it.
func (f *RangeFigures) inForce(period string) (out []ledger.InForce) {
	var from, to time.Time
	for _, noon := range f.Days {
		if f.Unit.Period(noon) == period {
			if from.IsZero() {
				from = admission.Day.Start(noon, noon.Location())
			}
			to = admission.Day.End(noon, noon.Location())
		}
	}
	for _, v := range f.InForce {
		if v.From.Before(from) {
			v.From = from
		}
		if v.To.After(to) {
			v.To = to
		}
		if v.From.Before(v.To) {
			out = append(out, v)
		}
	}
	return out
}

// rangeTotals returns the totals over all routes.
func rangeTotals(period string, rows []DailyRow) (out []RangeTotal) {
	for _, t := range totals(rows) {
		t.Route = ""
		out = append(out, RangeTotal{period, t})
	}
	slices.SortFunc(out, func(a, b RangeTotal) int { return cmp.Compare(a.Currency, b.Currency) })
	return out
}

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
)

// rangeRecord is a row of a range in files: CSV, XLSX and Parquet. The order of the fields is that
// of the columns. They are the same for each unit and each --by, so that files can be concatenated.
type rangeRecord struct {
	Unit     string `json:"unit" parquet:"unit"`
	Period   string `json:"period" parquet:"period"`
	Day      string `json:"day" parquet:"day"`
	LastDay  string `json:"last_day" parquet:"last_day"`
	Timezone string `json:"timezone" parquet:"timezone"`

	Hour     *int64 `json:"hour" parquet:"hour,optional"`
	Route    string `json:"route" parquet:"route"`
	Channel  string `json:"channel" parquet:"channel"`
	Tenant   string `json:"tenant" parquet:"tenant"`
	Country  string `json:"country" parquet:"country"`
	Reason   string `json:"reason" parquet:"reason"`
	Currency string `json:"currency" parquet:"currency"` // the unit of cost and unknown_cost

	ConfiguredShare  *float64 `json:"configured_share" parquet:"configured_share,optional"`
	EffectiveShare   *float64 `json:"effective_share" parquet:"effective_share,optional"`
	FirstChoice      int64    `json:"first_choice" parquet:"first_choice"`
	FirstChoiceShare float64  `json:"first_choice_share" parquet:"first_choice_share"`
	AgreedShare      *float64 `json:"agreed_share" parquet:"agreed_share,optional"`
	Carried          int64    `json:"carried" parquet:"carried"`
	CarriedShare     float64  `json:"carried_share" parquet:"carried_share"`
	Delivered        int64    `json:"delivered" parquet:"delivered"`
	DeliveredShare   float64  `json:"delivered_share" parquet:"delivered_share"`

	Attempts    int64 `json:"attempts" parquet:"attempts"`
	Fallback    int64 `json:"fallback" parquet:"fallback"`
	Retries     int64 `json:"retries" parquet:"retries"`
	Resends     int64 `json:"resends" parquet:"resends"`
	Submitted   int64 `json:"submitted" parquet:"submitted"`
	Accepted    int64 `json:"accepted" parquet:"accepted"`
	Failed      int64 `json:"failed" parquet:"failed"`
	Unknown     int64 `json:"unknown" parquet:"unknown"`
	Unsent      int64 `json:"unsent" parquet:"unsent"`
	Pending     int64 `json:"pending" parquet:"pending"`
	Undelivered int64 `json:"undelivered" parquet:"undelivered"`
	NoReceipt   int64 `json:"no_receipt" parquet:"no_receipt"`

	Segments        int64 `json:"segments" parquet:"segments"`
	Cost            money `json:"cost" parquet:"cost,decimal(6:18)"`
	UnknownSegments int64 `json:"unknown_segments" parquet:"unknown_segments"`
	UnknownCost     money `json:"unknown_cost" parquet:"unknown_cost,decimal(6:18)"`

	Deviation      *float64 `json:"deviation" parquet:"deviation,optional"`
	PValue         *float64 `json:"p_value" parquet:"p_value,optional"`
	Verdict        string   `json:"verdict" parquet:"verdict"`
	DrawsVerdict   string   `json:"draws_verdict" parquet:"draws_verdict"`
	TrafficVerdict string   `json:"traffic_verdict" parquet:"traffic_verdict"`
	Moved          string   `json:"moved" parquet:"moved"`

	FirstChoiceSegments      int64   `json:"first_choice_segments" parquet:"first_choice_segments"`
	FirstChoiceSegmentsShare float64 `json:"first_choice_segments_share" parquet:"first_choice_segments_share"`
	SegmentsShare            float64 `json:"segments_share" parquet:"segments_share"`
	CostShare                float64 `json:"cost_share" parquet:"cost_share"`
	DeliveredSegments        int64   `json:"delivered_segments" parquet:"delivered_segments"`
	DeliveredSegmentsShare   float64 `json:"delivered_segments_share" parquet:"delivered_segments_share"`
	DeliveredCost            money   `json:"delivered_cost" parquet:"delivered_cost,decimal(6:18)"`
	DeliveredCostShare       float64 `json:"delivered_cost_share" parquet:"delivered_cost_share"`

	Sender  string `json:"sender" parquet:"sender"`
	Further int64  `json:"further" parquet:"further"`

	WaterfallMessages string `json:"waterfall_messages" parquet:"waterfall_messages"`
	WaterfallSegments string `json:"waterfall_segments" parquet:"waterfall_segments"`
	WaterfallCost     string `json:"waterfall_cost" parquet:"waterfall_cost"`

	AgreedShareByTime    *float64 `json:"agreed_share_by_time" parquet:"agreed_share_by_time,optional"`
	FirstChoiceCost      money    `json:"first_choice_cost" parquet:"first_choice_cost,decimal(6:18)"`
	FirstChoiceCostShare float64  `json:"first_choice_cost_share" parquet:"first_choice_cost_share"`
}

// money is an amount in micros whose currency is in another field. It is written as a decimal.
type money int64

// String implements fmt.Stringer.
func (m money) String() string { return report.Money(int64(m)) }

func rangeRecords(r *report.Range) []rangeRecord {
	out := make([]rangeRecord, len(r.Rows))
	for i := range r.Rows {
		row := &r.Rows[i]
		out[i] = rangeRecord{
			Unit: string(row.Unit), Period: row.Period, Day: row.Day, LastDay: row.LastDay,
			Timezone: row.Timezone, Route: row.Route, Channel: row.Channel, Tenant: row.Tenant,
			Country: row.Country, Reason: row.Reason, Currency: row.Currency,
			ConfiguredShare: row.ConfiguredShare, EffectiveShare: row.EffectiveShare,
			FirstChoice: row.FirstChoice, FirstChoiceShare: row.FirstChoiceShare,
			AgreedShare: row.AgreedShare, Carried: row.Carried, CarriedShare: row.CarriedShare,
			Delivered: row.Delivered, DeliveredShare: row.DeliveredShare,
			Attempts: row.Attempts, Fallback: row.Fallback, Retries: row.Retries,
			Resends: row.Resends, Further: row.Further, Submitted: row.Submitted, Accepted: row.Accepted,
			Failed: row.Failed, Unknown: row.Unknown, Unsent: row.Unsent, Pending: row.Pending,
			Undelivered: row.Undelivered, NoReceipt: row.NoReceipt, Segments: row.Segments,
			Cost: money(row.CostMicros), UnknownSegments: row.UnknownSegments,
			UnknownCost: money(row.UnknownMicros), Deviation: row.Deviation, PValue: row.PValue,
			Verdict: row.Verdict, DrawsVerdict: row.DrawsVerdict,
			TrafficVerdict: row.TrafficVerdict, Moved: moves(row.Moved),
			FirstChoiceSegments:      row.FirstChoiceSegments,
			FirstChoiceSegmentsShare: row.FirstChoiceSegmentsShare,
			SegmentsShare:            row.SegmentsShare, CostShare: row.CostShare,
			DeliveredSegments:      row.DeliveredSegments,
			DeliveredSegmentsShare: row.DeliveredSegmentsShare,
			DeliveredCost:          money(row.DeliveredMicros),
			DeliveredCostShare:     row.DeliveredCostShare,
			Sender:                 row.Sender,
			WaterfallMessages:      steps(row.Waterfall, inMessages),
			WaterfallSegments:      steps(row.Waterfall, inSegments),
			WaterfallCost:          steps(row.Waterfall, inMoney),
			AgreedShareByTime:      row.AgreedShareByTime,
			FirstChoiceCost:        money(row.FirstChoiceMicros),
			FirstChoiceCostShare:   row.FirstChoiceCostShare,
		}
		if row.Hour != nil {
			out[i].Hour = new(int64(*row.Hour))
		}
	}
	return out
}

// mostCorrected is how many corrected days are printed below a table.
const mostCorrected = 10

// printRange prints the table, and below it the basis of the verdicts.
func printRange(out io.Writer, r *report.Range, f *rangeFlags) {
	fmt.Fprintln(out, rangeTitle(r))
	if len(r.Rows) == 0 {
		fmt.Fprintln(out, "No message was received and none was sent.")
		return
	}
	f.table(r, false).draw(out)
	if f.waterfall {
		for _, s := range waterfallTables(r) {
			s.draw(out)
		}
	}
	for _, sentence := range rangeSentences(r) {
		fmt.Fprintln(out, paragraph(out, sentence))
	}
	tables := correctionTables(r.CorrectedDays)
	for _, s := range tables[:min(len(tables), mostCorrected)] {
		s.draw(out)
	}
	if more := len(tables) - mostCorrected; more > 0 {
		fmt.Fprintf(out, "%d more corrected days are in the JSON.\n", more)
	}
	printCheckpoint(out, r.Checkpoint)
}

func rangeDates(r *report.Range) string {
	if r.Day == r.LastDay {
		return r.Day
	}
	return r.Day + " to " + r.LastDay
}

// rangeTitle says which days are added up, which may still change, and which have changed.
func rangeTitle(r *report.Range) string {
	return rangeDates(r) + ", " + r.Timezone + rangeAsOf(r) + correctedDays(r.CorrectedDays)
}

// correctedDays says how many days were corrected, and names a single one.
func correctedDays(days []report.CorrectedDay) string {
	if len(days) == 0 {
		return ""
	}
	last := slices.MaxFunc(days, func(a, b report.CorrectedDay) int { return a.At.Compare(b.At) })
	at := last.At.UTC().Format(instant)
	if len(days) == 1 {
		return "; " + last.Day + " was corrected since it was closed, last on " + at
	}
	return fmt.Sprintf("; %d days were corrected since they were closed, last on %s", len(days), at)
}

// rangeAsOf says how final the figures of a range are.
func rangeAsOf(r *report.Range) (title string) {
	switch {
	case !r.Complete && r.Day == r.LastDay:
		return ": the day is not over, these are its figures so far"
	case !r.Complete:
		title = ": the last day is not over, these are its figures so far"
	}
	if n := len(r.OpenDays); n == 0 {
		title += ": every day is closed"
	} else if n == 1 {
		title += "; " + r.OpenDays[0] + " is not closed yet"
	} else if n > 1 {
		title += fmt.Sprintf("; %d days are not closed yet, the first is %s", n, r.OpenDays[0])
	}
	return title
}

// table is the table that the flags ask for, for a terminal or a page.
func (f *rangeFlags) table(r *report.Range, page bool) sheet {
	if f.wide {
		return wideTable(r, f.in)
	}
	return rangeTable(r, f.in, page)
}

// rangeTable has a row for each row of the range, then the totals of each currency. Agreed shares
// by time have a column on a page; a terminal has no room for it.
func rangeTable(r *report.Range, in measure, page bool) sheet {
	rows := slices.Clone(r.Rows)
	for _, t := range r.Totals {
		if t.Period == "" {
			rows = append(rows, totalRow(&t))
		}
	}
	columns := []column[report.RangeRow]{{
		head: string(r.Unit),
		cell: func(row *report.RangeRow) any { return periodName(&row.RangePeriod) },
	}}
	for _, d := range r.By {
		if d != report.ByCurrency { // the cost has it
			columns = append(columns, column[report.RangeRow]{key: string(d), width: 16})
		}
	}
	agreed := func(head string, share func(*report.RangeRow) *float64) {
		columns = append(columns, column[report.RangeRow]{
			head: head, right: true,
			cell: func(row *report.RangeRow) any { return format(formatTable).share(share(row)) },
		})
	}
	if slices.Contains(r.By, report.ByChannel) && in != inAttempts {
		agreed("agreed", func(row *report.RangeRow) *float64 { return row.AgreedShare })
		if page {
			agreed("agreed\nby time", func(row *report.RangeRow) *float64 { return row.AgreedShareByTime })
		}
	}
	columns = append(columns, in.columns()...)
	s := list(formatTable, rows, columns...)
	s.tight = true
	return s
}

// totalRow is a total of the range as a row.
func totalRow(t *report.RangeTotal) report.RangeRow {
	return report.RangeRow{DailyRow: report.DailyRow{
		FirstChoice: t.FirstChoice, Carried: t.Carried, Delivered: t.Delivered, Failed: t.Failed,
		Segments: t.Segments, CostMicros: t.CostMicros, Currency: t.Currency,
		FirstChoiceSegments: t.FirstChoiceSegments, DeliveredSegments: t.DeliveredSegments,
		FirstChoiceMicros: t.FirstChoiceMicros, DeliveredMicros: t.DeliveredMicros,
		UnknownMicros: t.UnknownMicros,
		Attempts:      t.Attempts, Fallback: t.Fallback, Accepted: t.Accepted, Unknown: t.Unknown,
		Unsent:  t.Unsent,
		Pending: t.Pending, Retries: t.Retries, Resends: t.Resends,
	}}
}

// periodName names a period, and its days if it is a week.
func periodName(p *report.RangePeriod) string {
	switch {
	case p.Period == totalsRow:
		return "all"
	case p.Unit == report.Week:
		return p.Period + " (" + p.Day + ")"
	}
	return p.Period
}

// mostFindings is how many findings are printed below a table.
const mostFindings = 10

// rangeSentences say for each route how often it had which verdict, and why the agreement was not
// kept.
func rangeSentences(r *report.Range) (out []string) {
	var routes []string
	verdicts := map[string][]string{}
	count := map[string]map[string]int{}
	for i := range r.Routes {
		v := &r.Routes[i]
		if count[v.Route] == nil {
			routes, count[v.Route] = append(routes, v.Route), map[string]int{}
		}
		word := verdict(&v.RouteVerdict)
		word, _, _ = strings.Cut(word, " (p ") // each period has its own
		word = strings.ReplaceAll(word, ";", ",")
		if count[v.Route][word]++; count[v.Route][word] == 1 {
			verdicts[v.Route] = append(verdicts[v.Route], word)
		}
		if v.Found() {
			out = append(out, fmt.Sprintf("%s, route %s: %s", v.Period, v.Route,
				strings.Join(v.Text, " ")))
		}
	}
	var summary []string
	for _, route := range routes {
		words := make([]string, len(verdicts[route]))
		for i, word := range verdicts[route] {
			n := count[route][word]
			words[i] = fmt.Sprintf("in %s %s", counted(int64(n), string(r.Unit), string(r.Unit)+"s"), word)
		}
		summary = append(summary, "Route "+route+": "+strings.Join(words, "; ")+".")
	}
	if more := len(out) - mostFindings; more > 0 {
		out = append(out[:mostFindings], fmt.Sprintf("%d more findings are in the JSON.", more))
	}
	return append(summary, out...)
}

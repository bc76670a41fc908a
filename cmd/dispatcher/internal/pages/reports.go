package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/plots"
	"dispatcher/cmd/dispatcher/internal/report"
)

// reportsPage is a report of days, weeks or months.
type reportsPage struct {
	report.Range
	Unit, From, To string
	Sentences      []string
	MoreSentences  int // that are not listed
	Plots          []inlinePlot
	MorePlots      int // that are not shown
	Rows           []report.RangeRow
	More           int          // number of rows that are not listed
	Query          template.URL // of this report, for the links to the whole
}

// inlinePlot is a plot in a page.
type inlinePlot struct {
	Title, Note string
	SVG         template.HTML
}

// These bounds keep the page small, whatever the report holds. The first plot is always shown. The
// CSV has all rows, and a link of the page shows all plots.
const (
	mostReportRows = pageRows
	mostSentences  = 20
	mostPlotBytes  = 40_000
)

// mostDays bounds the days of a report, because the database sums each of them.
const mostDays = 100

// csvPath is the address of a report as a file.
const csvPath = "/reports/rows.csv"

// units are the units of a report by their names in the URL.
var units = map[string]report.Unit{
	"day": report.Day, "week": report.Week, "month": report.Month,
}

func (s *Server) reports(w http.ResponseWriter, r *request) error {
	query := r.URL.Query()
	p := &reportsPage{}
	figures, err := s.figures(r, true)
	if err != nil {
		return err
	}
	p.Unit = string(figures.Unit)
	var byHour report.Range
	p.Range, byHour = report.PlottedRanges(figures)
	p.Rows, p.More = firstOf(p.Range.Rows, mostReportRows)
	p.From, p.To = p.Day, p.LastDay
	p.Query = template.URL(url.Values{ //nolint:gosec // Encode escapes what it writes.
		"unit": {p.Unit}, "from": {p.From}, "to": {p.To},
	}.Encode())
	for i := range p.Routes {
		v := &p.Routes[i]
		for _, sentence := range v.Text {
			p.Sentences = append(p.Sentences, fmt.Sprintf("%s, route %s: %s", v.Period, v.Route, sentence))
		}
	}
	p.Sentences, p.MoreSentences = firstOf(p.Sentences, mostSentences)
	if len(p.Rows) > 0 {
		drawn, err := plots.Range(&p.Range, &byHour)
		if err != nil {
			return err
		}
		p.take(drawn, query.Get("plots") == "all")
	}
	return s.show(w, r, "reports", "Reports", p)
}

// firstOf returns the first elements, and how many are left out.
func firstOf[T any](all []T, most int) (first []T, more int) {
	first = all[:min(len(all), most)]
	return first, len(all) - len(first)
}

// take shows the first plots, or all of them.
func (p *reportsPage) take(drawn []plots.Plot, all bool) {
	size := 0
	for i, plot := range drawn {
		svg := inline(string(plot.Light))
		if size += len(svg); !all && i > 0 && size > mostPlotBytes {
			p.MorePlots = len(drawn) - i
			return
		}
		p.Plots = append(p.Plots, inlinePlot{plot.Title, plot.Note, svg})
	}
}

// reportCSV answers with all rows of a report, as a file.
func (s *Server) reportCSV(w http.ResponseWriter, r *request) error {
	figures, err := s.figures(r, false)
	if err != nil {
		return err
	}
	rows := report.NewRange(figures)
	var out bytes.Buffer // so that an error gives an error page and not half a file
	if err := s.cfg.ReportCSV(&out, &rows); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="report-%s-%s.csv"`,
		rows.Day, rows.LastDay))
	_, err = w.Write(out.Bytes())
	return err
}

// figures sums the days of the report that a query asks for, also by hour if the plots need that.
func (s *Server) figures(r *request, hours bool) (*report.RangeFigures, error) {
	ctx, query := r.Context(), r.URL.Query()
	from, to := query.Get("from"), query.Get("to")
	unit, ok := units[query.Get("unit")]
	if !ok {
		unit = report.Day
	}
	_, current, err := control.InForce(ctx, s.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	days, err := lookup.Days(ctx, s.cfg.Ledger, current, unit, &lookup.Between{
		From: from, To: to, FromName: "the first day", ToName: "the last day", Most: mostDays,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return lookup.Range(ctx, s.cfg.Ledger, &report.RangeFigures{
		Unit: unit, By: []report.Dimension{report.ByRoute, report.ByChannel}, Days: days,
		Current: current,
	}, hours, nil)
}

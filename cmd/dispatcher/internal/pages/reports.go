package pages

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
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
	Plots          []inlinePlot
	Rows           []report.RangeRow
	More           int // number of rows that are not listed
}

// inlinePlot is a plot in a page.
type inlinePlot struct {
	Title, Note string
	SVG         template.HTML
}

// mostReportRows is how many rows the page lists. The files of "dispatcher report" have all.
const mostReportRows = 300

// mostDays bounds the days of a report, because the database sums each of them.
const mostDays = 100

// units are the units of a report by their names in the URL.
var units = map[string]report.Unit{
	"day": report.Day, "week": report.Week, "month": report.Month,
}

func (s *Server) reports(w http.ResponseWriter, r *request) error {
	query := r.URL.Query()
	p := &reportsPage{Unit: query.Get("unit"), From: query.Get("from"), To: query.Get("to")}
	unit, ok := units[p.Unit]
	if !ok {
		p.Unit, unit = "day", report.Day
	}
	figures, err := s.figures(r.Context(), unit, p.From, p.To)
	if err != nil {
		return err
	}
	channels, hours := *figures, *figures
	channels.By = []report.Dimension{report.ByRoute, report.ByChannel}
	hours.By = []report.Dimension{report.ByHour}
	p.Range = report.NewRange(&channels)
	if p.Rows = p.Range.Rows; len(p.Rows) > mostReportRows {
		p.More, p.Rows = len(p.Rows)-mostReportRows, p.Rows[:mostReportRows]
	}
	p.From, p.To = p.Day, p.LastDay
	for i := range p.Routes {
		v := &p.Routes[i]
		for _, sentence := range v.Text {
			p.Sentences = append(p.Sentences, fmt.Sprintf("%s, route %s: %s", v.Period, v.Route, sentence))
		}
	}
	if len(p.Rows) > 0 {
		byHour := report.NewRange(&hours)
		drawn, err := plots.Range(&p.Range, &byHour)
		if err != nil {
			return err
		}
		for _, plot := range drawn {
			p.Plots = append(p.Plots, inlinePlot{plot.Title, plot.Note, inline(string(plot.Light))})
		}
	}
	return s.show(w, r, "reports", "Reports", p)
}

// figures sums the days of a report, also by hour.
func (s *Server) figures(
	ctx context.Context, unit report.Unit, from, to string,
) (*report.RangeFigures, error) {
	_, current, err := control.InForce(ctx, s.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	days, err := lookup.Days(ctx, s.cfg.Ledger, current, unit, &lookup.Between{
		From: from, To: to, FromName: "the first day", ToName: "the last day",
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if len(days) > mostDays {
		return nil, refuse(fmt.Sprintf("choose at most %d days: files of \"dispatcher report\" may have "+
			"more", mostDays))
	}
	return lookup.Range(ctx, s.cfg.Ledger, &report.RangeFigures{
		Unit: unit, By: []report.Dimension{report.ByRoute, report.ByChannel}, Days: days,
		Current: current,
	}, true, nil)
}

// Package plots draws reports as SVG: shares, the way from agreed to carried, hours and costs. It
// is pure.
package plots

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"

	"dispatcher/cmd/dispatcher/internal/report"
)

// Plot is one plot of a page, for a light and for a dark screen.
type Plot struct {
	Title, Note string
	Light, Dark template.HTML
}

// Sizes of plots in pixels; the page scales them to its width.
const (
	plotWidth  = 960
	plotHeight = 320
)

// plotColours are those of Okabe and Ito, which also differ in brightness: for print, and for
// readers who do not see all colours. The paler ones, for light and dark pages, are for what was
// agreed.
var (
	plotColours = []string{"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"}
	paleColours = []string{"#99C7E0", "#F5D899", "#99D8C7", "#EBC9DC", "#BBE1F6", "#EEBF99"}
	darkPale    = []string{"#1F4F69", "#735214", "#145944", "#694257", "#31607A", "#6B3414"}
)

// theme is the theme of the plots, with the given colours of series.
func theme(dark bool, colours ...string) charts.ColorPalette {
	text, line := "#1B1F24", "#D0D7DE"
	if dark {
		text, line = "#E6EDF3", "#3D444D"
	}
	series := make([]charts.Color, len(colours))
	for i, c := range colours {
		series[i] = charts.ParseColor(c)
	}
	return charts.MakeTheme(charts.ThemeOption{
		IsDarkMode: dark, AxisStrokeColor: charts.ParseColor(line),
		AxisSplitLineColor: charts.ParseColor(line), BackgroundColor: charts.ColorTransparent,
		TextColor: charts.ParseColor(text), SeriesColors: series,
	})
}

// plotted draws a plot twice.
func plotted(
	title, note string, height int, draw func(p *charts.Painter, dark bool) error,
) (Plot, error) {
	out := Plot{Title: title, Note: note}
	for _, dark := range []bool{false, true} {
		p := charts.NewPainter(charts.PainterOptions{
			OutputFormat: charts.ChartOutputSVG, Width: plotWidth, Height: height,
		})
		if err := draw(p, dark); err != nil {
			return out, fmt.Errorf("plot %s: %w", title, err)
		}
		svg, err := p.Bytes()
		if err != nil {
			return out, fmt.Errorf("plot %s: %w", title, err)
		}
		text := scalable(string(svg), height)
		if dark {
			out.Dark = template.HTML(text) //nolint:gosec // The library escapes what it writes.
		} else {
			out.Light = template.HTML(text) //nolint:gosec // The library escapes what it writes.
		}
	}
	return out, nil
}

// scalable lets an SVG fill the width that the page gives it.
func scalable(svg string, height int) string {
	size := fmt.Sprintf(`width="%d" height="%d"`, plotWidth, height)
	view := fmt.Sprintf(`viewBox="0 0 %d %d"`, plotWidth, height)
	if strings.Contains(svg, view) {
		return strings.Replace(svg, size, "", 1)
	}
	return strings.Replace(svg, size, view, 1)
}

// Range draws the plots of a range. byChannel has its periods by route and channel, hours by hour.
func Range(byChannel, hours *report.Range) (plots []Plot, err error) {
	add := func(p Plot, failed error) {
		if err == nil && failed == nil {
			plots = append(plots, p)
		} else if err == nil {
			err = failed
		}
	}
	for _, route := range routesIn(byChannel) {
		add(sharePlot(byChannel, route))
	}
	for _, route := range routesIn(byChannel) {
		for _, w := range report.SumWaterfalls(Waterfalls(byChannel, route)) {
			if len(inMessages(&w)) > 0 {
				add(waterfallPlot(route, &w))
			}
		}
	}
	add(heatPlot(hours))
	for _, currency := range currenciesOf(byChannel) {
		add(costPlot(byChannel, currency))
	}
	return plots, err
}

// routesIn are the routes on which something was carried.
func routesIn(r *report.Range) (routes []string) {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Carried > 0 && !slices.Contains(routes, row.Route) {
			routes = append(routes, row.Route)
		}
	}
	return routes
}

// currenciesOf lists the currencies in which something was spent.
func currenciesOf(r *report.Range) (currencies []string) {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.CostMicros > 0 && !slices.Contains(currencies, row.Currency) {
			currencies = append(currencies, row.Currency)
		}
	}
	slices.Sort(currencies)
	return currencies
}

// Waterfalls returns the waterfalls of a route, period by period.
func Waterfalls(r *report.Range, route string) (all []report.Waterfall) {
	for i := range r.Routes {
		if r.Routes[i].Route == route {
			all = append(all, r.Routes[i].Waterfall...)
		}
	}
	return all
}

// grid is a figure by period and by another value.
type grid struct {
	periods, names []string
	values         map[[2]string]float64
}

// plotPadding leaves room for the last label of an axis.
var plotPadding = charts.NewBox(8, 8, 28, 8)

// fromZero makes an axis begin at zero, so that differences do not look larger than they are.
func fromZero() []charts.ValueAxisOption { return []charts.ValueAxisOption{{Min: new(0.0)}} }

// shortPeriods are the names of periods without their year, where all are of one year.
func shortPeriods(periods []string) []string {
	out := make([]string, len(periods))
	for i, p := range periods {
		if len(p) < 5 || p[:5] != periods[0][:5] {
			return periods
		}
		out[i] = p[5:]
	}
	return out
}

// gridOf adds up a figure of the rows that have it.
func gridOf(
	r *report.Range, figure func(*report.RangeRow) (name string, value float64, ok bool),
) grid {
	g := grid{values: map[[2]string]float64{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if !slices.Contains(g.periods, row.Period) {
			g.periods = append(g.periods, row.Period)
		}
		if name, value, ok := figure(row); ok {
			if !slices.Contains(g.names, name) {
				g.names = append(g.names, name)
			}
			g.values[[2]string{row.Period, name}] += value
		}
	}
	return g
}

// series are the values of each name, period by period.
func (g *grid) series() [][]float64 {
	out := make([][]float64, len(g.names))
	for i, name := range g.names {
		out[i] = make([]float64, len(g.periods))
		for j, period := range g.periods {
			out[i][j] = g.values[[2]string{period, name}]
		}
	}
	return out
}

// highest is the largest sum of a period.
func (g *grid) highest() (top float64) {
	for _, period := range g.periods {
		sum := 0.0
		for _, name := range g.names {
			sum += g.values[[2]string{period, name}]
		}
		top = max(top, sum)
	}
	return top
}

// coloured returns n colours of a list, and starts again from its beginning when it ends.
func coloured(n int, from []string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = from[i%len(from)]
	}
	return out
}

// sharePlot shows what the channels of a route carried beside what was agreed.
func sharePlot(r *report.Range, route string) (Plot, error) {
	carried := gridOf(r, func(row *report.RangeRow) (string, float64, bool) {
		return row.Channel, 100 * row.CarriedShare, row.Route == route
	})
	agreed := gridOf(r, func(row *report.RangeRow) (string, float64, bool) {
		if row.AgreedShare == nil {
			return row.Channel, 0, row.Route == route
		}
		return row.Channel, 100 * *row.AgreedShare, row.Route == route
	})
	var names []string
	for _, name := range agreed.names {
		names = append(names, name+" agreed")
	}
	// What was carried is drawn over what was agreed.
	names, values := append(names, carried.names...), append(agreed.series(), carried.series()...)
	title := "Route " + route + ": share carried against share agreed"
	const note = "Percent of the messages carried. The pale colour is the agreed share."
	if len(carried.periods) == 1 { // a line needs two periods
		return shareBars(title, note, carried.names, agreed.series(), carried.series())
	}
	return plotted(title, note, plotHeight,
		func(p *charts.Painter, dark bool) error {
			pale := paleColours
			if dark {
				pale = darkPale
			}
			n := len(carried.names)
			colours := append(coloured(n, pale), coloured(n, plotColours)...)
			opt := charts.NewLineChartOptionWithData(values)
			opt.Theme, opt.XAxis.Labels = theme(dark, colours...), shortPeriods(carried.periods)
			opt.Legend.SeriesNames, opt.ValueFormatter = names, percent
			opt.Symbol.Shape, opt.LineStrokeWidth = charts.SymbolNone, 2.5
			opt.YAxis, opt.Padding = fromZero(), plotPadding
			return p.LineChart(opt)
		})
}

// shareBars are the shares of one period, channel by channel.
func shareBars(
	title, note string, channels []string, agreed, carried [][]float64,
) (Plot, error) {
	values := make([][]float64, 2)
	for i := range channels {
		values[0], values[1] = append(values[0], agreed[i][0]), append(values[1], carried[i][0])
	}
	return plotted(title, note, plotHeight, func(p *charts.Painter, dark bool) error {
		pale := paleColours
		if dark {
			pale = darkPale
		}
		opt := charts.NewBarChartOptionWithData(values)
		opt.Theme = theme(dark, pale[0], plotColours[0])
		opt.CategoryAxis.Labels, opt.Legend.SeriesNames = channels, []string{"agreed", "carried"}
		opt.ValueAxis, opt.ValueFormatter = fromZero(), percent
		return p.BarChart(opt)
	})
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " %" }

// waterfallPlot leads from what was agreed for a channel to what it carried. Each bar of a step
// stands on an invisible one.
func waterfallPlot(route string, w *report.Waterfall) (Plot, error) {
	steps := inMessages(w)
	n := len(steps) + 2
	base, whole := make([]float64, n), make([]float64, n)
	up, down := make([]float64, n), make([]float64, n)
	labels := make([]string, n)
	labels[0], whole[0] = "agreed", float64(w.Agreed)
	level := w.Agreed
	for i, s := range steps {
		before := level
		level += s.Messages
		base[i+1] = float64(min(before, level))
		labels[i+1] = StepName(&s)
		if s.Messages > 0 {
			up[i+1] = float64(s.Messages)
		} else {
			down[i+1] = float64(-s.Messages)
		}
	}
	labels[n-1], whole[n-1] = "carried", float64(w.Carried)
	return plotted("Route "+route+", channel "+w.Channel+": from agreed to carried",
		waterfallNote(w), plotHeight, func(p *charts.Painter, dark bool) error {
			opt := charts.NewBarChartOptionWithData([][]float64{base, whole, up, down})
			opt.Theme = theme(dark, "rgba(0,0,0,0)", plotColours[0], plotColours[2], plotColours[5])
			opt.StackSeries = new(true)
			opt.CategoryAxis.Labels, opt.CategoryAxis.LabelCount = labels, n
			opt.CategoryAxis.LabelFontStyle.FontSize = 10 // seven labels stand side by side
			opt.Legend.Show = new(false)
			opt.ValueFormatter, opt.ValueAxis = wholeNumber, fromZero()
			return p.BarChart(opt)
		})
}

// inMessages are the steps that have messages, and not only segments or money.
func inMessages(w *report.Waterfall) (steps []report.WaterfallStep) {
	for _, s := range w.Steps {
		if s.Messages != 0 {
			steps = append(steps, s)
		}
	}
	return steps
}

// StepName is short enough to stand below a bar.
func StepName(s *report.WaterfallStep) string {
	name := s.Words()
	switch {
	case s.Channel == "":
		return name
	case !s.In:
		return "to " + s.Channel + ": " + name
	}
	return "from " + s.Channel + ": " + name
}

// waterfallNote has the figures of the bars.
func waterfallNote(w *report.Waterfall) string {
	words := []string{fmt.Sprintf("Messages: agreed %d", w.Agreed)}
	for _, s := range inMessages(w) {
		words = append(words, fmt.Sprintf("%s %+d", StepName(&s), s.Messages))
	}
	return strings.Join(append(words, fmt.Sprintf("carried %d", w.Carried)), ", ") + "."
}

func wholeNumber(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// mostHeatRows is how many periods the map of hours shows: the last ones.
const mostHeatRows = 62

// heatPlot shows when messages were carried.
func heatPlot(r *report.Range) (Plot, error) {
	g := gridOf(r, func(row *report.RangeRow) (string, float64, bool) {
		return strconv.Itoa(*row.Hour), float64(row.Carried), true
	})
	periods := g.periods[max(0, len(g.periods)-mostHeatRows):]
	values, hours := make([][]float64, len(periods)), make([]string, 24)
	for h := range hours {
		hours[h] = fmt.Sprintf("%02d", h)
		for i, period := range periods {
			values[i] = append(values[i], g.values[[2]string{period, strconv.Itoa(h)}])
		}
	}
	note := "The stronger the colour, the more messages. Hours are those of " + r.Timezone + "."
	if len(periods) < len(g.periods) {
		note += fmt.Sprintf(" The last %d %ss.", len(periods), r.Unit)
	}
	return plotted("Messages carried, by hour", note, 120+24*len(periods),
		func(p *charts.Painter, dark bool) error {
			opt := charts.NewHeatMapOptionWithData(values)
			opt.Theme = theme(dark, plotColours[0])
			opt.XAxis.Labels, opt.YAxis.Labels = hours, periods
			opt.YAxis.LabelCount, opt.XAxis.LabelCount = len(periods), 12
			opt.Padding = plotPadding
			return p.HeatMapChart(opt)
		})
}

// costPlot shows what the channels cost in one currency.
func costPlot(r *report.Range, currency string) (Plot, error) {
	g := gridOf(r, func(row *report.RangeRow) (string, float64, bool) {
		return row.Channel, float64(row.CostMicros) / 1e6,
			row.Currency == currency && row.CostMicros > 0
	})
	return plotted("Cost in "+currency, "Accepted segments at their prices, by channel.", plotHeight,
		func(p *charts.Painter, dark bool) error {
			opt := charts.NewBarChartOptionWithData(g.series())
			opt.Theme = theme(dark, coloured(len(g.names), plotColours)...)
			opt.StackSeries = new(true)
			opt.CategoryAxis.Labels, opt.Legend.SeriesNames = shortPeriods(g.periods), g.names
			opt.ValueAxis, opt.Padding = fromZero(), plotPadding
			opt.ValueAxis[0].Unit = roundStep(g.highest())
			if len(g.periods) == 1 {
				opt.BarSize = 0.25 // not as wide as the plot
			}
			return p.BarChart(opt)
		})
}

// roundStep divides an axis up to a value into at most ten steps of 1, 2 or 5 times a power of ten.
func roundStep(top float64) float64 {
	step := math.Pow10(int(math.Floor(math.Log10(max(top, 1e-6) / 10))))
	for _, by := range []float64{1, 2, 5} {
		if top/(by*step) <= 10 {
			return by * step
		}
	}
	return 10 * step
}

package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-analyze/charts"

	"dispatcher/ledger"
)

const (
	chartWidth  = 920
	chartHeight = 220
)

// Colours that the chart library draws text and lines with. inline replaces them by those of the
// page, which may be light or dark.
const (
	textColour = "#1B1F24"
	lineColour = "#D0D7DE"
)

// series are colours that also differ in brightness (Okabe and Ito).
var series = []string{"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"}

// others is the series of the channels that have none of their own.
const others = "others"

// charted adds up the attempts of all but the busiest channels, because there are no more colours
// than series has.
func charted(
	counts []ledger.Throughput, channels []string,
) ([]ledger.Throughput, []string) {
	if len(channels) <= len(series) {
		return counts, channels
	}
	attempts := map[string]int64{}
	for i := range counts {
		attempts[counts[i].Channel] += counts[i].Attempts
	}
	busiest := slices.Clone(channels)
	slices.SortStableFunc(busiest, func(a, b string) int {
		return cmp.Compare(attempts[b], attempts[a])
	})
	busiest = busiest[:len(series)-1]
	shown := slices.DeleteFunc(slices.Clone(channels), func(name string) bool {
		return !slices.Contains(busiest, name)
	})
	counts = slices.Clone(counts)
	for i := range counts {
		if !slices.Contains(shown, counts[i].Channel) {
			counts[i].Channel = others
		}
	}
	return counts, append(shown, others)
}

// throughputChart draws the attempts per second of each channel, over the last minutes.
func throughputChart(
	counts []ledger.Throughput, channels []string, now time.Time, within, interval time.Duration,
) (template.HTML, error) {
	counts, channels = charted(counts, channels)
	from := now.Add(-within).Truncate(interval)
	n := int(within / interval)
	labels := make([]string, n)
	for i := range labels {
		labels[i] = from.Add(time.Duration(i) * interval).Format("15:04")
	}
	values := make([][]float64, len(channels))
	for i, name := range channels {
		values[i] = make([]float64, n)
		for _, c := range counts {
			if at := int(c.At.Sub(from) / interval); c.Channel == name && at >= 0 && at < n {
				values[i][at] += float64(c.Attempts) / interval.Seconds()
			}
		}
	}
	p := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight,
	})
	colours := make([]charts.Color, len(channels))
	for i := range colours {
		colours[i] = charts.ParseColor(series[i%len(series)])
	}
	opt := charts.NewLineChartOptionWithData(values)
	opt.Theme = charts.MakeTheme(charts.ThemeOption{
		AxisStrokeColor:    charts.ParseColor(lineColour),
		AxisSplitLineColor: charts.ParseColor(lineColour), BackgroundColor: charts.ColorTransparent,
		TextColor: charts.ParseColor(textColour), SeriesColors: colours,
	})
	opt.XAxis.Labels, opt.XAxis.LabelCount = labels, 6
	opt.XAxis.LabelFontStyle.FontSize = 10
	opt.Legend.SeriesNames = channels
	opt.Symbol.Shape, opt.LineStrokeWidth = charts.SymbolNone, 2
	opt.YAxis = []charts.YAxisOption{{
		Min: new(0.0), LabelFontStyle: charts.FontStyle{FontSize: 10},
	}}
	opt.Padding = charts.NewBox(4, 4, 12, 0)
	if err := p.LineChart(opt); err != nil {
		return "", fmt.Errorf("plot of the throughput: %w", err)
	}
	svg, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("plot of the throughput: %w", err)
	}
	return inline(string(svg)), nil
}

var (
	styles   = regexp.MustCompile(` style="([^"]*)"`)
	property = regexp.MustCompile(`^(fill|stroke|stroke-width|stroke-dasharray|fill-opacity|` +
		`stroke-opacity|font-size|font-family|text-anchor|opacity|stroke-linecap|stroke-linejoin)$`)
	size    = regexp.MustCompile(`<svg([^>]*) width="(\d+)" height="(\d+)"`)
	colours = strings.NewReplacer("rgb(27,31,36)", "var(--text)", "rgb(208,215,222)", "var(--line)",
		"rgb(0,114,178)", "var(--s0)", "rgb(230,159,0)", "var(--s1)", "rgb(0,158,115)", "var(--s2)",
		"rgb(204,121,167)", "var(--s3)", "rgb(86,180,233)", "var(--s4)", "rgb(213,94,0)", "var(--s5)")
)

// inline adapts an SVG of the chart library to a page. The content security policy forbids inline
// styles, so they become attributes with the same meaning. Text and lines get the page's colours,
// and the SVG fills the width that the page gives it. It is hidden from screen readers, because a
// table next to it has the same figures.
func inline(svg string) template.HTML {
	svg = styles.ReplaceAllStringFunc(svg, func(style string) string {
		var out strings.Builder
		for one := range strings.SplitSeq(styles.FindStringSubmatch(style)[1], ";") {
			name, value, ok := strings.Cut(one, ":")
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			if ok && property.MatchString(name) {
				fmt.Fprintf(&out, ` %s="%s"`, name, colours.Replace(strings.ReplaceAll(value, ", ", ",")))
			}
		}
		return out.String()
	})
	svg = size.ReplaceAllStringFunc(svg, func(open string) string {
		m := size.FindStringSubmatch(open)
		if strings.Contains(open, "viewBox") {
			return "<svg" + m[1]
		}
		return fmt.Sprintf(`<svg%s viewBox="0 0 %s %s"`, m[1], m[2], m[3])
	})
	svg = strings.Replace(svg, "<svg", `<svg class="plot" aria-hidden="true" focusable="false"`, 1)
	return template.HTML(svg) //nolint:gosec // The library escapes what it writes.
}

// bar is a horizontal bar of a share from 0 to 1, with a mark at the agreed share.
func bar(part, mark any, class string) template.HTML {
	value, ok := partOf(part)
	if !ok {
		value = 0
	}
	out := fmt.Sprintf(`<svg class="bar %s" viewBox="0 0 100 8" preserveAspectRatio="none" `+
		`aria-hidden="true" focusable="false"><rect class="back" width="100" height="8"/>`+
		`<rect class="fill" width="%.1f" height="8"/>`, class, 100*value)
	if at, ok := partOf(mark); ok {
		out += fmt.Sprintf(`<line class="mark" x1="%.1f" x2="%.1f" y1="0" y2="8"/>`, 100*at, 100*at)
	}
	return template.HTML(out + `</svg>`) //nolint:gosec // Numbers, and a class of our templates.
}

// partOf converts a share and clips it to 0 to 1; false when there is none.
func partOf(v any) (float64, bool) {
	switch p := v.(type) {
	case float64:
		return min(max(p, 0), 1), true
	case *float64:
		if p != nil {
			return min(max(*p, 0), 1), true
		}
	}
	return 0, false
}

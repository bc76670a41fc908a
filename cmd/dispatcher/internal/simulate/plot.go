package simulate

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"

	"dispatcher/admission"
)

// Lengths of the plot, in pixels.
const (
	plotWidth  = 960.0
	margin     = 24.0
	lineStep   = 20.0
	barLeft    = 92.0  // where the bars begin, behind the names of the policies
	barWidth   = 560.0 // of the longest
	barHeight  = 22.0
	barStep    = 36.0
	panelWidth = 380.0
	panelLeft  = 60.0 // room for the figures of an axis
	panelTall  = 120.0
	panelStepX = 460.0
	panelStepY = 178.0
)

// titleLength is how many characters of the title fit in the width.
const titleLength = 96

// drawing is the data of the SVG template. The template has the colours, by class, for a light and
// a dark scheme. They differ in brightness too, and the legend names them, so that nobody depends
// on hues.
type drawing struct {
	Width, Height float64
	Title         string
	Grid          []line // behind the boxes
	Boxes         []box
	Lines         []line
	Labels        []label
}

// box is shown with a hint when a pointer is over it.
type box struct {
	Class               string
	X, Y, Width, Height float64
	Hint                string
}

type line struct {
	Class          string
	X1, Y1, X2, Y2 float64
}

type label struct {
	Class string
	X, Y  float64
	Text  string
}

//go:embed plot.svg.tmpl
var plotText string

var plotTemplate = template.Must(
	template.New("plot").Funcs(template.FuncMap{"px": px}).Parse(plotText))

// px writes a length with two decimals at most.
func px(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
}

// Plot draws how each policy treated the messages: in total, and window by window if there are
// several. If no messages arrived it draws how the slots are divided. The SVG loads nothing and
// follows the reader's light or dark scheme.
func Plot(s *Scenario, outcomes []Outcome) (string, error) {
	d := drawing{Width: plotWidth, Title: s.Description}
	if d.Title == "" {
		d.Title = "Admission"
	}
	y := 34.0
	for _, text := range titleLines(d.Title) {
		d.label("title", margin, y, text)
		y += lineStep
	}
	d.label("soft", margin, y, setting(s))
	y += 58
	if arrived(outcomes) == 0 {
		y = d.division(s, outcomes, y)
	} else {
		y = d.totals(s, outcomes, y)
	}
	if s.Windows > 1 && arrived(outcomes) > 0 {
		y = d.panels(s, outcomes, y)
	}
	d.Height = y
	var out strings.Builder
	err := plotTemplate.Execute(&out, &d)
	return out.String(), err
}

func (d *drawing) label(class string, x, y float64, text string) {
	d.Labels = append(d.Labels, label{class, x, y, text})
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.Lines = append(d.Lines, line{class, x1, y1, x2, y2})
}

// titleLines breaks a title into lines, at most three.
func titleLines(title string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(title) {
		last := &lines[len(lines)-1]
		switch {
		case len([]rune(*last+word)) < titleLength || *last == "":
			*last = strings.TrimSpace(*last + " " + word)
		case len(lines) == 3:
			*last += " …"
			return lines
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// setting describes in one line what was simulated.
func setting(s *Scenario) string {
	windows := "1 window"
	if s.Windows > 1 {
		windows = fmt.Sprintf("%d windows", s.Windows)
	}
	return fmt.Sprintf("limit %d, %d in use, %d processes, %s of %s, state every %s",
		s.Limit, s.Active, s.Total, windows, admission.Window(s.Window), s.StateInterval)
}

// arrived is how many messages came; the same number for each policy.
func arrived(outcomes []Outcome) (most int64) {
	for i := range outcomes {
		most = max(most, outcomes[i].Arrived)
	}
	return most
}

// part is a piece of a bar or a column.
type part struct {
	class string
	count int64
	what  string
}

// parts are the pieces of a bar for all messages that arrived.
func parts(arrived, admitted, over, early, overtaken int64) []part {
	return []part{
		{"within", admitted - over, "admitted within the limit"},
		{"over", over, "admitted beyond the limit"},
		{"early", early, "queued although a slot stayed free"},
		{"overtaken", overtaken, "queued, and a later one got in"},
		{"queued", arrived - admitted - early - overtaken, "queued, the limit was used up"},
	}
}

// legend names the classes and the dashed line.
func (d *drawing) legend(y float64, entries []part, dashed string) {
	x := margin
	for _, e := range entries {
		d.Boxes = append(d.Boxes, box{e.class, x, y, 12, 12, e.what})
		d.label("", x+18, y+10, e.what)
		x += 34 + 6.6*float64(len(e.what))
	}
	d.line("limit", x, y+6, x+22, y+6)
	d.label("", x+28, y+10, dashed)
}

// bar draws one policy with its figures.
func (d *drawing) bar(y, scale float64, policy string, parts []part, figures string) {
	d.label("head end", barLeft-12, y+15, policy)
	x := barLeft
	for _, p := range parts {
		if width := float64(p.count) * scale; width > 0 {
			hint := fmt.Sprintf("%s: %d %s", policy, p.count, p.what)
			d.Boxes = append(d.Boxes, box{p.class, x, y, width, barHeight, hint})
			x += width
		}
	}
	d.label("", barLeft+barWidth+12, y+15, figures)
}

// totals draws a bar for each policy. With a single window it also shows the free slots.
func (d *drawing) totals(s *Scenario, outcomes []Outcome, top float64) (bottom float64) {
	d.legend(top-36, []part{
		{class: "within", what: "admitted"},
		{class: "over", what: "admitted beyond the limit"},
		{class: "early", what: "queued, a slot stayed free"},
		{class: "overtaken", what: "queued, a later one got in"},
		{class: "queued", what: "queued, used up"},
	}, "free")
	most := max(arrived(outcomes), 1)
	if s.Windows == 1 {
		most = max(most, s.Free())
	}
	scale := barWidth / float64(most)
	for i, o := range outcomes {
		figures := fmt.Sprintf("%s %% early, %s %% over, %s %% unused",
			short(o.EarlyPercent), short(o.OverPercent), short(o.UnusedPercent))
		d.bar(top+float64(i)*barStep, scale, o.Policy,
			parts(o.Arrived, o.Admitted, o.Over, o.Early, o.Overtaken), figures)
	}
	bottom = top + float64(len(outcomes))*barStep
	if s.Windows > 1 {
		d.label("soft end", barLeft+barWidth, bottom+6, strconv.FormatInt(most, 10)+" arrived")
	} else {
		x := barLeft + float64(s.Free())*scale
		d.line("limit", x, top-6, x, bottom-8)
		d.label("soft middle", x, bottom+8, strconv.FormatInt(s.Free(), 10))
	}
	return bottom + 44
}

// short has one decimal. A small value is not shown as zero.
func short(percent float64) string {
	if percent > 0 && percent < 0.05 {
		return "<0.1"
	}
	return px(math.Round(percent*10) / 10)
}

// division draws how each policy divides the free slots: those of the region, those of any region,
// and as a line how many one process of the region may take.
func (d *drawing) division(s *Scenario, outcomes []Outcome, top float64) (bottom float64) {
	d.legend(top-36, []part{
		{class: "within", what: "slots of " + s.Region}, {class: "queued", what: "of any region"},
	}, "what one process of "+s.Region+" may take")
	most := max(s.Free(), 1)
	for i := range outcomes {
		o := &outcomes[i]
		most = max(most, o.RegionSlots+o.AnywhereSlots, o.PerWorker)
	}
	scale := barWidth / float64(most)
	for i := range outcomes {
		o, y := &outcomes[i], top+float64(i)*barStep
		d.bar(y, scale, o.Policy, []part{
			{"within", o.RegionSlots, "slots of " + s.Region},
			{"queued", o.AnywhereSlots, "slots of any region"},
		}, fmt.Sprintf("%d + %d, %d each", o.RegionSlots, o.AnywhereSlots, o.PerWorker))
		x := barLeft + float64(o.PerWorker)*scale
		d.line("limit", x, y-4, x, y+barHeight+4)
	}
	bottom = top + float64(len(outcomes))*barStep
	d.label("soft middle", barLeft+float64(s.Free())*scale, bottom+8, fmt.Sprintf("%d free",
		s.Free()))
	return bottom + 44
}

// panels draws each policy's windows as columns, two policies in a row.
func (d *drawing) panels(s *Scenario, outcomes []Outcome, top float64) (bottom float64) {
	most := max(s.Free(), 1)
	for _, o := range outcomes {
		for _, w := range o.Windows {
			most = max(most, w.Arrived)
		}
	}
	for i := range outcomes {
		x, y := margin+panelLeft+float64(i%2)*panelStepX, top+20+float64(i/2)*panelStepY
		d.panel(&outcomes[i], x, y, s.Free(), most)
	}
	return top + math.Ceil(float64(len(outcomes))/2)*panelStepY + 8
}

func (d *drawing) panel(o *Outcome, left, top float64, free, most int64) {
	right, bottom, scale := left+panelWidth, top+panelTall, panelTall/float64(most)
	d.label("head", left, top-8, o.Policy+", by window")
	for _, tick := range ticks(most) {
		y := bottom - float64(tick)*scale
		d.Grid = append(d.Grid, line{"grid", left, y, right, y})
		d.label("soft end", left-6, y+4, strconv.FormatInt(tick, 10))
	}
	step := panelWidth / float64(len(o.Windows))
	gap := min(step/5, 4)
	for i, w := range o.Windows {
		x, y := left+float64(i)*step+gap/2, bottom
		for _, p := range parts(w.Arrived, w.Admitted, w.Over, w.Early, w.Overtaken) {
			if tall := float64(p.count) * scale; tall > 0 {
				y -= tall
				hint := fmt.Sprintf("window %d: %d %s", w.Window, p.count, p.what)
				d.Boxes = append(d.Boxes, box{p.class, x, y, step - gap, tall, hint})
			}
		}
	}
	d.line("axis", left, bottom, right, bottom)
	d.line("limit", left, bottom-float64(free)*scale, right, bottom-float64(free)*scale)
	d.label("soft middle", left+step/2, bottom+16, "1")
	d.label("soft middle", right-step/2, bottom+16, strconv.Itoa(len(o.Windows)))
}

// ticks are round figures from 0 to most, at most five.
func ticks(most int64) []int64 {
	step := int64(1)
	for i := 0; most/step > 4; i++ {
		step = step * []int64{2, 5, 10}[i%3] / []int64{1, 2, 5}[i%3]
	}
	var out []int64
	for tick := int64(0); tick <= most; tick += step {
		out = append(out, tick)
	}
	return out
}

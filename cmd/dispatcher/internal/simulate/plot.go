package simulate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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
	panelWidth = 400.0
	panelLeft  = 60.0 // room for the figures of an axis
	panelTall  = 120.0
	panelStep  = 178.0
)

// titleLength is how many characters of the title go into the width.
const titleLength = 96

// Plot draws what became of the messages under each policy: in total, and window by window where there are
// several. Where none arrived it draws how the slots are divided. The SVG needs nothing from outside and follows the reader's light or dark scheme.
func Plot(s *Scenario, outcomes []Outcome) string {
	var d drawing
	title := titleLines(heading(s))
	top := 112.0 + float64(len(title)-1)*lineStep
	below := top + float64(len(outcomes))*barStep + 44
	height := below
	quiet := arrived(outcomes) == 0
	if s.Windows > 1 && !quiet {
		height += math.Ceil(float64(len(outcomes))/2)*panelStep + 8
	}
	d.begin(plotWidth, height, heading(s))
	for i, line := range title {
		d.text(margin, 34+float64(i)*lineStep, "title", line)
	}
	d.text(margin, top-58, "soft", setting(s))
	if quiet {
		d.split(s, outcomes, top)
	} else {
		d.legend(margin, top-36, trafficLegend, "free")
		d.bars(s, outcomes, top)
		if s.Windows > 1 {
			d.panels(s, outcomes, below)
		}
	}
	d.end()
	return d.String()
}

func heading(s *Scenario) string {
	if s.Description == "" {
		return "Admission"
	}
	return s.Description
}

// titleLines breaks a heading into lines, at most three.
func titleLines(heading string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(heading) {
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

// setting says in a line what was simulated.
func setting(s *Scenario) string {
	windows := "1 window"
	if s.Windows > 1 {
		windows = fmt.Sprintf("%d windows", s.Windows)
	}
	return fmt.Sprintf("limit %d, %d in use, %d processes, %s of %s, state every %s", s.Limit, s.Active, s.Total, windows, admission.Window(s.Window), s.StateInterval)
}

// trafficLegend names the classes of what became of messages.
var trafficLegend = [][2]string{
	{"within", "admitted"},
	{"over", "admitted beyond the limit"},
	{"early", "queued, a slot stayed free"},
	{"overtaken", "queued, a later one got in"},
	{"queued", "queued, used up"},
}

// legend names the classes, and what the dashed line stands for.
func (d *drawing) legend(x, y float64, entries [][2]string, dashed string) {
	for _, entry := range entries {
		d.rect(x, y, 12, 12, entry[0], "")
		d.text(x+18, y+10, "", entry[1])
		x += 34 + 6.6*float64(len(entry[1]))
	}
	d.line(x, y+6, x+22, y+6, "limit")
	d.text(x+28, y+10, "", dashed)
}

// arrived is how many messages came; to each policy as many.
func arrived(outcomes []Outcome) (most int64) {
	for i := range outcomes {
		most = max(most, outcomes[i].Arrived)
	}
	return most
}

// part is a piece of a bar.
type part struct {
	class string
	count int64
	what  string
}

// parts are those of all messages that arrived.
func parts(arrived, admitted, over, early, overtaken int64) []part {
	return []part{
		{"within", admitted - over, "admitted within the limit"},
		{"over", over, "admitted beyond the limit"},
		{"early", early, "queued although a slot stayed free"},
		{"overtaken", overtaken, "queued, and a later one got in"},
		{"queued", arrived - admitted - early - overtaken, "queued, the limit was used up"},
	}
}

// bars draws the totals. Where there is one window they show its free slots too.
func (d *drawing) bars(s *Scenario, outcomes []Outcome, top float64) {
	most := max(arrived(outcomes), 1)
	if s.Windows == 1 {
		most = max(most, s.Free())
	}
	scale := barWidth / float64(most)
	for i, o := range outcomes {
		y := top + float64(i)*barStep
		d.text(barLeft-12, y+15, "head end", o.Policy)
		x := barLeft
		for _, p := range parts(o.Arrived, o.Admitted, o.Over, o.Early, o.Overtaken) {
			d.rect(x, y, float64(p.count)*scale, barHeight, p.class, fmt.Sprintf("%s: %d %s", o.Policy, p.count, p.what))
			x += float64(p.count) * scale
		}
		d.text(barLeft+barWidth+12, y+15, "", figures(&o))
	}
	bottom := top + float64(len(outcomes))*barStep
	if s.Windows > 1 {
		d.text(barLeft+barWidth, bottom+6, "soft end", strconv.FormatInt(most, 10)+" arrived")
		return
	}
	x := barLeft + float64(s.Free())*scale
	d.line(x, top-6, x, bottom-8, "limit")
	d.text(x, bottom+8, "soft middle", strconv.FormatInt(s.Free(), 10))
}

// figures are the ones that a reader asks for first.
func figures(o *Outcome) string {
	return fmt.Sprintf("%s %% early, %s %% over, %s %% unused", short(o.EarlyPercent), short(o.OverPercent), short(o.UnusedPercent))
}

// short has one digit behind the point. What is little is not shown as nothing.
func short(percent float64) string {
	if percent > 0 && percent < 0.05 {
		return "<0.1"
	}
	return px(math.Round(percent*10) / 10)
}

// panels draws each policy's windows as columns.
func (d *drawing) panels(s *Scenario, outcomes []Outcome, top float64) {
	most := max(s.Free(), 1)
	for _, o := range outcomes {
		for _, w := range o.Windows {
			most = max(most, w.Arrived)
		}
	}
	for i := range outcomes {
		x := margin + panelLeft + float64(i%2)*(panelWidth+panelLeft)
		y := top + 20 + float64(i/2)*panelStep
		d.panel(&outcomes[i], x, y, s.Free(), most)
	}
}

func (d *drawing) panel(o *Outcome, left, top float64, free, most int64) {
	bottom, scale := top+panelTall, panelTall/float64(most)
	d.text(left, top-8, "head", o.Policy+", by window")
	for _, tick := range ticks(most) {
		y := bottom - float64(tick)*scale
		d.line(left, y, left+panelWidth-20, y, "grid")
		d.text(left-6, y+4, "soft end", strconv.FormatInt(tick, 10))
	}
	step := (panelWidth - 20) / float64(len(o.Windows))
	gap := min(step/5, 4)
	for i, w := range o.Windows {
		y := bottom
		for _, p := range parts(w.Arrived, w.Admitted, w.Over, w.Early, w.Overtaken) {
			tall := float64(p.count) * scale
			y -= tall
			d.rect(left+float64(i)*step+gap/2, y, step-gap, tall, p.class, fmt.Sprintf("window %d: %d %s", w.Window, p.count, p.what))
		}
	}
	d.line(left, bottom, left+panelWidth-20, bottom, "axis")
	d.line(left, bottom-float64(free)*scale, left+panelWidth-20, bottom-float64(free)*scale, "limit")
	d.text(left+step/2, bottom+16, "soft middle", "1")
	d.text(left+panelWidth-20-step/2, bottom+16, "soft middle", strconv.Itoa(len(o.Windows)))
}

// ticks are round figures from 0 to most, five at the most.
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

package simulate

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// drawing is an SVG under way. All lengths are in pixels.
type drawing struct{ strings.Builder }

// style has the colours by class, for light and dark. They differ in brightness too, and what they mean is
// written beside them, so that nobody depends on hues.
const style = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2933}
.paper{fill:#ffffff}
.title{font-size:15px;font-weight:600}.head{font-weight:600}.soft{fill:#5b6770}
.within{fill:#2b6cb0}.over{fill:#c2410c}.early{fill:#eab308}.overtaken{fill:#8f7a4a}.queued{fill:#c3ccd5}
.axis{stroke:#9aa5b1;stroke-width:1}.grid{stroke:#e4e9ee;stroke-width:1}.limit{stroke:#1f2933;stroke-width:1.5;stroke-dasharray:5 3}
.end{text-anchor:end}.middle{text-anchor:middle}
@media (prefers-color-scheme:dark){
text{fill:#e4e9ee}.paper{fill:#14181d}.soft{fill:#9aa5b1}
.within{fill:#4f94dc}.over{fill:#f97316}.early{fill:#fde047}.overtaken{fill:#a08d5c}.queued{fill:#4a5560}
.axis{stroke:#66727e}.grid{stroke:#262d34}.limit{stroke:#e4e9ee}
}
</style>
`

func (d *drawing) begin(width, height float64, name string) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img">`+"\n", px(width), px(height))
	fmt.Fprintf(d, "<title>%s</title>\n", html.EscapeString(name))
	d.WriteString(style)
	d.rect(0, 0, width, height, "paper", "")
}

func (d *drawing) end() { d.WriteString("</svg>\n") }

// rect draws a box; hint is what a pointer over it shows, empty for nothing.
func (d *drawing) rect(x, y, width, height float64, class, hint string) {
	if width <= 0 || height <= 0 {
		return
	}
	fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, px(x), px(y), px(width), px(height))
	if hint == "" {
		d.WriteString("/>\n")
		return
	}
	fmt.Fprintf(d, "><title>%s</title></rect>\n", html.EscapeString(hint))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, px(x1), px(y1), px(x2), px(y2))
}

func (d *drawing) text(x, y float64, class, s string) {
	fmt.Fprintf(d, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, px(x), px(y), html.EscapeString(s))
}

// px writes a length with two decimals at most.
func px(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
}

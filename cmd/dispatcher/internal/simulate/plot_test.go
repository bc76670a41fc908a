package simulate

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
)

func plotted(t *testing.T, text string) string {
	t.Helper()
	s := read(t, text)
	var outcomes []Outcome
	for _, p := range s.Policies() {
		outcomes = append(outcomes, s.Replay(p, s.Events()))
	}
	svg, err := Plot(s, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	return svg
}

func TestPlotIsAnSVGThatNeedsNothingElse(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"one window": `{"description": "a < b & \"c\"", "limit": 10, "region": "a", ` +
			`"arrivals": [7, 1]}`,
		"no limit": `{"limit": 0, "region": "a", "arrivals": [7, 1]}`,
		"no arrivals": `{"limit": 200, "active": 50, "history": {"Delhi": 20}, "workers": ` +
			`{"Delhi": 3, "total": 10}, "region": "Delhi", "windows": 2}`,
		"no slots":    `{"limit": 0, "region": "a"}`,
		"two windows": `{"limit": 10, "region": "a", "windows": 2, "arrivals": [{"count": 20}]}`,
	} {
		svg := plotted(t, text)
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: got error %v", name, err)
			}
		}
		outside := strings.ReplaceAll(svg, `xmlns="http://www.w3.org/2000/svg"`, "")
		if m := regexp.MustCompile(`https?:|href|url\(|@import|<script`).
			FindString(outside); m != "" {
			t.Errorf("%s: it refers to another file with %q", name, m)
		}
		if !strings.Contains(svg, "prefers-color-scheme:dark") || regexp.MustCompile(`NaN|Inf|="-`).
			MatchString(svg) {
			t.Errorf("%s: no dark colours, or a length that is none", name)
		}
	}
}

func TestPlotShowsEachWindowOfEachPolicy(t *testing.T) {
	t.Parallel()
	svg := plotted(t, `{"limit": 10, "region": "a", "windows": 3, "arrivals": [{"count": 20, `+
		`"windows": [2, 3]}]}`)
	for _, want := range []string{
		"even, by window", "curve, by window", "counter, by window",
		"exact, by window", "window 2: 10 admitted within the limit",
		"window 3: 10 queued, the limit was used up", "40 arrived",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(svg, "window 1: ") {
		t.Error("got a column without values")
	}
}

func TestLongTitleIsBrokenIntoLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	lines := titleLines(long)
	if len(lines) != 3 || !strings.HasSuffix(lines[2], " …") {
		t.Errorf("got %q", lines)
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > titleLength+2 {
			t.Errorf("%d characters in a line", n)
		}
	}
	if got := titleLines("short"); len(got) != 1 || got[0] != "short" {
		t.Errorf("got %q", got)
	}
}

func TestTicksAreFewAndRound(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]int{1: 2, 4: 5, 5: 3, 10: 3, 99: 5, 3600: 4, 1 << 40: 3} {
		if got := ticks(most); len(got) != want || got[0] != 0 {
			t.Errorf("up to %d: %v", most, got)
		}
	}
}

func TestPlotWithoutArrivalsShowsTheDivision(t *testing.T) {
	t.Parallel()
	svg := plotted(t, `{"limit": 200, "active": 50, "history": {"San Jose": 20, "London": 30, "Anywhere": 150},
		"workers": {"San Jose": 3, "total": 10}, "region": "San Jose"}`)
	for _, want := range []string{
		"15 + 113, 16 each", "15 + 113, 128 each", "0 + 150, 150 each",
		"counter: 15 slots of San Jose", "150 free",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
	if strings.Contains(svg, "admitted") {
		t.Error("the plot shows messages that never arrived")
	}
}

// TestPlotNamesTheFiguresOfTheGuide: unused slots count whether messages wanted them or not.
func TestPlotNamesTheFiguresOfTheGuide(t *testing.T) {
	t.Parallel()
	svg := plotted(t, `{"limit": 10, "workers": {"a": 2}, "region": "a", "arrivals": [7, 1]}`)
	for _, want := range []string{
		"25 % early, 0 % over, 40 % unused",
		"even: 2 queued although a slot stayed free",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
}

func TestPlotDistinguishesOvertakenFromTooLate(t *testing.T) {
	t.Parallel()
	svg := plotted(t, `{"limit": 10, "history": {"a": 10}, "workers": {"a": 2}, "region": "a", "arrivals": [
		{"worker": 1, "count": 8, "at": "0s"}, {"worker": 2, "count": 4, "at": "5s"}]}`)
	for _, want := range []string{
		"even: 1 queued although a slot stayed free",
		"even: 2 queued, and a later one got in", "exact: 2 queued, the limit was used up",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
}

func TestLittleIsNotShownAsNothing(t *testing.T) {
	t.Parallel()
	for percent, want := range map[float64]string{
		0: "0", 0.001: "<0.1", 0.049: "<0.1", 0.05: "0.1",
		2.64: "2.6", 100: "100",
	} {
		if got := short(percent); got != want {
			t.Errorf("%v: %s, want %s", percent, got, want)
		}
	}
}

package selector_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"dispatcher/selector"
)

const (
	days    = 7
	perDay  = 15_000
	atWorst = 0.001 // a p-value below it is a failure: chi-square at 0.1 %
)

// dayOf draws the messages of one day of November 2026 and returns the draws and the choices in
// order. The key and the ids are fixed, so every run gives the same numbers.
func dayOf(table *selector.Table, day, messages int) (draws []float64, choices []int) {
	drawer := selector.NewDrawer(testKey)
	for i := range messages {
		draw := drawer.Draw(fmt.Sprintf("2026-11-%02d-%05d", day, i), 1, table.Size())
		draws = append(draws, float64(draw))
		choices = append(choices, table.Pick(draw))
	}
	return draws, choices
}

func count(choices []int, channels int) []int {
	counts := make([]int, channels)
	for _, c := range choices {
		counts[c]++
	}
	return counts
}

// TestWeekOfThePaper repeats the production week that Li, Wang and Xu report: 15 000 messages a day
// for seven days at 25/15/60. It prints their table (what each channel sent, and its share) with
// the test result for each day:
//
//	go test -run WeekOfThePaper -v ./selector
func TestWeekOfThePaper(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "25", "15", "60")
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "day\tA 25\tB 15\tC 60\tA\tB\tC\tchi-square\tp\t")
	week := make([]int, table.Len())
	for day := range days {
		_, choices := dayOf(table, 16+day, perDay)
		counts := count(choices, table.Len())
		for c, n := range counts {
			week[c] += n
		}
		p := row(w, fmt.Sprintf("2026-11-%d", 16+day), table, counts, perDay)
		if p < atWorst {
			t.Errorf("day %d: %v, p = %.5f", 16+day, counts, p)
		}
	}
	if p := row(w, "week", table, week, days*perDay); p < atWorst {
		t.Errorf("week: %v, p = %.5f", week, p)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
}

// row prints one line of the table and tests it.
func row(w *tabwriter.Writer, name string, table *selector.Table, counts []int, n int) (p float64) {
	fmt.Fprintf(w, "%s\t", name)
	for _, c := range counts {
		fmt.Fprintf(w, "%d\t", c)
	}
	for _, c := range counts {
		fmt.Fprintf(w, "%.2f %%\t", 100*float64(c)/float64(n))
	}
	x := chiSquare(table, counts, n)
	p = chiSquareP(x, table.Len()-1)
	fmt.Fprintf(w, "%.2f\t%.3f\t\n", x, p)
	return p
}

// TestDrawsOfTheWeekAreFreeOfSerialCorrelation guards against the paper's warning: long runs on one
// channel, all of which an unnoticed fault of that channel would spoil.
func TestDrawsOfTheWeekAreFreeOfSerialCorrelation(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "25", "15", "60")
	var draws []float64
	var choices []int
	for day := range days {
		d, c := dayOf(table, 16+day, perDay)
		draws, choices = append(draws, d...), append(choices, c...)
	}
	for c := range table.Len() {
		if p := runsP(isChannel(choices, c)); p < atWorst {
			t.Errorf("channel %d: runs test p = %.5f", c, p)
		}
	}
	for lag := 1; lag <= 20; lag++ {
		if p := correlationP(draws, lag); p < atWorst/20 {
			t.Errorf("lag %d: p = %.6f", lag, p)
		}
	}
}

func isChannel(choices []int, channel int) []bool {
	out := make([]bool, len(choices))
	for i, c := range choices {
		out[i] = c == channel
	}
	return out
}

func TestRunsOfTheWeekAreGeometric(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "25", "15", "60")
	var choices []int
	for day := range days {
		_, c := dayOf(table, 16+day, perDay)
		choices = append(choices, c...)
	}
	longest := 0
	for c, lengths := range runLengths(choices, table.Len()) {
		if p := geometricP(lengths, table.Share(c)); p < atWorst {
			t.Errorf("channel %d: p = %.5f", c, p)
		}
		for _, length := range lengths {
			longest = max(longest, length)
		}
	}
	// The longest run of n draws at 0.6 is about log(0.4 n)/log(1/0.6) = 21. A run of 50 has a
	// probability of one in a million.
	if longest > 50 {
		t.Errorf("one channel was picked %d times in a row", longest)
	}
}

// TestTheTestsOfSharesFindFaults gives the tests above what they must detect: round robin, sticky
// choices and shares that are off by one percent.
func TestTheTestsOfSharesFindFaults(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "25", "15", "60")
	_, fair := dayOf(table, 16, perDay)
	sticky, regular := make([]int, perDay), make([]int, perDay)
	for i := range fair {
		sticky[i] = fair[i/2]
		regular[i] = table.Pick(uint64(i*7) % table.Size())
	}
	for name, choices := range map[string][]int{"sticky": sticky, "regular": regular} {
		if p := runsP(isChannel(choices, 2)); p > 1e-6 {
			t.Errorf("%s: runs test p = %v", name, p)
		}
		if p := geometricP(runLengths(choices, 3)[2], 0.6); p > 1e-6 {
			t.Errorf("%s: run lengths p = %v", name, p)
		}
	}
	sawtooth := make([]float64, perDay)
	for i := range sawtooth {
		sawtooth[i] = float64(i % 3)
	}
	if p := correlationP(sawtooth, 3); p > 1e-6 {
		t.Errorf("sawtooth: p = %v", p)
	}
	if p := chiSquareP(chiSquare(mustTable(t, "27", "15", "58"), count(fair, 3), perDay), 2); p >
		atWorst {
		t.Errorf("shares two points off: p = %v", p)
	}
}

// TestAMidDayChangeIsJudgedAgainstTheTimeWeightedExpectation changes the weights at 14:37 of days
// with uneven traffic. A channel's expected count is the sum, over the messages, of its share at
// the time of each. Against that expectation days pass, and small probabilities are as rare as they
// should be. Against either set of weights alone every day would fail.
func TestAMidDayChangeIsJudgedAgainstTheTimeWeightedExpectation(t *testing.T) {
	t.Parallel()
	before, after := mustTable(t, "25", "15", "60"), mustTable(t, "40", "0", "60")
	change, drawer := 14*time.Hour+37*time.Minute, selector.NewDrawer(testKey)
	const days, messages = 200, 1000
	unlikely, blamedOnMorning, blamedOnEvening := 0, 0, 0
	for day := range days {
		counts, expected := make([]int, 3), make([]float64, 3)
		for i := range messages {
			table := before
			if arrival(i, messages) >= change {
				table = after
			}
			counts[table.Pick(drawer.Draw(fmt.Sprint(day, "/", i), 1, table.Size()))]++
			for c := range expected {
				expected[c] += table.Share(c)
			}
		}
		p := chiSquareP(chiSquareOf(counts, expected), 2)
		if p < atWorst/days {
			t.Errorf("day %d: %v, want about %.0f, p = %.6f", day, counts, expected, p)
		}
		unlikely += oneIf(p < 0.05)
		blamedOnMorning += oneIf(chiSquareP(chiSquare(before, counts, messages), 2) < atWorst)
		blamedOnEvening += oneIf(counts[1] > 0) // B's share is 0 then
	}
	// Of 200 correct days 10 are expected; more than 22 have a probability of one in ten thousand.
	if unlikely > 22 {
		t.Errorf("%d of %d days have p below 5 %%", unlikely, days)
	}
	if blamedOnMorning != days || blamedOnEvening != days {
		t.Errorf("one set of weights fits a day with two: %d and %d of %d days fail", blamedOnMorning,
			blamedOnEvening, days)
	}
}

// arrival returns when the i-th of n messages arrives: two thirds between 08:00 and 20:00, the
// others before and after.
func arrival(i, n int) time.Duration {
	part := float64(i) / float64(n)
	hours := 0.0
	switch {
	case part < 1.0/6:
		hours = part * 6 * 8
	case part < 5.0/6:
		hours = 8 + (part-1.0/6)*1.5*12
	default:
		hours = 20 + (part-5.0/6)*6*4
	}
	return time.Duration(hours * float64(time.Hour))
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

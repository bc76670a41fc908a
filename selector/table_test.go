package selector_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

// entries returns entries a, b, c, ... with these weights.
func entries(weights ...string) []selector.Entry {
	out := make([]selector.Entry, len(weights))
	for i, w := range weights {
		out[i] = selector.Entry{Name: fmt.Sprintf("c%d", i), Weight: selector.MustWeight(w)}
	}
	return out
}

func mustTable(t testing.TB, weights ...string) *selector.Table {
	t.Helper()
	table, err := selector.NewTable(entries(weights...))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestIntervalsAreThoseOfThePaper(t *testing.T) {
	t.Parallel()
	type span struct{ Low, High uint64 }
	for _, tc := range []struct {
		weights []string
		size    uint64
		want    []span
	}{
		{[]string{"25", "15", "60"}, 100, []span{{0, 24}, {25, 39}, {40, 99}}},
		{[]string{"5", "25", "70"}, 100, []span{{0, 4}, {5, 29}, {30, 99}}},
		{[]string{"30", "10", "60"}, 100, []span{{0, 29}, {30, 39}, {40, 99}}},
		{[]string{"1", "1", "1"}, 3, []span{{0, 0}, {1, 1}, {2, 2}}},
		{
			[]string{"34.5", "1.3", "58.7", "5.5"},
			1000,
			[]span{{0, 344}, {345, 357}, {358, 944}, {945, 999}},
		},
		{[]string{"0.000000001", "1"}, 1_000_000_001, []span{{0, 0}, {1, 1_000_000_000}}},
		{[]string{"2.50", "2.5"}, 50, []span{{0, 24}, {25, 49}}},
		{[]string{"7"}, 7, []span{{0, 6}}},
	} {
		table := mustTable(t, tc.weights...)
		got := make([]span, 0, len(tc.want))
		for _, iv := range table.Intervals() {
			got = append(got, span{iv.Low, iv.High})
		}
		if table.Size() != tc.size || !cmp.Equal(got, tc.want) {
			t.Errorf("weights %v: size %d %v, want %d %v", tc.weights, table.Size(), got, tc.size, tc.want)
		}
	}
}

func TestWeightZeroGetsNoInterval(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "0", "1", "0", "3", "0.0")
	for i, empty := range []bool{true, false, true, false, true} {
		if got := table.Intervals()[i].Empty; got != empty {
			t.Errorf("entry %d: empty %v, want %v", i, got, empty)
		}
	}
	for draw := range table.Size() {
		if i := table.Pick(draw); i != 1 && i != 3 {
			t.Errorf("draw %d picked entry %d, which has weight 0", draw, i)
		}
	}
}

func TestNewTableRefusesWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	big := fmt.Sprint(1 << 40)
	for name, tc := range map[string]struct {
		entries []selector.Entry
		want    string
	}{
		"no entries":  {nil, "no channel has a weight"},
		"all zero":    {entries("0", "0"), "all weights are 0"},
		"named twice": {append(entries("1"), entries("1")...), "named twice"},
		"no name":     {[]selector.Entry{{Weight: selector.MustWeight("1")}}, "has no name"},
		"sum too big": {entries(big, "1"), "2^40"},
		"scaled over": {entries("2000", "0.000000001"), "2^40"},
	} {
		if _, err := selector.NewTable(tc.entries); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	if _, err := selector.NewTable(entries(big)); err != nil {
		t.Errorf("a sum of exactly 2^40: %v", err)
	}
}

func TestParseWeightRefusesWhatIsNoPlainDecimal(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "-1", "-0", "+1", "1e3", "NaN", "Inf", ".5", "5.", "1,5", " 1", "0x10", "1.0000000001",
		"9999999999999999999999",
	} {
		if w, err := selector.ParseWeight(s); err == nil {
			t.Errorf("%q was read as %s", s, w)
		}
	}
	for s, want := range map[string]string{
		"25": "25", "34.50": "34.5", "0": "0", "0.000000001": "0.000000001", "007": "7",
		"1.000000000000": "1",
	} {
		if w, err := selector.ParseWeight(s); err != nil || w.String() != want {
			t.Errorf("%q was read as %s, %v; want %s", s, w, err, want)
		}
	}
}

// weightLists draws lists of weights with up to nine decimals, some but not all of them zero: of
// equal precision and a wide range, or of mixed precision and a narrow range.
var weightLists = rapid.OneOf(rapid.Custom(equallyPrecise), rapid.Custom(mixedPrecision))

func mixedPrecision(t *rapid.T) []selector.Entry {
	n := rapid.IntRange(1, 40).Draw(t, "n")
	out := make([]selector.Entry, n)
	for i := range out {
		text := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "whole"))
		if decimals := rapid.IntRange(0, 9).Draw(t, "decimals"); decimals > 0 {
			text += "." +
				rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), decimals, decimals, -1).Draw(t,
					"fraction")
		}
		out[i] = selector.Entry{Name: fmt.Sprint("c", i), Weight: selector.MustWeight(text)}
	}
	out[rapid.IntRange(0, n-1).Draw(t, "nonzero")].Weight = selector.MustWeight("0.5")
	return out
}

func equallyPrecise(t *rapid.T) []selector.Entry {
	decimals := rapid.IntRange(0, 9).Draw(t, "decimals")
	units := rapid.SliceOfN(rapid.Uint64Range(0, 1_000_000), 1, 40).Draw(t, "units")
	units[rapid.IntRange(0, len(units)-1).Draw(t, "nonzero")]++
	out := make([]selector.Entry, len(units))
	for i, n := range units {
		digits := fmt.Sprintf("%0*d", decimals+1, n)
		if decimals > 0 {
			digits = digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
		}
		out[i] = selector.Entry{Name: fmt.Sprint("c", i), Weight: selector.MustWeight(digits)}
	}
	return out
}

func TestIntervalsCoverEveryDrawOnceInExactProportion(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		list := weightLists.Draw(t, "weights")
		table, err := selector.NewTable(list)
		if err != nil {
			t.Fatal(err)
		}
		next, total := uint64(0), 0.0
		for i, iv := range table.Intervals() {
			if iv.Empty != list[i].Weight.IsZero() {
				t.Fatalf("entry %d of weight %s: empty %v", i, list[i].Weight, iv.Empty)
			}
			if iv.Empty {
				continue
			}
			if iv.Low != next || iv.High < iv.Low {
				t.Fatalf("entry %d has [%d,%d], the one before ended at %d", i, iv.Low, iv.High, next)
			}
			next = iv.High + 1
			total += table.Share(i)
		}
		if next != table.Size() || math.Abs(total-1) > 1e-9 {
			t.Fatalf("intervals end at %d of %d, shares sum to %v", next, table.Size(), total)
		}
	})
}

func TestGuideIndexPicksWhatPlainSearchPicks(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		table, err := selector.NewTable(weightLists.Draw(t, "weights"))
		if err != nil {
			t.Fatal(err)
		}
		plain := func(draw uint64) int {
			for i, iv := range table.Intervals() {
				if !iv.Empty && iv.Low <= draw && draw <= iv.High {
					return i
				}
			}
			return -1
		}
		draws := []uint64{0, table.Size() - 1}
		for _, iv := range table.Intervals() {
			if !iv.Empty {
				draws = append(draws, iv.Low, iv.High)
			}
		}
		for range 20 {
			draws = append(draws, rapid.Uint64Range(0, table.Size()-1).Draw(t, "draw"))
		}
		for _, draw := range draws {
			if got, want := table.Pick(draw), plain(draw); got != want {
				t.Fatalf("draw %d of %d: guide index picks %d, plain search %d", draw, table.Size(), got, want)
			}
		}
	})
}

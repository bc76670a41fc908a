package selector_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

// tally counts the first choices of many messages, and the choices that replace those that are not
// ready.
type tally struct {
	first     []int
	fallback  []int
	displaced int
}

// assignAll draws a first choice for each message. If that is not ready, the first ready entry of
// its redraw gets the message.
func assignAll(
	table *selector.Table, drawer *selector.Drawer, ready []bool, messages int, series uint64,
) tally {
	out := tally{first: make([]int, table.Len()), fallback: make([]int, table.Len())}
	for i := range messages {
		id := fmt.Sprint(series, "-", i)
		first := table.Pick(drawer.Draw(id, 1, table.Size()))
		out.first[first]++
		if ready[first] {
			continue
		}
		out.displaced++
		for _, c := range table.Redraw(drawer, id, first) {
			if ready[c] {
				out.fallback[c]++
				break
			}
		}
	}
	return out
}

// TestSharesHoldForAnyWeightsAndAnySubsetUnready: first choices come in the configured proportion.
// Messages whose first choice is not ready are divided by the weights of the ready entries.
func TestSharesHoldForAnyWeightsAndAnySubsetUnready(t *testing.T) {
	t.Parallel()
	messages := tier.Size(300, 1000)
	drawer := selector.NewDrawer(testKey)
	tier.Check(t, func(t *rapid.T) {
		table, err := selector.NewTable(weightLists.Draw(t, "weights"))
		if err != nil {
			t.Fatal(err)
		}
		ready := rapid.SliceOfN(rapid.Bool(), table.Len(), table.Len()).Draw(t, "ready")
		got := assignAll(table, drawer, ready, messages, rapid.Uint64().Draw(t, "series"))
		readyShare := 0.0
		for i := range ready {
			if ready[i] {
				readyShare += table.Share(i)
			}
		}
		for i := range ready {
			share := table.Share(i)
			within(t, "first choices", i, got.first[i], messages, share)
			if !ready[i] || readyShare == 0 {
				share = 0
			} else {
				share /= readyShare
			}
			within(t, "fallbacks", i, got.fallback[i], got.displaced, share)
		}
	})
}

func within(t *rapid.T, what string, entry, count, n int, share float64) {
	if share == 0 && count != 0 {
		t.Fatalf("%d %s on entry %d, which has no share", count, what, entry)
	}
	want := float64(n) * share
	if bound := binomialBound(n, min(share, 1)); math.Abs(float64(count)-want) > bound {
		t.Fatalf("%d %s of %d on entry %d, want %.1f +- %.1f", count, what, n, entry, want, bound)
	}
}

// TestRedrawOwnsExactlyItsWeightOfTheSecondDraws enumerates instead of sampling. Each remaining
// entry owns exactly as many of the possible second draws as its weight.
func TestRedrawOwnsExactlyItsWeightOfTheSecondDraws(t *testing.T) {
	t.Parallel()
	table := mustTable(t, "25", "15", "0", "60")
	drawer := selector.NewDrawer(testKey)
	owner := make(map[uint64]int) // the entry of each second draw
	for i := range 20_000 {
		id := fmt.Sprint(i)
		draw := auditorsDraw(id, 2, 75)
		c := table.Redraw(drawer, id, 0)[0]
		if c == 0 || c == 2 {
			t.Fatalf("entry %d was redrawn", c)
		}
		if before, seen := owner[draw]; seen && before != c {
			t.Fatalf("draw %d belongs to entries %d and %d", draw, before, c)
		}
		owner[draw] = c
	}
	counts := make([]int, 4)
	for _, c := range owner {
		counts[c]++
	}
	if counts[1] != 15 || counts[3] != 60 {
		t.Errorf("of the 75 second draws without A, B owns %d and C %d; want 15 and 60", counts[1],
			counts[3])
	}
}

// TestRedrawPassesChiSquareBehindEachFirstChoice tests the order after each first choice: the
// second place against the remaining weights.
func TestRedrawPassesChiSquareBehindEachFirstChoice(t *testing.T) {
	t.Parallel()
	table, drawer := mustTable(t, "25", "15", "60", "34.5"), selector.NewDrawer(testKey)
	n := tier.Size(10_000, 30_000)
	for first := range table.Len() {
		counts, expected := make([]int, table.Len()), make([]float64, table.Len())
		for i := range n {
			counts[table.Redraw(drawer, fmt.Sprint(first, "-", i), first)[0]]++
		}
		for c := range expected {
			if c != first {
				expected[c] = float64(n) * table.Share(c) / (1 - table.Share(first))
			}
		}
		if p := chiSquareP(chiSquareOf(counts, expected), table.Len()-2); p < 0.001 {
			t.Errorf("behind entry %d: %v, want about %.0f, p = %.5f", first, counts, expected, p)
		}
	}
}

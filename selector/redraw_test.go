package selector_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

// auditorsRedraw repeats a redraw step by step, as the documentation describes it.
func auditorsRedraw(table *selector.Table, id string, first int) []int {
	units := make([]uint64, table.Len())
	for i, iv := range table.Intervals() {
		if !iv.Empty && i != first {
			units[i] = iv.High - iv.Low + 1
		}
	}
	order := []int{}
	for number := uint32(2); ; number++ {
		size := uint64(0)
		for _, u := range units {
			size += u
		}
		if size == 0 {
			return order
		}
		draw, end := auditorsDraw(id, number, size), uint64(0)
		for i, u := range units {
			if end += u; draw < end {
				order, units[i] = append(order, i), 0
				break
			}
		}
	}
}

func TestRedrawIsTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	drawer := selector.NewDrawer(testKey)
	tier.Check(t, func(t *rapid.T) {
		table, err := selector.NewTable(weightLists.Draw(t, "weights"))
		if err != nil {
			t.Fatal(err)
		}
		id, first := rapid.String().Draw(t, "id"), rapid.IntRange(-1, table.Len()-1).Draw(t, "first")
		if got, want := table.Redraw(drawer, id, first),
			auditorsRedraw(table, id, first); !cmp.Equal(got, want) {
			t.Fatalf("order %v, by hand %v", got, want)
		}
	})
}

func TestRedrawListsEachWeightedEntryOnceWithoutTheFirst(t *testing.T) {
	t.Parallel()
	drawer := selector.NewDrawer(testKey)
	table := mustTable(t, "0", "25", "15", "0", "60")
	for i := range 200 {
		id := fmt.Sprint(i)
		for first, want := range map[int][]int{
			-1: {1, 2, 4}, 0: {1, 2, 4}, 1: {2, 4}, 2: {1, 4}, 4: {1, 2},
		} {
			got := table.Redraw(drawer, id, first)
			if slices.Sort(got); !cmp.Equal(got, want) {
				t.Fatalf("message %s, first %d: entries %v, want %v", id, first, got, want)
			}
		}
	}
	if got := mustTable(t, "7").Redraw(drawer, "m", 0); len(got) != 0 {
		t.Errorf("a single channel has no redraw, but %v is listed", got)
	}
	if got := mustTable(t, "7").Redraw(drawer, "m", -1); !cmp.Equal(got, []int{0}) {
		t.Errorf("one channel: %v", got)
	}
}

func TestRedrawOfAThousandChannelsListsAllButTheFirst(t *testing.T) {
	t.Parallel()
	table, drawer := thousand(t), selector.NewDrawer(testKey)
	for i := range 20 {
		order := table.Redraw(drawer, fmt.Sprint(i), i)
		if slices.Sort(order); len(slices.Compact(order)) != 999 || slices.Contains(order, i) {
			t.Fatalf("%d entries listed", len(order))
		}
	}
}

func BenchmarkRedraw(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table, drawer := mustTable(b, spread(n)...), selector.NewDrawer(testKey)
			b.ReportAllocs()
			for b.Loop() {
				table.Redraw(drawer, "order-7731-otp", 0)
			}
		})
	}
}

package selector_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

// spread returns n different weights without zeros.
func spread(n int) []string {
	weights := make([]string, n)
	for i := range weights {
		weights[i] = fmt.Sprint(1 + i*i%97)
	}
	return weights
}

func thousand(t testing.TB) *selector.Table { return mustTable(t, spread(1000)...) }

func TestAThousandChannelsAreDrawnInProportion(t *testing.T) {
	t.Parallel()
	table, drawer := thousand(t), selector.NewDrawer(testKey)
	counts := make([]int, table.Len())
	n := tier.Size(50_000, 300_000)
	for i := range n {
		counts[table.Pick(drawer.Draw(fmt.Sprint("m", i), 1, table.Size()))]++
	}
	if p := chiSquareP(chiSquare(table, counts, n), table.Len()-1); p < 0.001 {
		t.Errorf("p = %.5f", p)
	}
}

// TestHotPathDoesNotAllocate is not parallel: AllocsPerRun counts for the whole process.
func TestHotPathDoesNotAllocate(t *testing.T) {
	channels, list := labelled(20), make([]selector.Candidate, 20)
	message, selectors := twoSelectors()
	matcher, scores := selector.NewMatcher(channels), make([]float64, len(channels))
	drawer := selector.NewDrawer(testKey)
	for i := range list {
		list[i] = selector.Candidate{
			Index: i, Active: int64(i * 7 % 5), Capacity: 5, Score: float64(i * 3 % 7),
		}
	}
	for _, n := range []int{3, 10, 20, 100, 1000} {
		table := mustTable(t, spread(n)...)
		noAllocs(t, fmt.Sprintf("Pick of %d", n), func() {
			table.Pick(drawer.Draw("order-7731-otp", 1, table.Size()))
		})
	}
	noAllocs(t, "Match", func() { selector.Match(message, selectors, channels[0]) })
	noAllocs(t, "Matcher.Scores", func() { matcher.Scores(message, selectors, scores) })
	noAllocs(t, "Unexpired", func() { selector.Unexpired(selectors, time.Hour) })
	noAllocs(t, "ByLoadRatio", func() { selector.ByLoadRatio(list) })
	noAllocs(t, "ByScore", func() { selector.ByScore(list, false); selector.ByScore(list, true) })
	many := make([]selector.Candidate, 200)
	for i := range many {
		many[i] = selector.Candidate{
			Index: i, Active: int64(i * 7 % 5), Capacity: 5, Score: float64(i * 3 % 7),
		}
	}
	noAllocs(t, "ByLoadRatio of many", func() { selector.ByLoadRatio(many) })
	noAllocs(t, "ByScore of many", func() {
		selector.ByScore(many, false)
		selector.ByScore(many, true)
	})
	noAllocs(t, "ByTurn", func() { selector.ByTurn(list, 7) })
}

func noAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s allocates %v times", what, n)
	}
}

// TestSwappingATableBlocksNobody replaces the table continuously while readers pick. A reader sees
// one table or the next, never a mixture: the entry it picks contains the draw in the table it
// used. Under the race detector this also shows that Pick writes nothing.
func TestSwappingATableBlocksNobody(t *testing.T) {
	t.Parallel()
	picks := tier.Size(10_000, 50_000)
	tables := []*selector.Table{
		mustTable(t, "25", "15", "60"), mustTable(t, "0", "50", "50"), thousand(t),
	}
	intervals := make(map[*selector.Table][]selector.Interval, len(tables))
	for _, table := range tables {
		intervals[table] = table.Intervals()
	}
	var current atomic.Pointer[selector.Table]
	current.Store(tables[0])
	stop, swapper := make(chan struct{}), sync.WaitGroup{}
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				current.Store(tables[i%len(tables)])
			}
		}
	})
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			drawer := selector.NewDrawer(testKey)
			for i := range picks {
				table := current.Load()
				draw := drawer.Draw(fmt.Sprint(r), i, table.Size())
				if iv := intervals[table][table.Pick(draw)]; iv.Empty || draw < iv.Low || draw > iv.High {
					t.Errorf("draw %d picked [%d,%d]", draw, iv.Low, iv.High)
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	swapper.Wait()
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{3, 10, 20, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkPick(b, mustTable(b, spread(n)...)) })
	}
}

// BenchmarkPickLopsided has one channel that outweighs 999 others by a million, so that those share
// one cell of the guide index.
func BenchmarkPickLopsided(b *testing.B) {
	weights := spread(1000)
	weights[999] = "50000000000"
	benchmarkPick(b, mustTable(b, weights...))
}

// benchmarkPick steps through the draws by the golden ratio, which covers [0,Size) evenly.
func benchmarkPick(b *testing.B, table *selector.Table) {
	b.ReportAllocs()
	draw, step, sum := uint64(0), uint64(float64(table.Size())*math.Phi)-table.Size(), 0
	for b.Loop() {
		if draw += step; draw >= table.Size() {
			draw -= table.Size()
		}
		sum += table.Pick(draw)
	}
	_ = sum
}

// BenchmarkPickParallel picks on every core from a table behind a pointer: alone, and while that
// table is rebuilt and swapped up to a thousand times a second.
func BenchmarkPickParallel(b *testing.B) {
	b.Run("alone", func(b *testing.B) { benchmarkPickParallel(b, 0) })
	b.Run("swapped", func(b *testing.B) { benchmarkPickParallel(b, time.Millisecond) })
}

func benchmarkPickParallel(b *testing.B, every time.Duration) {
	var current atomic.Pointer[selector.Table]
	current.Store(mustTable(b, spread(100)...))
	stop, swapper := make(chan struct{}), sync.WaitGroup{}
	if every > 0 {
		swapper.Go(func() { swapUntil(b, stop, every, &current) })
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		draw := uint64(1)
		for pb.Next() {
			table := current.Load()
			draw = (draw + 1_234_567) % table.Size()
			table.Pick(draw)
		}
	})
	close(stop)
	swapper.Wait()
}

func swapUntil(
	b *testing.B, stop <-chan struct{}, every time.Duration, current *atomic.Pointer[selector.Table],
) {
	list, ticker := entries(spread(100)...), time.NewTicker(every)
	defer ticker.Stop()
	swaps := 0
	for {
		select {
		case <-stop:
			b.ReportMetric(float64(swaps)/b.Elapsed().Seconds(), "swaps/s")
			return
		case <-ticker.C:
			table, err := selector.NewTable(list)
			if err != nil {
				b.Error(err)
				return
			}
			current.Store(table)
			swaps++
		}
	}
}

func BenchmarkNewTable1000(b *testing.B) {
	b.ReportAllocs()
	list := entries(spread(1000)...)
	for b.Loop() {
		if _, err := selector.NewTable(list); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRank20(b *testing.B) {
	base := make([]selector.Candidate, 20)
	for i := range base {
		base[i] = selector.Candidate{
			Index: i, Active: int64(i * 7 % 20), Capacity: 100, Score: float64(i * 7 % 20),
			LastAssigned: time.Unix(int64(i), 0),
		}
	}
	list := make([]selector.Candidate, 20)
	for name, rank := range map[string]func(){
		"load_ratio":  func() { selector.ByLoadRatio(list) },
		"score":       func() { selector.ByScore(list, false) },
		"round_robin": func() { selector.ByTurn(list, 7) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copy(list, base)
				rank()
			}
		})
	}
}

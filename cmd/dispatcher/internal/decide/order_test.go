package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// drawnQueue draws tasks of some lanes and tenants, new ones before due ones, as in a claim.
func drawnQueue(t *rapid.T, w *fixture, n int) (tasks []Task, intakes []ledger.Intake) {
	fresh := rapid.IntRange(0, n).Draw(t, "fresh")
	seqs := rapid.Permutation(places(n)).Draw(t, "seqs")
	for i := range n {
		one := *w.task("a")
		one.Row.ID, one.Row.Seq = fmt.Sprint("m-", i), int64(seqs[i])
		one.Row.Tenant = rapid.SampledFrom([]string{"", "shop", "bank", "news"}).Draw(t, "tenant")
		one.Lane.Order = rapid.IntRange(0, 2).Draw(t, "lane")
		seconds := rapid.SampledFrom([]int{1, 30, 59, 60, 600}).Draw(t, "seconds left")
		one.Row.ExpiresAt = noon.Add(time.Duration(seconds) * time.Second)
		intake := ledger.Due
		if i < fresh {
			intake = rapid.SampledFrom([]ledger.Intake{
				ledger.Fresh, ledger.Fresh, ledger.Duplicate,
				ledger.Conflict,
			}).Draw(t, "intake")
		}
		tasks, intakes = append(tasks, one), append(intakes, intake)
	}
	return tasks, intakes
}

// TestOrderIsByLaneThenDeadlineThenTenant checks all neighbours in the order, and that it is
// complete.
func TestOrderIsByLaneThenDeadlineThenTenant(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	tier.Check(t, func(t *rapid.T) {
		tasks, intakes := drawnQueue(t, w, rapid.IntRange(0, 40).Draw(t, "tasks"))
		got := ordered(tasks, intakes, noon)
		var want []int
		for i := range tasks {
			if intakes[i] == ledger.Due || intakes[i] == ledger.Fresh {
				want = append(want, i)
			}
		}
		if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) {
			t.Fatalf("%v take turns, want %v", sorted, want)
		}
		taken := map[tenantOf]int{} // of those that are not urgent
		for at, i := range got {
			one := &tasks[i]
			left := one.Row.ExpiresAt.Sub(noon)
			if at > 0 {
				before := &tasks[got[at-1]]
				leftBefore := before.Row.ExpiresAt.Sub(noon)
				switch {
				case before.Lane.Order > one.Lane.Order:
					t.Fatalf("lane %d comes before lane %d", before.Lane.Order, one.Lane.Order)
				case before.Lane.Order < one.Lane.Order:
				case left < urgent && leftBefore > left:
					t.Fatalf("the message with %s left comes before that with %s left", leftBefore, left)
				}
			}
			if left < urgent {
				continue
			}
			// No tenant of the lane that still has messages has had two turns fewer.
			mine := tenantOf{one.Lane.Order, one.Row.Tenant}
			for _, later := range got[at+1:] {
				other := tenantOf{tasks[later].Lane.Order, tasks[later].Row.Tenant}
				if other.lane == mine.lane && tasks[later].Row.ExpiresAt.Sub(noon) >= urgent &&
					taken[mine] > taken[other] {
					t.Fatalf("tenant %q has turn %d before turn %d of %q", mine.tenant,
						taken[mine]+1, taken[other]+1, other.tenant)
				}
			}
			taken[mine]++
		}
		checkAge(t, tasks, intakes, got)
	})
}

// checkAge: within a lane and tenant, due rows come before new ones, and older before younger.
func checkAge(t *rapid.T, tasks []Task, intakes []ledger.Intake, order []int) {
	last := map[tenantOf]int{}
	for _, i := range order {
		if tasks[i].Row.ExpiresAt.Sub(noon) < urgent {
			continue
		}
		queue := tenantOf{tasks[i].Lane.Order, tasks[i].Row.Tenant}
		if before, ok := last[queue]; ok {
			switch {
			case intakes[before] == ledger.Fresh && intakes[i] == ledger.Due:
				t.Fatalf("new task %d comes before due task %d", before, i)
			case intakes[i] == ledger.Due && tasks[before].Row.Seq > tasks[i].Row.Seq,
				intakes[before] == intakes[i] && intakes[i] == ledger.Fresh && before > i:
				t.Fatalf("task %d comes before the older %d", before, i)
			}
		}
		last[queue] = i
	}
}

// TestTenantsShareShortSlotsWithinOne: the campaign of one tenant gets at most one slot of a window
// more than the few messages of another.
func TestTenantsShareShortSlotsWithinOne(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		w := newFixture(t)
		slots := rapid.Int64Range(0, 40).Draw(rt, "slots")
		for c := range w.seen.Channels {
			w.seen.Channels[c].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Minute},
			}}
		}
		w.seen.Channels[0].Gate.Counters[0].Limit.Max = slots
		demand := map[string]int{"shop": 200, "bank": 14, "news": 14, "": 14}
		var tasks []Task
		for _, tenant := range []string{"shop", "", "bank", "news"} {
			for range demand[tenant] {
				one := *w.task("a")
				one.Row.Tenant = tenant
				tasks = append(tasks, one)
			}
		}
		a, got := w.assigner(), map[string]int{}
		for _, i := range ordered(tasks, make([]ledger.Intake, len(tasks)),
			noon.Add(time.Duration(rapid.IntRange(0, 1000).Draw(rt, "at")))) {
			if a.decide(&tasks[i]).State == ledger.Sending {
				got[tasks[i].Row.Tenant]++
			}
		}
		least, most, all := 1<<30, 0, 0
		for tenant := range demand {
			least, most, all = min(least, got[tenant]), max(most, got[tenant]), all+got[tenant]
		}
		if most-least > 1 || all != int(slots) {
			rt.Fatalf("of %d slots %v", slots, got)
		}
	})
}

func TestNoTenantGoesFirstInEveryClaim(t *testing.T) {
	t.Parallel()
	w, first := newFixture(t), map[string]int{}
	tasks := make([]Task, 4)
	for i, tenant := range []string{"shop", "bank", "news", ""} {
		tasks[i] = *w.task("a")
		tasks[i].Row.Tenant = tenant
	}
	for claim := range 4000 {
		at := ordered(tasks, make([]ledger.Intake, 4),
			noon.Add(time.Duration(claim)*time.Millisecond))
		first[tasks[at[0]].Row.Tenant]++
	}
	for tenant, n := range first { // 1000 each, within five standard deviations of 27
		if n < 860 || n > 1140 {
			t.Errorf("tenant %q went first in %d of 4000 claims", tenant, n)
		}
	}
}

func TestDueRowsArePutBeforeNewOnesOfTheirTenant(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	tasks := make([]Task, 4)
	for i := range tasks {
		tasks[i] = *w.task("a")
		tasks[i].Row.Seq = int64(10 - i)
	}
	intakes := []ledger.Intake{ledger.Fresh, ledger.Fresh, ledger.Due, ledger.Due}
	if got := ordered(tasks, intakes, noon); !cmp.Equal(got, []int{3, 2, 0, 1}) {
		t.Errorf("order %v", got)
	}
}

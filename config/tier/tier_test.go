package tier_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

// TestTheFastTierDrawsTheSameInEachRun and each tier gets its own sizes.
func TestTheFastTierDrawsTheSameInEachRun(t *testing.T) {
	draws := func() (all []uint64) {
		tier.Check(t, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "n")) })
		return all
	}
	if tier.Long() {
		t.Log("the long tier draws fresh seeds")
	} else if first, second := draws(), draws(); len(first) == 0 || first[0] != second[0] ||
		first[0] != firstDraw {
		t.Errorf("%d, then %d; want %d", first[0], second[0], uint64(firstDraw))
	}
	t.Setenv("LONG_TESTS", "")
	if got := tier.Size(1, 2); got != 1 {
		t.Errorf("%d in the fast tier", got)
	}
	if got := tier.Sample([]int{1, 2, 3, 4, 5}, 2); !slices.Equal(got, []int{1, 3, 5}) {
		t.Errorf("%d in the fast tier", got)
	}
	t.Setenv("LONG_TESTS", "1")
	if got := tier.Size(1, 2); got != 2 {
		t.Errorf("%d in the long tier", got)
	}
	if got := tier.Sample([]int{1, 2, 3}, 2); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("%d in the long tier", got)
	}
	tier.LongOnly(t)
}

// firstDraw is the first number that the seed of the fast tier draws.
const firstDraw = 15217787052609559

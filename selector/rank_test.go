package selector_test

import (
	"math"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

func order(candidates []selector.Candidate) []int {
	selector.ByLoadRatio(candidates)
	return indices(candidates)
}

func indices(candidates []selector.Candidate) []int {
	out := make([]int, len(candidates))
	for i, c := range candidates {
		out[i] = c.Index
	}
	return out
}

// TestLoadRatioExampleOfTheSource is the longest-idle example of the distribution modes
// text: workers A to D are matched in the order D, C, A, B.
func TestLoadRatioExampleOfTheSource(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	got := order([]selector.Candidate{
		{Index: 0, Active: 3, Capacity: 5, LastAssigned: ago(5)},
		{Index: 1, Active: 3, Capacity: 4, LastAssigned: ago(3)},
		{Index: 2, Active: 3, Capacity: 5, LastAssigned: ago(7)},
		{Index: 3, Active: 0, Capacity: 4, LastAssigned: ago(2)},
	})
	if want := []int{3, 2, 0, 1}; !cmp.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestLoadRatioTies(t *testing.T) {
	t.Parallel()
	when := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		in   []selector.Candidate
		want []int
	}{
		"never assigned is oldest": {
			[]selector.Candidate{{Index: 0, Capacity: 1, LastAssigned: when}, {Index: 1, Capacity: 1}},
			[]int{1, 0},
		},
		"configured order is last": {
			[]selector.Candidate{{Index: 2, Capacity: 7}, {Index: 1, Capacity: 5}, {Index: 0, Capacity: 9}},
			[]int{0, 1, 2},
		},
		"fractions, not floats": {[]selector.Candidate{
			{Index: 0, Active: math.MaxInt64 - 1, Capacity: math.MaxInt64, LastAssigned: when},
			{Index: 1, Active: math.MaxInt64 - 2, Capacity: math.MaxInt64 - 1, LastAssigned: when},
		}, []int{1, 0}},
		"equal fractions of different size": {[]selector.Candidate{
			{Index: 0, Active: 2, Capacity: 4, LastAssigned: when},
			{Index: 1, Active: 1, Capacity: 2, LastAssigned: when.Add(-1)},
		}, []int{1, 0}},
	} {
		if got := order(tc.in); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: order %v, want %v", name, got, tc.want)
		}
	}
}

func TestLoadRatioOrderDoesNotDependOnTheOrderGiven(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "n")
		list := make([]selector.Candidate, n)
		for i := range list {
			list[i] = selector.Candidate{
				Index:        i,
				Active:       rapid.Int64Range(0, 4).Draw(t, "active"),
				Capacity:     rapid.Int64Range(1, 4).Draw(t, "capacity"),
				LastAssigned: time.Unix(rapid.Int64Range(0, 2).Draw(t, "last"), 0),
			}
		}
		shuffled := rapid.Permutation(list).Draw(t, "shuffled")
		if a, b := order(list), order(shuffled); !cmp.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestScoreOrderAndTies(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	list := []selector.Candidate{
		{Index: 0, Score: 0.5, LastAssigned: late},
		{Index: 1, Score: 0.9, LastAssigned: late},
		{Index: 2, Score: 0.5, LastAssigned: early},
		{Index: 3, Score: -1, LastAssigned: early},
		{Index: 4, Score: 0.5},
		{Index: 5, Score: 0.5, LastAssigned: early},
	}
	tier.Check(t, func(t *rapid.T) {
		shuffled := rapid.Permutation(list).Draw(t, "list")
		selector.ByScore(shuffled, false)
		if got, want := indices(shuffled), []int{1, 4, 2, 5, 0, 3}; !cmp.Equal(got, want) {
			t.Fatalf("descending %v, want %v", got, want)
		}
		selector.ByScore(shuffled, true)
		if got, want := indices(shuffled), []int{3, 4, 2, 5, 0, 1}; !cmp.Equal(got, want) {
			t.Fatalf("ascending %v, want %v", got, want)
		}
	})
}

// TestScoreOrderIsThatOfAPlainSort compares both orders by score with a sort written from the
// definition, for short and for long lists.
func TestScoreOrderIsThatOfAPlainSort(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		list := make([]selector.Candidate, rapid.IntRange(1, 80).Draw(t, "n"))
		for i := range list {
			list[i] = selector.Candidate{
				Index:        i,
				Score:        float64(rapid.IntRange(-3, 3).Draw(t, "score")),
				LastAssigned: time.Unix(rapid.Int64Range(0, 3).Draw(t, "last"), 0),
			}
		}
		ascending := rapid.Bool().Draw(t, "ascending")
		want := slices.Clone(list)
		sort.SliceStable(want, func(i, j int) bool {
			return want[i].LastAssigned.Before(want[j].LastAssigned)
		})
		sort.SliceStable(want, func(i, j int) bool {
			if ascending {
				return want[i].Score < want[j].Score
			}
			return want[i].Score > want[j].Score
		})
		got := rapid.Permutation(list).Draw(t, "list")
		selector.ByScore(got, ascending)
		if !cmp.Equal(got, want) {
			t.Fatalf("%v, want %v", indices(got), indices(want))
		}
	})
}

func TestTurnGoesRoundFromTheCursor(t *testing.T) {
	t.Parallel()
	at := func(places ...int) []selector.Candidate {
		out := make([]selector.Candidate, len(places))
		for i, place := range places {
			out[i].Index = place
		}
		return out
	}
	for _, tc := range []struct {
		in    []selector.Candidate
		after int
		want  []int
	}{
		{at(0, 1, 2, 3), -1, []int{0, 1, 2, 3}},
		{at(0, 1, 2, 3), 0, []int{1, 2, 3, 0}},
		{at(0, 1, 2, 3), 1, []int{2, 3, 0, 1}},
		{at(0, 1, 2, 3), 3, []int{0, 1, 2, 3}},
		{at(0, 1, 2, 3), 9, []int{0, 1, 2, 3}},
		{at(1, 4, 6), 1, []int{4, 6, 1}},
		{at(1, 4, 6), 3, []int{4, 6, 1}},
		{at(1, 4, 6), 5, []int{6, 1, 4}},
		{at(7), 7, []int{7}},
		{at(7), 6, []int{7}},
		{at(), 0, []int{}},
	} {
		before := indices(tc.in)
		selector.ByTurn(tc.in, tc.after)
		if got := indices(tc.in); !cmp.Equal(got, tc.want) {
			t.Errorf("%v after %d: %v, want %v", before, tc.after, got, tc.want)
		}
	}
}

// TestEveryoneGetsATurn takes the first of the order and moves the cursor to it, repeatedly. If all
// n are ready, each gets every n-th turn, in configured order.
func TestEveryoneGetsATurn(t *testing.T) {
	t.Parallel()
	cursor, list := -1, make([]selector.Candidate, 7)
	for turn := range 70 {
		for i := range list {
			list[i].Index = i
		}
		selector.ByTurn(list, cursor)
		if cursor = list[0].Index; cursor != turn%7 {
			t.Fatalf("turn %d went to %d", turn, cursor)
		}
	}
}

func TestSelectorSemantics(t *testing.T) {
	t.Parallel()
	labels := map[string]selector.Value{
		"department": selector.TextValue("billing"), "quality": selector.NumberValue(9),
	}
	for _, tc := range []struct {
		key      string
		operator selector.Operator
		value    selector.Value
		want     bool
	}{
		{"department", selector.Equal, selector.TextValue("billing"), true},
		{"department", selector.Equal, selector.TextValue("sales"), false},
		{"missing", selector.Equal, selector.TextValue(""), false},
		{"missing", selector.NotEqual, selector.TextValue("vip"), true},
		{"department", selector.NotEqual, selector.TextValue("billing"), false},
		{"quality", selector.GreaterThan, selector.NumberValue(9), false},
		{"quality", selector.GreaterThanEqual, selector.NumberValue(9), true},
		{"quality", selector.LessThan, selector.NumberValue(9), false},
		{"quality", selector.LessThanEqual, selector.NumberValue(9), true},
		{"quality", selector.GreaterThan, selector.TextValue("1"), false},
		{"department", selector.GreaterThan, selector.NumberValue(1), false},
		{"missing", selector.LessThan, selector.NumberValue(1), false},
	} {
		s := selector.Selector{Key: tc.key, Operator: tc.operator, Value: tc.value}
		if got := s.Satisfied(labels); got != tc.want {
			t.Errorf("%s %s %s: %v, want %v", tc.key, tc.operator, tc.value, got, tc.want)
		}
	}
}

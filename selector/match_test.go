package selector_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/selector"
)

type labels = map[string]selector.Value

func text(s string) selector.Value    { return selector.TextValue(s) }
func number(f float64) selector.Value { return selector.NumberValue(f) }

func sel(key string, operator selector.Operator, value selector.Value) selector.Selector {
	return selector.Selector{Key: key, Operator: operator, Value: value}
}

// bestFirst scores the channels and orders them. It returns the scores in the order of the
// channels, and the channels in the order of their scores. Channels later in the list have been
// available longer.
func bestFirst(message labels, selectors []selector.Selector,
	channels []labels,
) (scores []float64, order []int) {
	list := make([]selector.Candidate, len(channels))
	for i, channel := range channels {
		score := selector.Match(message, selectors, channel)
		scores = append(scores, score)
		list[i] = selector.Candidate{
			Index: i, Capacity: 1, Score: score, LastAssigned: time.Unix(int64(1000-i), 0),
		}
	}
	selector.ByScore(list, false)
	return scores, indices(list)
}

// TestMatchExamplesOfTheSource has jobs 1 to 3 of the distribution modes text with its workers A to
// I.
func TestMatchExamplesOfTheSource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels    labels
		selectors []selector.Selector
		channels  []labels
		scores    []float64 // to three places, as the text prints them
		order     []int
	}{
		"job 1: labels": {
			labels: labels{"language": text("english"), "department": text("sales")},
			channels: []labels{
				{"language": text("english"), "department": text("sales")},
				{"language": text("english")},
				{"language": text("english"), "department": text("support")},
			},
			scores: []float64{1, 0.5, 0.5},
			order:  []int{0, 2, 1},
		},
		"job 2: equal and notEqual": {
			selectors: []selector.Selector{
				sel("department", selector.Equal, text("billing")),
				sel("segment", selector.NotEqual, text("vip")),
			},
			channels: []labels{
				{"department": text("billing"), "segment": text("vip")},
				{"department": text("billing")},
				{"department": text("sales"), "segment": text("new")},
			},
			scores: []float64{0.5, 1, 0.5},
			order:  []int{1, 2, 0},
		},
		"job 3: magnitudes": {
			selectors: []selector.Selector{
				sel("language", selector.Equal, text("french")),
				sel("sales", selector.GreaterThanEqual, number(10)),
				sel("cost", selector.LessThanEqual, number(10)),
			},
			channels: []labels{
				{"language": text("french"), "sales": number(10), "cost": number(10)},
				{"language": text("french"), "sales": number(15), "cost": number(10)},
				{"language": text("french"), "sales": number(10), "cost": number(9)},
			},
			scores: []float64{0.667, 0.707, 0.675},
			order:  []int{1, 2, 0},
		},
	} {
		scores, order := bestFirst(tc.labels, tc.selectors, tc.channels)
		for i, got := range scores {
			if math.Round(got*1000)/1000 != tc.scores[i] {
				t.Errorf("%s: worker %d scores %.4f, want %.3f", name, i, got, tc.scores[i])
			}
		}
		if !cmp.Equal(order, tc.order) {
			t.Errorf("%s: order %v, want %v", name, order, tc.order)
		}
	}
}

func TestMatchFollowsEveryPinnedRule(t *testing.T) {
	t.Parallel()
	sigma := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	channel := labels{
		"lang": text("en"), "quality": number(8), "debt": number(-4), "zero": number(0),
		"five": text("5"),
	}
	for name, tc := range map[string]struct {
		labels    labels
		selectors []selector.Selector
		want      float64
	}{
		"no labels and no selectors": {nil, nil, 1},
		"one label of three": {
			labels{"lang": text("en"), "x": text(""), "quality": number(9)}, nil, 1.0 / 3,
		},
		"an empty text is not a missing label": {labels{"none": text("")}, nil, 0},
		"a text is not a number":               {labels{"five": number(5)}, nil, 0},
		"a number is not a text":               {labels{"quality": text("8")}, nil, 0},
		"labels and selectors together": {
			labels{"lang": text("en"), "x": text("")},
			[]selector.Selector{
				sel("lang", selector.Equal, text("fr")), sel("quality", selector.GreaterThan, number(8)),
			},
			(1 + 0.5) / 4,
		},
		"equal with a text for a number": {
			nil, []selector.Selector{sel("quality", selector.Equal, text("8"))}, 0,
		},
		"notEqual with a text for a number": {
			nil, []selector.Selector{sel("quality", selector.NotEqual, text("8"))}, 1,
		},
		"equal on a missing label": {
			nil, []selector.Selector{sel("none", selector.Equal, text(""))}, 0,
		},
		"notEqual on a missing label": {
			nil, []selector.Selector{sel("none", selector.NotEqual, text("vip"))}, 1,
		},
		"greaterThan": {
			nil, []selector.Selector{sel("quality", selector.GreaterThan, number(5))}, sigma(3.0 / 5),
		},
		"greaterThan scores below as well": {
			nil, []selector.Selector{sel("quality", selector.GreaterThan, number(16))}, sigma(-0.5),
		},
		"greaterThanEqual scores like it": {
			nil, []selector.Selector{sel("quality", selector.GreaterThanEqual, number(5))}, sigma(3.0 / 5),
		},
		"lessThan": {
			nil, []selector.Selector{sel("quality", selector.LessThan, number(10))}, sigma(2.0 / 10),
		},
		"lessThanEqual scores like it": {
			nil, []selector.Selector{sel("quality", selector.LessThanEqual, number(10))}, sigma(2.0 / 10),
		},
		"a missing label under a magnitude": {
			nil, []selector.Selector{sel("none", selector.LessThan, number(10))}, 0,
		},
		"a text label under a magnitude": {
			nil, []selector.Selector{sel("five", selector.LessThan, number(10))}, 0,
		},
		"a text selector under a magnitude": {
			nil, []selector.Selector{sel("quality", selector.GreaterThan, text("5"))}, 0,
		},
		"selector 0, label above": {
			nil, []selector.Selector{sel("quality", selector.GreaterThan, number(0))}, sigma(6),
		},
		"selector 0, label below": {
			nil, []selector.Selector{sel("debt", selector.GreaterThanEqual, number(0))}, sigma(-6),
		},
		"selector 0, label equal": {
			nil, []selector.Selector{sel("zero", selector.GreaterThanEqual, number(0))}, 0.5,
		},
		"selector 0, less, label above": {
			nil, []selector.Selector{sel("quality", selector.LessThan, number(0))}, sigma(-6),
		},
		"selector 0, less, label below": {
			nil, []selector.Selector{sel("debt", selector.LessThan, number(0))}, sigma(6),
		},
		"selector -0 is 0": {
			nil,
			[]selector.Selector{sel("quality", selector.GreaterThan, number(math.Copysign(0, -1)))},
			sigma(6),
		},
		"negative selector, greater": {
			nil, []selector.Selector{sel("debt", selector.GreaterThan, number(-8))}, sigma(4.0 / 8),
		},
		"negative selector, less": {
			nil, []selector.Selector{sel("debt", selector.LessThan, number(-8))}, sigma(-4.0 / 8),
		},
		"the same selector twice counts twice": {
			nil,
			[]selector.Selector{
				sel("quality", selector.Equal, number(8)), sel("quality", selector.Equal, number(8)),
				sel("lang", selector.Equal, text("fr")),
			},
			2.0 / 3,
		},
		"selectors of one key may contradict": {
			nil,
			[]selector.Selector{
				sel("lang", selector.Equal, text("en")), sel("lang", selector.Equal, text("fr")),
				sel("lang", selector.NotEqual, text("en")),
			},
			1.0 / 3,
		},
		"a label and a selector of one key": {
			labels{"lang": text("en")},
			[]selector.Selector{sel("lang", selector.NotEqual, text("en"))},
			0.5,
		},
		"a label far above": {
			nil, []selector.Selector{sel("quality", selector.GreaterThan, number(1e-300))}, 1,
		},
		"a label far below": {
			nil, []selector.Selector{sel("quality", selector.LessThan, number(1e-300))}, 0,
		},
		"a difference beyond the largest number": {
			labels{"x": text("")},
			[]selector.Selector{sel("quality", selector.GreaterThan, number(-math.MaxFloat64))},
			sigma(1) / 2,
		},
		"an operator that does not exist": {
			nil, []selector.Selector{sel("quality", "like", number(8))}, 0,
		},
	} {
		if got := selector.Match(tc.labels, tc.selectors, channel); math.Abs(got-tc.want) > 1e-13 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := selector.Match(labels{"lang": text("en")}, nil, nil); got != 0 {
		t.Errorf("a channel without labels scores %v", got)
	}
}

// values draws texts and numbers that are often equal, and some that should not occur.
var values = rapid.Custom(func(t *rapid.T) selector.Value {
	if rapid.Bool().Draw(t, "text") {
		return text(rapid.SampledFrom([]string{"", "a", "b", "5"}).Draw(t, "value"))
	}
	return number(rapid.OneOf(
		rapid.SampledFrom([]float64{
			0, math.Copysign(0, -1), 1, 5, -5, 1e300, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64,
			math.Inf(1), math.Inf(-1), math.NaN(),
		}),
		rapid.Float64(),
	).Draw(t, "number"))
})

var keys = rapid.SampledFrom([]string{"a", "b", "c", "d"})

var labelSets = rapid.MapOfN(keys, values, 0, 4)

var selectorLists = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) selector.Selector {
	return sel(keys.Draw(t, "key"), rapid.SampledFrom([]selector.Operator{
		selector.Equal, selector.NotEqual, selector.GreaterThan, selector.GreaterThanEqual,
		selector.LessThan, selector.LessThanEqual,
	}).Draw(t, "operator"), values.Draw(t, "value"))
}), 0, 6)

func TestMatchIsBetweenZeroAndOneInAnyOrderOfSelectors(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		message, selectors, channel := labelSets.Draw(t, "labels"), selectorLists.Draw(t, "selectors"),
			labelSets.Draw(t, "channel")
		got := selector.Match(message, selectors, channel)
		if !(got >= 0 && got <= 1) {
			t.Fatalf("score %v", got)
		}
		if again := selector.Match(message, rapid.Permutation(selectors).Draw(t, "permuted"),
			channel); again != got {
			t.Fatalf("%v, and in another order of the selectors %v", got, again)
		}
	})
}

// TestTermsSumTheSameInAnyOrder adds numbers for which the order of float additions matters. Two
// channels that exceed the same selectors by the same amounts, in opposite order, tie.
func TestTermsSumTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		measures := rapid.SliceOfN(rapid.Float64Range(0, 20), 3, 12).Draw(t, "measures")
		turned := rapid.Permutation(measures).Draw(t, "turned")
		var selectors []selector.Selector
		one, other := labels{}, labels{}
		for i := range measures {
			key := fmt.Sprint(i)
			selectors = append(selectors, sel(key, selector.GreaterThan, number(4)))
			one[key], other[key] = number(measures[i]), number(turned[i])
		}
		if a, b := selector.Match(nil, selectors, one), selector.Match(nil, selectors, other); a != b {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestABetterLabelNeverScoresLower(t *testing.T) {
	t.Parallel()
	finite := rapid.Float64Range(-1e6, 1e6)
	tier.Check(t, func(t *rapid.T) {
		bound, low, high := finite.Draw(t, "selector"), finite.Draw(t, "low"), finite.Draw(t, "high")
		low, high = min(low, high), max(low, high)
		up := []selector.Selector{sel("q", selector.GreaterThan, number(bound))}
		down := []selector.Selector{sel("q", selector.LessThanEqual, number(bound))}
		if selector.Match(nil, up, labels{"q": number(low)}) >
			selector.Match(nil, up, labels{"q": number(high)}) ||
			selector.Match(nil, down, labels{"q": number(low)}) <
				selector.Match(nil, down, labels{"q": number(high)}) {
			t.Fatalf("selector %v, labels %v and %v", bound, low, high)
		}
	})
}

func TestMatcherScoresWhatMatchScores(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		channels := rapid.SliceOfN(labelSets, 0, 8).Draw(t, "channels")
		matcher, got := selector.NewMatcher(channels), make([]float64, len(channels))
		for range 3 {
			message, selectors := labelSets.Draw(t, "labels"), selectorLists.Draw(t, "selectors")
			matcher.Scores(message, selectors, got)
			for i, channel := range channels {
				if want := selector.Match(message, selectors, channel); got[i] != want {
					t.Fatalf("channel %d: %v, Match gives %v", i, got[i], want)
				}
			}
		}
	})
}

func TestUnexpiredDropsWhatNoLongerCounts(t *testing.T) {
	t.Parallel()
	after := func(key string, d time.Duration) selector.Selector {
		return selector.Selector{Key: key, Operator: selector.Equal, ExpiresAfter: d}
	}
	all := []selector.Selector{
		after("ever", 0), after("30s", 30*time.Second), after("1m", time.Minute), after("ever2", 0),
		after("1ns", 1),
	}
	before := slices.Clone(all)
	for _, tc := range []struct {
		age  time.Duration
		want string
	}{
		{-time.Hour, "ever 30s 1m ever2 1ns"},
		{0, "ever 30s 1m ever2 1ns"},
		{1, "ever 30s 1m ever2"},
		{30*time.Second - 1, "ever 30s 1m ever2"},
		{30 * time.Second, "ever 1m ever2"},
		{time.Minute - 1, "ever 1m ever2"},
		{time.Minute, "ever ever2"},
		{math.MaxInt64, "ever ever2"},
	} {
		got := ""
		for i, s := range selector.Unexpired(all, tc.age) {
			if i > 0 {
				got += " "
			}
			got += s.Key
		}
		if got != tc.want {
			t.Errorf("after %v: %s, want %s", tc.age, got, tc.want)
		}
	}
	if !cmp.Equal(all, before) {
		t.Error("the given selectors were changed")
	}
	if got := selector.Unexpired(all, 0); &got[0] != &all[0] {
		t.Error("nothing had expired, and the slice was copied")
	}
	if got := selector.Unexpired(nil, time.Hour); got != nil {
		t.Error("an empty list of selectors did not stay empty")
	}
}

// labelled returns n channels with four labels each.
func labelled(n int) []labels {
	out := make([]labels, n)
	for i := range out {
		out[i] = labels{
			"language": text([]string{"en", "fr", "de"}[i%3]),
			"region":   text([]string{"eu", "us"}[i%2]),
			"quality":  number(float64(i%10 + 1)),
			"cost":     number(float64(i*7%13 + 1)),
		}
	}
	return out
}

// twoSelectors returns two labels and two selectors of a message.
func twoSelectors() (labels, []selector.Selector) {
	return labels{"language": text("en"), "region": text("us")}, []selector.Selector{
		sel("quality", selector.GreaterThanEqual, number(5)), sel("cost", selector.LessThan, number(6)),
	}
}

func BenchmarkMatch20(b *testing.B) {
	channels := labelled(20)
	message, selectors := twoSelectors()
	b.ReportAllocs()
	for b.Loop() {
		for _, channel := range channels {
			selector.Match(message, selectors, channel)
		}
	}
}

func BenchmarkMatcher(b *testing.B) {
	for _, n := range []int{3, 20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			matcher, scores := selector.NewMatcher(labelled(n)), make([]float64, n)
			message, selectors := twoSelectors()
			b.ReportAllocs()
			for b.Loop() {
				matcher.Scores(message, selectors, scores)
			}
		})
	}
}

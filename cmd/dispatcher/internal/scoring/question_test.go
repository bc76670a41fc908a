package scoring

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// TestACallIsAboutNothingButWhatMayLeave compares the whole body: it has no field for a number, a
// text or an id.
func TestACallIsAboutNothingButWhatMayLeave(t *testing.T) {
	t.Parallel()
	f := &decide.Function{Parameters: map[string]selector.Value{
		"region": selector.TextValue("eu"),
		"factor": selector.NumberValue(1.5),
	}}
	q := questionOf(3)
	got, err := encode(f, q, q.Candidates[1:2])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"route":"default","lane":"otp","labels":{"language":"en","tier":2},` +
		`"selectors":[{"key":"quality","operator":"greaterThanEqual","value":5}],` +
		`"candidates":[{"channel":"c1","labels":{"quality":1},"price":0.031}],"parameters":{"factor":1.5,"region":"eu"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestACallWithoutLabelsHasEmptyOnes(t *testing.T) {
	t.Parallel()
	got, err := encode(&decide.Function{}, &decide.ScoreQuestion{Route: "r", Lane: "bulk"},
		[]decide.ScoreCandidate{{Channel: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"route":"r","lane":"bulk","labels":{},"selectors":[],"candidates":[{"channel":"a","labels":{},"price":0}],"parameters":{}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEqualQuestionsMeetWhateverTheOrderOfTheirLabels(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		labels := rapid.MapOf(rapid.String(), value()).Draw(t, "labels")
		names := rapid.Permutation(slices.Collect(maps.Keys(labels))).Draw(t, "order")
		again := map[string]selector.Value{}
		for _, name := range names {
			again[name] = labels[name]
		}
		f := &decide.Function{URL: "http://x"}
		a, b := questionOf(2), questionOf(2)
		a.Labels, b.Labels = labels, again
		if keyOf(f, a) != keyOf(f, b) {
			t.Fatal("questions differ by the order of labels")
		}
	})
}

func value() *rapid.Generator[selector.Value] {
	return rapid.OneOf(
		rapid.Map(rapid.String(), selector.TextValue),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), selector.NumberValue),
	)
}

func TestQuestionsThatDifferInAnythingDoNotMeet(t *testing.T) {
	t.Parallel()
	seen := map[key]string{}
	for name, change := range map[string]func(*decide.Function, *decide.ScoreQuestion){
		"nothing": func(*decide.Function, *decide.ScoreQuestion) {},
		"URL":     func(f *decide.Function, _ *decide.ScoreQuestion) { f.URL = "http://y" },
		"token":   func(f *decide.Function, _ *decide.ScoreQuestion) { f.Token = "t" },
		"batch":   func(f *decide.Function, _ *decide.ScoreQuestion) { f.Batch = true },
		"batch size": func(f *decide.Function, _ *decide.ScoreQuestion) {
			f.Batch, f.BatchSize = true, 3
		},
		"parameters": func(f *decide.Function, _ *decide.ScoreQuestion) {
			f.Parameters = map[string]selector.Value{"a": {}}
		},
		"route": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Route = "other"
		},
		"lane": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Lane = "bulk"
		},
		"label": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Labels["tier"] = selector.NumberValue(3)
		},
		"label as text": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Labels["tier"] = selector.TextValue("2")
		},
		"one label more": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Labels["x"] = selector.Value{}
		},
		"selector's key": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Selectors[0].Key = "speed"
		},
		"selector's operator": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Selectors[0].Operator = selector.Equal
		},
		"selector's value": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Selectors[0].Value.Number = 6
		},
		"a selector twice": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Selectors = append(q.Selectors, q.Selectors[0])
		},
		"a candidate less": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Candidates = q.Candidates[:1]
		},
		"candidate's order": func(_ *decide.Function, q *decide.ScoreQuestion) {
			slices.Reverse(q.Candidates)
		},
		"candidate's price": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Candidates[0].Price = 0.032
		},
		"candidate's label": func(_ *decide.Function, q *decide.ScoreQuestion) {
			q.Candidates[0].Labels["quality"] = selector.NumberValue(9)
		},
		"a letter from key to value": func(_ *decide.Function, q *decide.ScoreQuestion) {
			delete(q.Labels, "language")
			q.Labels["languag"] = selector.TextValue("een")
		},
	} {
		f, q := &decide.Function{URL: "http://x"}, questionOf(2)
		change(f, q)
		k := keyOf(f, q)
		if other, met := seen[k]; met {
			t.Errorf("%s matches %s", name, other)
		}
		seen[k] = name
	}
}

package decide

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// rankings draws rankings of every ranker, with everything that the stored form keeps.
func rankings() *rapid.Generator[Ranking] {
	word := rapid.SampledFrom([]string{
		"a", "load_ratio", `quote " and \ back`, "é\u2028\x01\xff",
		"c-1", "a b,c%2", "-", "=", "3/4",
	})
	optional := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", `"`, "é"}))
	score := rapid.Ptr(rapid.OneOf(rapid.Float64().Filter(finite),
		rapid.SampledFrom([]float64{0, 1, 2.0 / 3})), true)
	return rapid.Custom(func(t *rapid.T) Ranking {
		r := Ranking{
			Version: rapid.Int64Min(0).Draw(t, "version"),
			By: rapid.SampledFrom([]string{
				"load_ratio", "best_worker", "round_robin",
				"redraw", "order", "wait",
			}).Draw(t, "by"),
			Attempts: rapid.IntRange(0, 1000).Draw(t, "attempts"),
			Cursor:   optional.Draw(t, "cursor"),
			After:    rapid.Ptr(rapid.IntRange(-1, 1000), true).Draw(t, "after"),
			KeyID:    optional.Draw(t, "key_id"),
			Scoring:  rapid.SampledFrom([]string{"", ByExpression, ByFunction}).Draw(t, "scoring"),
			Trouble: rapid.SampledFrom([]string{"", ExpressionFailed, "function_timeout"}).Draw(t,
				"trouble"), More: rapid.IntRange(0, 1000).Draw(t, "more"),
		}
		f, chosen := fieldsOf(&r), false
		for range rapid.IntRange(0, 5).Draw(t, "candidates") {
			if chosen && f.stateless() {
				break
			}
			one := Ranked{Channel: word.Draw(t, "channel")}
			if f.load {
				one.Active, one.Capacity = rapid.Int64Min(0).Draw(t, "active"),
					rapid.OneOf(rapid.Just(int64(100)), rapid.Int64Min(0)).Draw(t, "capacity")
			}
			if f.idle {
				one.LastAssigned = Micros(rapid.Int64Range(0, 1<<52).Draw(t, "last_assigned"))
			}
			if f.score {
				one.Score = score.Draw(t, "score")
			}
			if rapid.Bool().Draw(t, "passed over") {
				one.Reason = word.Draw(t, "reason")
				one.Limit = limitNames().Draw(t, "limit")
			}
			chosen = chosen || one.Reason == ""
			r.Candidates = append(r.Candidates, one)
		}
		return r
	})
}

// limitNames draws names of limits, and none.
func limitNames() *rapid.Generator[LimitName] {
	return rapid.Custom(func(t *rapid.T) LimitName {
		window := rapid.SampledFrom([]admission.Window{
			0, admission.Second, admission.Minute, admission.Hour, admission.Day, admission.Prepaid,
		}).Draw(t, "window")
		if window == 0 {
			return LimitName{}
		}
		scope := rapid.SampledFrom([]admission.Scope{
			{}, {Tenant: "shop"}, {Tenant: `a:b,c d%"é`}, {Prefix: "+44"},
		}).Draw(t, "scope")
		unit := rapid.SampledFrom([]admission.Unit{
			admission.Messages, admission.Segments, admission.Money,
		}).Draw(t, "unit")
		return NameLimit(
			&admission.Limit{Scope: scope, Window: window, Unit: unit}, rapid.Bool().Draw(t, "over"),
		)
	})
}

func TestStoredRankingIsReadBackWhole(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		want := rankings().Draw(t, "ranking")
		raw := AppendRanking([]byte("kept"), &want)
		got, err := ReadRanking(raw[len("kept"):])
		if err != nil || string(raw[:4]) != "kept" {
			t.Fatalf("%v: got %s", err, raw)
		}
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n(-want +got):\n%s", raw, diff)
		}
		if marshalled, err := json.Marshal(want); err != nil ||
			string(marshalled) != string(raw[4:]) {
			t.Fatalf("%v: encoding/json writes something else:\n%s\n%s", err, raw[4:], marshalled)
		}
	})
}

func TestRankingIsStoredInTheDocumentedForm(t *testing.T) {
	t.Parallel()
	score, other, after := 0.5, 0.25, 0
	candidates := []Ranked{
		{
			Channel: "a", Active: 3, Capacity: 100, LastAssigned: microsOf(noon), Score: &score,
			Reason: "no_slot", Limit: NameLimit(&admission.Limit{Window: admission.Day}, false),
		},
		{
			Channel: "b", Active: 4, Capacity: 100,
			LastAssigned: microsOf(noon.Add(-250 * time.Microsecond)), Score: &score,
		},
		{Channel: "c", Active: 5, Capacity: 50, Score: &other},
		{Channel: "d e", Capacity: 50},
	}
	for want, r := range map[string]Ranking{
		`{"version":7,"by":"load_ratio","attempts":2,"latest":1795262400000000,"line":"a 3/100 0 ` +
			`no_slot:1d:messages,b 4 250,c 5/50 -,d%20e 0 -","more":12}`: {By: "load_ratio", Attempts: 2},
		`{"version":7,"by":"wait","latest":1795262400000000,"line":"a 3/100 0 no_slot:1d:messages,b 4 250,c ` +
			`5/50 -,d%20e 0 -","more":12}`: {By: "wait"},
		`{"version":7,"by":"best_worker","scoring":"function","latest":1795262400000000,` +
			`"line":"a 0.5 0 no_slot:1d:messages,b = 250,c 0.25 -,d%20e - -","more":12}`: {
			By: "best_worker", Scoring: "function",
		},
		`{"version":7,"by":"best_worker","trouble":"expression_failed","latest":1795262400000000,` +
			`"line":"a 0.5 3/100 0 no_slot:1d:messages,b = 4 250,c 0.25 5/50 -,d%20e - 0 -","more":12}`: {
			By: "best_worker", Trouble: "expression_failed",
		},
		`{"version":7,"by":"round_robin","cursor":"z","after":0,"line":"a no_slot:1d:messages,b","more":14}`: {
			By: "round_robin", Cursor: "z", After: &after,
		},
		`{"version":7,"by":"redraw","key_id":"4bf5122f","line":"a no_slot:1d:messages,b","more":14}`: {
			By: "redraw", KeyID: "4bf5122f",
		},
	} {
		r.Version, r.Candidates, r.More = 7, candidates, 12
		if got := string(AppendRanking(nil, &r)); got != want {
			t.Errorf("\n%s\nwant\n%s", got, want)
		}
		if got, err := ReadRanking([]byte(want)); err != nil || got.Chosen() != 1 ||
			got.Candidates[1].Channel != "b" {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

func TestDamagedRankingIsAnErrorAndNoRankingIsNone(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"a", "a 1/2", "a 1/2 0 why not", "a x/2 0", "a 1/x 0", "a 1/2 x",
		"a%2 1/2 0", "a 1/2 0 %", "a 1/2 0,", " ",
		"a 1/2 0 x:", "a 1/2 0 x:1d", "a 1/2 0 x:2d:messages", "a 1/2 0 x:1d:grams",
		"a 1/2 0 x:1d:money:shop", "a 1/2 0 x:1d:money:tenant:%",
	} {
		raw := `{"version":1,"by":"load_ratio","line":"` + line + `"}`
		if r, err := ReadRanking([]byte(raw)); err == nil ||
			!strings.Contains(err.Error(), "candidate ") {
			t.Errorf("%s was read as %+v, %v", raw, r, err)
		}
	}
	for _, raw := range []string{"", "{", `{"line":7}`, `{"by":"best_worker","line":"a one -"}`} {
		if r, err := ReadRanking([]byte(raw)); err == nil {
			t.Errorf("%q was read as %+v", raw, r)
		}
	}
	if r, err := ReadRanking(nil); r != nil || err != nil {
		t.Errorf("got %v, error %v", r, err)
	}
}

func TestChosenIsTheFirstWithoutAReason(t *testing.T) {
	t.Parallel()
	for want, reasons := range map[int][]string{
		0: {"", "x", ""}, 1: {"x", "", ""},
		-1: {"x", "x"},
	} {
		var r Ranking
		for _, reason := range reasons {
			r.Candidates = append(r.Candidates, Ranked{Channel: "a", Reason: reason})
		}
		if got := r.Chosen(); got != want {
			t.Errorf("%v: %d is chosen, want %d", reasons, got, want)
		}
	}
	score := 0.5
	one := Ranked{
		Channel: "a", Active: 3, Capacity: 100, LastAssigned: microsOf(noon),
		Score: &score,
	}
	if c := one.Candidate(4); c != (selector.Candidate{
		Index: 4, Active: 3, Capacity: 100,
		LastAssigned: noon, Score: 0.5,
	}) {
		t.Errorf("candidate %+v", c)
	}
}

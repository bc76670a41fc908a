package dispatch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/selector"
)

func rankings() *rapid.Generator[Ranking] {
	word := rapid.SampledFrom([]string{"", "a", "load_ratio", `quote " and \ back`, "é\u2028\x01", "c-1"})
	return rapid.Custom(func(t *rapid.T) Ranking {
		return Ranking{
			Version: rapid.Int64Min(0).Draw(t, "version"), By: word.Draw(t, "by"), Cursor: word.Draw(t, "cursor"),
			After: rapid.Ptr(rapid.IntRange(-1, 1000), true).Draw(t, "after"), KeyID: word.Draw(t, "key_id"),
			Scoring: word.Draw(t, "scoring"), Trouble: word.Draw(t, "trouble"), More: rapid.IntRange(0, 1000).Draw(t, "more"),
			Candidates: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ranked {
				return Ranked{
					Channel: word.Draw(t, "channel"), Active: rapid.Int64Min(0).Draw(t, "active"), Capacity: rapid.Int64Min(0).Draw(t, "capacity"),
					LastAssigned: Micros(rapid.Int64Range(0, 1<<52).Draw(t, "last_assigned")),
					Score:        rapid.Ptr(rapid.OneOf(rapid.Float64().Filter(finite), rapid.SampledFrom([]float64{0, 1, 2.0 / 3})), true).Draw(t, "score"),
					Reason:       word.Draw(t, "reason"),
				}
			}), 0, 5).Draw(t, "candidates"),
		}
	})
}

// TestStoredRankingDecodesToWhatWasAppended also holds the appender to encoding/json.
func TestStoredRankingDecodesToWhatWasAppended(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rankings().Draw(t, "ranking")
		raw := AppendRanking([]byte("kept"), &want)
		var got Ranking
		if err := json.Unmarshal(raw[len("kept"):], &got); err != nil || string(raw[:4]) != "kept" {
			t.Fatalf("%v: %s", err, raw)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		reflected, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(raw[len("kept"):], &a) != nil || json.Unmarshal(reflected, &b) != nil {
			t.Fatal("no JSON")
		}
		if len(want.Candidates) > 0 && !cmp.Equal(a, b) {
			t.Fatalf("encoding/json writes something else:\n%s\n%s", raw[4:], reflected)
		}
	})
}

func TestRankingIsStoredInTheDocumentedForm(t *testing.T) {
	t.Parallel()
	after, score := 0, 0.5
	r := Ranking{
		Version: 7, By: "round_robin", Cursor: "a", After: &after, KeyID: "4bf5122f", Scoring: "function", Trouble: "function_timeout", More: 12,
		Candidates: []Ranked{
			{Channel: "a", Active: 3, Capacity: 100, LastAssigned: microsOf(noon), Score: &score, Reason: "no_slot"},
			{Channel: "b", Capacity: 50, Score: &score},
		},
	}
	want := `{"version":7,"by":"round_robin","cursor":"a","after":0,"key_id":"4bf5122f","scoring":"function","trouble":"function_timeout","candidates":[` +
		`{"channel":"a","active":3,"capacity":100,"last_assigned":1795262400000000,"score":0.5,"reason":"no_slot"},{"channel":"b","active":0,"capacity":50,"score":0.5}],"more":12}`
	if got := string(AppendRanking(nil, &r)); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if r.Chosen() != 1 {
		t.Errorf("chosen is %d", r.Chosen())
	}
	if r.Candidates[0].Reason = "x"; r.Candidates[1].Reason != "" || r.Chosen() != 1 {
		t.Errorf("chosen is %d", r.Chosen())
	}
	if r.Candidates[1].Reason = "x"; r.Chosen() != -1 {
		t.Errorf("chosen is %d of none", r.Chosen())
	}
	if c := r.Candidates[0].Candidate(4); c != (selector.Candidate{Index: 4, Active: 3, Capacity: 100, LastAssigned: noon, Score: 0.5}) {
		t.Errorf("candidate %+v", c)
	}
}

func TestRankingOfAnEarlierReleaseCanBeRead(t *testing.T) {
	t.Parallel()
	var r Ranking
	raw := `{"version":1,"by":"load_ratio","candidates":[{"channel":"a","active":1,"capacity":2,"last_assigned":"2026-11-21T12:00:00.000001Z","reason":"no_slot"},{"channel":"b","active":0,"capacity":2}]}`
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatal(err)
	}
	if got := r.Candidates[0].LastAssigned.Time(); !got.Equal(noon.Add(time.Microsecond)) || !r.Candidates[1].LastAssigned.Time().IsZero() {
		t.Errorf("last assigned %s and %s", got, r.Candidates[1].LastAssigned.Time())
	}
	if json.Unmarshal([]byte(`{"candidates":[{"last_assigned":"yesterday"}]}`), &r) == nil {
		t.Error("a time that is none was read")
	}
}

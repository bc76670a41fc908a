package simulate

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func drawScenario(t *rapid.T) *Scenario {
	s := &Scenario{
		Limit: rapid.Int64Range(0, 300).Draw(t, "limit"), Utilisation: rapid.Float64Range(0, 1).
			Draw(t, "utilisation"),
		CurveFactor: rapid.Float64Range(0.1, 3).Draw(t, "factor"), Region: "a",
		History: map[string]int64{
			"a": rapid.Int64Range(0, 100).Draw(t, "history a"),
			"b": rapid.Int64Range(0, 100).Draw(t, "history b"), "Anywhere": 20,
		},
		Workers: map[string]int64{
			"a": rapid.Int64Range(1, 20).Draw(t, "workers a"),
			"b": rapid.Int64Range(1, 20).Draw(t, "workers b"),
		},
		Window: time.Minute, Windows: rapid.IntRange(1, 4).Draw(t, "windows"),
		StateInterval: 2 * time.Second,
		Near:          time.Millisecond, Far: 60 * time.Millisecond, Seed: rapid.Uint64().
				Draw(t, "seed"),
	}
	s.Active = rapid.Int64Range(0, s.Limit).Draw(t, "active")
	s.Total = s.Workers["a"] + s.Workers["b"]
	for range rapid.IntRange(1, 4).Draw(t, "kinds") {
		a := Arrival{
			Region: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "region"),
			Count:  rapid.Int64Range(0, 200).Draw(t, "count"),
			First:  1, Last: s.Windows, Random: rapid.Bool().Draw(t, "random"),
			Skew: rapid.Float64Range(0, 2).Draw(t, "skew"),
		}
		a.At = time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "at"))
		a.For = time.Duration(rapid.Int64Range(0, int64(time.Minute-a.At)).Draw(t, "for"))
		s.Arrivals = append(s.Arrivals, a)
	}
	return s
}

func TestEventsAreAllArrivalsInOrder(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		events, again := s.Events(), s.Events()
		if diff := cmp.Diff(events, again, cmpopts.EquateComparable(Event{})); diff != "" {
			t.Fatalf("the same scenario gave another result: %s", diff)
		}
		var want int64
		for _, a := range s.Arrivals {
			want += a.Count * int64(s.Windows)
		}
		if int64(len(events)) != want || !slices.IsSortedFunc(events, sooner) {
			t.Fatalf("%d events of %d", len(events), want)
		}
		f := s.floor()
		for _, e := range events {
			a := s.Arrivals[e.kind]
			if e.At < a.At || e.At > a.At+a.For || e.Worker < f.first[e.region] ||
				e.Worker >= f.first[e.region+1] || f.regions[e.region] != a.Region {
				t.Fatalf("%+v of %+v", e, a)
			}
		}
	})
}

// perWorker counts the events of one region by worker.
func perWorker(s *Scenario) []int {
	out := make([]int, s.Workers[s.Region])
	for _, e := range s.Events() {
		out[e.Worker]++
	}
	return out
}

func TestArrivalsFollowTheWeightsOfTheWorkers(t *testing.T) {
	t.Parallel()
	for _, random := range []bool{false, true} {
		s := read(t, `{"limit": 1, "region": "a", "workers": {"a": 4}, "arrivals": [{"count": `+
			`2500, "skew": 1}]}`)
		s.Arrivals[0].Random = random
		for k, n := range perWorker(s) { // weights 1, 1/2, 1/3, 1/4 of 25/12
			if want := 1200 / float64(k+1); math.Abs(float64(n)-want) > 80 {
				t.Errorf("worker %d got %d, want about %v", k+1, n, want)
			}
		}
	}
	s := read(t, `{"limit": 1, "region": "a", "workers": {"a": 4}, "arrivals": [{"count": 100}]}`)
	for k, n := range perWorker(s) {
		if n < 24 || n > 26 {
			t.Errorf("worker %d got %d of 100", k+1, n)
		}
	}
}

func TestPlainNumbersComeAtOnceEachInTurn(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 1, "region": "a", "arrivals": [2, 1, 3]}`)
	var workers []int32
	for _, e := range s.Events() {
		if e.At != 0 {
			t.Errorf("got an arrival at %s", e.At)
		}
		workers = append(workers, e.Worker)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 0, 2, 2}, workers); diff != "" {
		t.Error(diff)
	}
}

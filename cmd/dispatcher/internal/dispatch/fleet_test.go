package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
)

// TestStateOfAPolicyIsThatOfTheSource: 200 a minute, of which San Jose granted 20 and London 30, and ten
// processes, three of them in San Jose.
func TestStateOfAPolicyIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	f := &fleet{}
	for range 3 {
		f.join("San Jose", nil)
	}
	f.join("London", map[string]int64{"a": 30})
	f.granted["a"]["San Jose"] = 20
	for range 6 {
		f.join("Delhi", map[string]int64{"b": 7})
	}
	window := func(w admission.Window, limit int64) *admission.Counter {
		return &admission.Counter{Limit: admission.Limit{Window: w, Max: limit}, Max: limit}
	}
	for name, tc := range map[string]struct {
		counter     *admission.Counter
		anywhere    int64
		utilisation float64
	}{
		"a minute":               {window(admission.Minute, 200), 150, 0.25},
		"a second":               {window(admission.Second, 10), 550, 50.0 / 600},
		"an hour":                {window(admission.Hour, 12000), 150, 0.25},
		"a day":                  {window(admission.Day, 288000), 150, 0.25},
		"more than it gives now": {window(admission.Minute, 40), 4, 1},
		"closed":                 {window(admission.Minute, 0), 1, 1},
		"a few a day":            {window(admission.Day, 5), 1, 1},
	} {
		got := f.state("a", tc.counter, "San Jose")
		want := admission.State{
			Limit: tc.counter.Max, Utilisation: tc.utilisation, Region: "San Jose", Total: 10,
			History: map[string]int64{"San Jose": 20, "London": 30, admission.Anywhere: tc.anywhere},
			Workers: map[string]int64{"San Jose": 3, "London": 1, "Delhi": 6},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	state := f.state("a", window(admission.Minute, 200), "San Jose")
	state.Active = 50
	if split := (admission.Even{}).Split(&state); split.PerWorker != 16 {
		t.Errorf("even leaves %+v to a process in San Jose", split)
	}
	if _, changed := f.granted["a"][admission.Anywhere]; changed {
		t.Error("the fleet changed with the question")
	}
}

func TestProcessThatKnowsOfNoOtherTakesAll(t *testing.T) {
	t.Parallel()
	counter := &admission.Counter{Limit: admission.Limit{Window: admission.Minute, Max: 200}, Max: 200}
	var none *fleet
	for _, f := range []*fleet{none, {}} {
		state := f.state("a", counter, "eu")
		for _, p := range []admission.Policy{admission.Even{}, admission.Curve{Factor: 1}, admission.CounterPolicy{}} {
			if got := p.Split(&state).PerWorker; got != 200 {
				t.Errorf("%s leaves %d of 200", p, got)
			}
		}
	}
}

func TestMinutesTellTheLastWholeOne(t *testing.T) {
	t.Parallel()
	var m minutes
	if got := m.last(noon); len(got) > 0 {
		t.Errorf("nothing was granted yet, and it tells %v", got)
	}
	m.add(noon.Add(time.Second), "a", 3)
	m.add(noon.Add(59*time.Second), "a", 4)
	m.add(noon.Add(-time.Hour), "b", 1) // the clock stepped back: no minute opens again
	m.add(noon.Add(60*time.Second), "a", 100)
	if got := m.last(noon.Add(61 * time.Second)); !cmp.Equal(got, map[string]int64{"a": 7, "b": 1}) {
		t.Errorf("in the next minute: %v", got)
	}
	m.last(noon.Add(61 * time.Second))["a"] = 0
	if got := m.last(noon.Add(61 * time.Second)); got["a"] != 7 {
		t.Error("the caller's copy is the counter itself")
	}
	if got := m.last(noon.Add(2 * time.Minute)); !cmp.Equal(got, map[string]int64{"a": 100}) {
		t.Errorf("two minutes later: %v", got)
	}
	m.add(noon.Add(2*time.Minute), "a", 5)
	if got := m.last(noon.Add(4 * time.Minute)); len(got) > 0 {
		t.Errorf("after a quiet minute: %v", got)
	}
}

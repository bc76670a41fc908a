package decide

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// TestStateOfAPolicyIsThatOfTheSource: of 200 a minute San Jose granted 20 and London 30. Three of
// ten processes are in San Jose.
func TestStateOfAPolicyIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	instances := &Instances{}
	for range 3 {
		instances.Join("San Jose", nil)
	}
	instances.Join("London", map[string]ledger.Grants{"a": {Messages: 30}})
	instances.Granted["a"]["San Jose"] = ledger.Grants{Messages: 20}
	for range 6 {
		instances.Join("Delhi", map[string]ledger.Grants{"b": {Messages: 7}})
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
		got := instances.State("a", tc.counter, "San Jose")
		want := admission.PolicyInput{
			Limit: tc.counter.Max, Utilisation: tc.utilisation, Region: "San Jose", Total: 10,
			History: map[string]int64{
				"San Jose": 20, "London": 30,
				admission.Anywhere: tc.anywhere,
			},
			Workers: map[string]int64{"San Jose": 3, "London": 1, "Delhi": 6},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	state := instances.State("a", window(admission.Minute, 200), "San Jose")
	state.Active = 50
	if split := (admission.Even{}).Split(&state); split.PerWorker != 16 {
		t.Errorf("even leaves %+v to a process in San Jose", split)
	}
	if _, changed := instances.Granted["a"][admission.Anywhere]; changed {
		t.Error("the batch changed the snapshot")
	}
}

func TestProcessThatKnowsOfNoOtherTakesAll(t *testing.T) {
	t.Parallel()
	counter := &admission.Counter{
		Limit: admission.Limit{Window: admission.Minute, Max: 200},
		Max:   200,
	}
	var none *Instances
	for _, instances := range []*Instances{none, {}} {
		state := instances.State("a", counter, "eu")
		for _, p := range []admission.Policy{
			admission.Even{},
			admission.Curve{Factor: 1},
			admission.CounterPolicy{},
		} {
			if got := p.Split(&state).PerWorker; got != 200 {
				t.Errorf("%s leaves %d of 200", p, got)
			}
		}
	}
}

// TestEveryUnitIsDividedByItsOwnHistory: of 100 messages a minute one region granted 90 and another
// 10. Limits of the same size in segments and in money give the same shares, however many segments
// a text has.
func TestEveryUnitIsDividedByItsOwnHistory(t *testing.T) {
	t.Parallel()
	const perText, price, messagesADay = 5, 28_000, 144_000
	granted := func(n int64) map[string]ledger.Grants {
		return map[string]ledger.Grants{"a": {
			Messages: n, Segments: perText * n,
			Micros: price * n,
		}}
	}
	instances := &Instances{}
	instances.Join("eu", granted(90))
	instances.Join("us", granted(10))
	for unit, each := range map[admission.Unit]int64{
		admission.Messages: 1,
		admission.Segments: perText, admission.Money: price,
	} {
		limit := admission.Limit{Window: admission.Day, Max: messagesADay * each, Unit: unit}
		state := instances.State("a", &admission.Counter{Limit: limit, Max: limit.Max}, "eu")
		split := (admission.CounterPolicy{}).Split(&state)
		region, anywhere := 100*float64(split.Region)/float64(limit.Max),
			100*float64(split.Anywhere)/float64(limit.Max)
		if math.Abs(region-81.8) > 0.05 || math.Abs(anywhere-9.1) > 0.05 {
			t.Errorf("%s: the region has %.3f %% and anywhere %.3f %%", unit, region, anywhere)
		}
		if state.Utilisation != 1 {
			t.Errorf("%s: the minute before was used to %.3f", unit, state.Utilisation)
		}
	}
}

package steer

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/selector"
)

func TestARampWalksInEqualSteps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to map[string]string
		steps    int
		want     []string // weights of a and b after each step
	}{
		"whole": {
			m("a", "0", "b", "100"), m("a", "100", "b", "0"), 4,
			[]string{"25 75", "50 50", "75 25", "100 0"},
		},
		"tenths": {
			m("a", "25", "b", "75"), m("a", "30", "b", "70"), 5,
			[]string{"26 74", "27 73", "28 72", "29 71", "30 70"},
		},
		"thirds": {
			m("a", "25", "b", "75"), m("a", "30", "b", "70"), 3,
			[]string{"26.667 73.333", "28.333 71.667", "30 70"},
		},
		"halves go up": {m("a", "0", "b", "1"), m("a", "0.0001", "b", "1"), 32, nil},
		"one step": {
			m("a", "1", "b", "1"), m("a", "34.5", "b", "1.3"), 1,
			[]string{"34.5 1.3"},
		},
		"fractions": {
			m("a", "34.5", "b", "1.3"), m("a", "34.6", "b", "1.3"), 2,
			[]string{"34.55 1.3", "34.6 1.3"},
		},
		"a stays unnamed": {m("a", "5", "b", "1"), m("b", "3"), 2, []string{"5 2", "5 3"}},
		"b is new":        {m("a", "5"), m("a", "5", "b", "10"), 2, []string{"5 5", "5 10"}},
	} {
		routing := routed("a", tc.from["a"])
		if w, ok := tc.from["b"]; ok {
			routing = routed("a", tc.from["a"], "b", w)
		}
		r := ramped(tc.from, tc.to, tc.steps)
		var got []string
		for r.Step < r.Steps {
			move := NextRampMove(r, routing, nil, midnight)
			if move.Kind != RampStep || move.Step != r.Step+1 {
				t.Fatalf("%s: got %+v, want Kind %v and Step %v", name, move, RampStep, r.Step+1)
			}
			put(routing, move.Weights)
			r.Step++
			now := texts(routing)
			got = append(got, now["a"]+" "+now["b"])
		}
		if tc.want != nil && !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if move := NextRampMove(r, routing, nil, midnight); move.Kind != RampFinished {
			t.Errorf("%s: after the last step: %+v", name, move)
		}
	}
}

func m(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// TestARampReachesItsEndInExactlyItsSteps draws ramps between any weights: every step has a valid
// table, no weight leaves the range between its ends, and the last step is exactly To.
func TestARampReachesItsEndInExactlyItsSteps(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		channels := rapid.IntRange(1, 6).Draw(t, "channels")
		from, to := ends(t, channels, "from"), ends(t, channels, "to")
		var pairs []string
		for i := range channels {
			pairs = append(pairs, name(i), from[name(i)])
		}
		routing := routed(pairs...)
		r := ramped(from, to, rapid.IntRange(1, 2000).Draw(t, "steps"))
		r.Steps = min(r.Steps, rapid.SampledFrom([]int{1, 2, 3, 7, 10, 100, 2000}).Draw(t,
			"at most"))
		for step := 1; step <= r.Steps; step++ {
			move := NextRampMove(r, routing, nil, midnight)
			if move.Kind != RampStep || move.Step != step {
				t.Fatalf("step %d of %d: %+v", step, r.Steps, move)
			}
			put(routing, move.Weights)
			if _, err := selector.NewTable(routing.Routes[0].Entries()); err != nil {
				t.Fatalf("step %d of %d: %v", step, r.Steps, err)
			}
			for _, w := range routing.Routes[0].Weights {
				if !between(w.Weight, from[w.Channel], to[w.Channel]) {
					t.Fatalf("step %d of %d: %s has %s, which is not between %s and %s", step,
						r.Steps, w.Channel, w.Weight, from[w.Channel], to[w.Channel])
				}
			}
			r.Step = step
		}
		for channel, got := range texts(routing) {
			if want := selector.MustWeight(to[channel]).String(); got != want {
				t.Fatalf("%s ends at %s, want %s", channel, got, want)
			}
		}
	})
}

func name(i int) string { return string(rune('a' + i)) }

// ends draws weights that make a valid table.
func ends(t *rapid.T, channels int, label string) map[string]string {
	out := map[string]string{}
	decimals := rapid.IntRange(0, 9).Draw(t, label+" decimals")
	for i := range channels {
		units := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Uint64Range(0,
			1_000_000_000_000/uint64(channels))).Draw(t, label)
		text := fmt.Sprintf("%010d", units)
		out[name(i)] = strings.TrimSuffix(text[:len(text)-decimals]+"."+text[len(text)-decimals:],
			".")
	}
	if allZero(out) {
		out[name(0)] = "1"
	}
	return out
}

func allZero(weights map[string]string) bool {
	for _, w := range weights {
		if strings.Trim(w, "0.") != "" {
			return false
		}
	}
	return true
}

// between checks that w is between from and to, up to rounding in the last decimal of a step's
// weights.
func between(w selector.Weight, from, to string) bool {
	a, b := selector.MustWeight(from).Rat(), selector.MustWeight(to).Rat()
	if a.Cmp(b) > 0 {
		a, b = b, a
	}
	half := big.NewRat(1, 2)
	got := w.Rat()
	return got.Cmp(new(big.Rat).Sub(a, half)) >= 0 && got.Cmp(new(big.Rat).Add(b, half)) <= 0
}

func TestARampWaitsForItsTime(t *testing.T) {
	t.Parallel()
	r := ramped(m("a", "0", "b", "1"), m("a", "1", "b", "0"), 2)
	routing := routed("a", "0", "b", "1")
	if move := NextRampMove(r, routing, nil,
		midnight.Add(-time.Microsecond)); move.Kind != RampWait {
		t.Errorf("before: %+v", move)
	}
	if move := NextRampMove(r, routing, nil, midnight); move.Kind != RampStep {
		t.Errorf("at its time: %+v", move)
	}
	r.State, r.NextAt = ledger.RampHeld, time.Time{}
	if move := NextRampMove(r, routing, nil, midnight.Add(time.Hour)); move.Kind != RampWait {
		t.Errorf("held: %+v", move)
	}
}

func TestARampIsSupersededByOtherWeights(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Routing){
		"a weight was set": func(r *config.Routing) {
			put(r, []config.Weight{weightOf("a", selector.MustWeight("7"))})
		},
		"a channel was taken out": func(r *config.Routing) {
			r.Routes[0].Weights = r.Routes[0].Weights[:1]
		},
		"the route is gone": func(r *config.Routing) { r.Routes[0].Name = "other" },
		"weights are gone":  func(r *config.Routing) { r.Routes[0].Weights = nil },
	} {
		for _, state := range []ledger.RampState{ledger.RampRunning, ledger.RampHeld} {
			r := ramped(m("a", "0", "b", "100"), m("a", "100", "b", "0"), 4)
			r.Step, r.State = 2, state
			routing := routed("a", "50", "b", "50")
			change(routing)
			if move := NextRampMove(r, routing, nil, midnight); move.Kind != RampSupersede ||
				move.Reason == "" {
				t.Errorf("%s, %s: %+v", name, state, move)
			}
		}
	}
}

func TestARampUsesConfiguredWeightsAndItsOwnChannels(t *testing.T) {
	t.Parallel()
	r := ramped(m("a", "0", "b", "100"), m("a", "100", "b", "0"), 4)
	r.Step = 2
	routing := routed("a", "50", "c", "5", "b", "50")
	routing.Routes[0].Weights[0].Weight = selector.MustWeight("25") // lowered by health weighting
	move := NextRampMove(r, routing, nil, midnight)
	want := []config.Weight{
		weightOf("a", selector.MustWeight("75")),
		weightOf("b", selector.MustWeight("25")),
	}
	if diff := cmp.Diff(want, move.Weights, exactly); move.Kind != RampStep || diff != "" {
		t.Errorf("%s (-want +got):\n%s", move.Kind, diff)
	}
}

var exactly = cmp.Comparer(func(a, b selector.Weight) bool { return a == b })

func TestARampWithUnreadableWeightsIsHeld(t *testing.T) {
	t.Parallel()
	r := ramped(m("a", "-1"), m("a", "1"), 1)
	if move := NextRampMove(r, routed("a", "1"), nil, midnight); move.Kind != RampHold ||
		!strings.Contains(move.Reason, "channel a") {
		t.Errorf("got %+v", move)
	}
	r.State = ledger.RampHeld
	if move := NextRampMove(r, routed("a", "1"), nil, midnight); move.Kind != RampWait {
		t.Errorf("held already: %+v", move)
	}
}

func TestARampIsHeldWhenItsFiguresLeaveTheBand(t *testing.T) {
	t.Parallel()
	const least = 100
	for name, tc := range map[string]struct {
		carried []ledger.Carried
		why     string // empty if it continues
	}{
		"nothing carried": {nil, ""},
		"errors above": {
			[]ledger.Carried{
				{Channel: "a", Attempts: 1000, Accepted: 927, Errors: 73},
				{Channel: "b", Attempts: 1000, Accepted: 1000},
			},
			"channel a: errors 7.3 % above the band of 5 %: 73 of 1000 attempts",
		},
		"errors in the band": {[]ledger.Carried{{
			Channel: "a", Attempts: 1000, Accepted: 950,
			Errors: 50,
		}, {Channel: "b", Attempts: 950, Accepted: 950}}, ""},
		"too little to tell": {[]ledger.Carried{
			{Channel: "a", Attempts: 49, Errors: 49},
			{Channel: "b", Attempts: 50, Accepted: 50},
		}, ""},
		"one error of one": {[]ledger.Carried{
			{Channel: "a", Attempts: 1, Errors: 1},
			{Channel: "b", Attempts: 99, Accepted: 99},
		}, ""},
		"a breaker soon opens": {[]ledger.Carried{
			{Channel: "a", Attempts: 5, Errors: 5},
			{Channel: "b", Attempts: 96, Accepted: 96},
		}, "channel a: errors 100 % above the band " +
			"of 5 %: 5 of 5 attempts"},
		"carried elsewhere": {
			[]ledger.Carried{
				{Channel: "a", FirstChoice: 500, Attempts: 300, Accepted: 300},
				{Channel: "b", FirstChoice: 500, Attempts: 700, Accepted: 700},
			},
			"channel a: carried 30 % of 1000 messages, its share is 50 %: deviation 20 % above " +
				"the band of 10 %",
		},
		"not carried at all": {
			[]ledger.Carried{{Channel: "b", FirstChoice: 500, Attempts: 500, Accepted: 500}},
			"channel a: carried 0 % of 500 messages, its share is 50 %: deviation 50 % above the " +
				"band of 10 %",
		},
		"within the band": {[]ledger.Carried{
			{Channel: "a", Attempts: 410, Accepted: 410},
			{Channel: "b", Attempts: 590, Accepted: 590},
		}, ""},
		"chance explains it": {[]ledger.Carried{
			{Channel: "a", Attempts: 40, Accepted: 40},
			{Channel: "b", Attempts: 64, Accepted: 64},
		}, ""},
		"chance does not any more": {
			[]ledger.Carried{
				{Channel: "a", Attempts: 400, Accepted: 380, Errors: 0},
				{Channel: "b", Attempts: 640, Accepted: 640},
			},
			"channel a: carried 37.3 % of 1020 messages, its share is 50 %: deviation 12.7 % " +
				"above the band of 10 %",
		},
	} {
		for i := range tc.carried {
			tc.carried[i].InForce = tc.carried[i].Accepted
		}
		r := ramped(m("a", "0", "b", "100"), m("a", "100", "b", "0"), 4)
		r.Step, r.MaxErrors, r.MaxDeviation, r.LeastMessages = 2, 0.05, 0.1, least
		routing := routed("a", "50", "b", "50")
		want := RampMove{Kind: RampStep}
		if tc.why != "" {
			want = RampMove{Kind: RampHold, Reason: tc.why}
		}
		got := NextRampMove(r, routing, tc.carried, midnight)
		if got.Kind != want.Kind || tc.why != "" && got.Reason != tc.why {
			t.Errorf("%s: %s %q, want %s %q", name, got.Kind, got.Reason, want.Kind, want.Reason)
		}
		if got := NextRampMove(r, routing, tc.carried, midnight.Add(-time.Second)); tc.why != "" &&
			got.Kind != RampHold {
			t.Errorf("%s: not held before its next step: %s", name, got.Kind)
		}
		r.MaxErrors = 0
		routing.Routes[0].Sticky = true
		if got := NextRampMove(r, routing, tc.carried, midnight); got.Kind != RampStep {
			t.Errorf("%s: held for the deviation of a sticky route: %s", name, got.Kind)
		}
		routing.Routes[0].Sticky, r.MaxDeviation = false, 0
		if got := NextRampMove(r, routing, tc.carried, midnight); got.Kind != RampStep {
			t.Errorf("%s: held without any bounds: %s", name, got.Kind)
		}
	}
}

// TestTheDeviationIsFromTheSharesInForce: health weighting has lowered a, so b should carry two
// thirds and more. With the document's shares there would be a deviation.
func TestTheDeviationIsFromTheSharesInForce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b ledger.Carried
		why  string
	}{
		"as in force": {ledger.Carried{InForce: 330}, ledger.Carried{InForce: 670}, ""},
		"as in the document": {
			ledger.Carried{InForce: 500},
			ledger.Carried{InForce: 500},
			"channel a: carried 50 % of 1000 messages, its share is 33.3 %: deviation 16.7 % " +
				"above the band of 10 %",
		},
		"as in the document, before that": {
			ledger.Carried{Accepted: 5000, InForce: 33},
			ledger.Carried{Accepted: 5000, InForce: 67},
			"",
		},
	} {
		tc.a.Channel, tc.b.Channel = "a", "b"
		r := ramped(m("a", "0", "b", "100"), m("a", "100", "b", "0"), 4)
		r.Step, r.MaxDeviation, r.LeastMessages = 2, 0.1, 100
		routing := routed("a", "50", "b", "50")
		routing.Routes[0].Weights[0].Weight = selector.MustWeight("25")
		if got := NextRampMove(r, routing, []ledger.Carried{tc.a, tc.b},
			midnight.Add(-time.Second)); got.Reason != tc.why {
			t.Errorf("%s: %s %q, want %q", name, got.Kind, got.Reason, tc.why)
		}
	}
}

package config_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

const healthy = `
channels: {a: {provider: sandbox}, b: {provider: sandbox}, c: {provider: sandbox}}
routes:
- {name: r, match: {tenant: x}, weights: {a: 60, b: 40, c: 0}, health: {errors: 20}}
- {name: plain, weights: {a: 60, b: 40}}
`

func TestEffectsLowerWhatStillFitsTheDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ effects, want string }{
		"none":    {``, "60 40 0"},
		"empty":   {`{}`, "60 40 0"},
		"null":    {`null`, "60 40 0"},
		"lowered": {`{"weights":{"r":{"a":"45"}}}`, "45 40 0"},
		"finer than the document": {
			`{"weights":{"r":{"a":"0.000000001","b":"39.5"}}}`, "0.000000001 39.5 0",
		},
		"lowered to nothing":              {`{"weights":{"r":{"a":"0"}}}`, "0 40 0"},
		"unknown route":                   {`{"weights":{"gone":{"a":"45"}}}`, "60 40 0"},
		"unknown channel":                 {`{"weights":{"r":{"gone":"45","b":"30"}}}`, "60 30 0"},
		"above the weight in force since": {`{"weights":{"r":{"a":"61","b":"100.5"}}}`, "60 40 0"},
		"on a channel that was taken out": {`{"weights":{"r":{"c":"5"}}}`, "60 40 0"},
		"all zero":                        {`{"weights":{"r":{"a":"0","b":"0.0"}}}`, "60 40 0"},
		"more digits than the table can do": {
			`{"weights":{"r":{"a":"0.000000001","b":"39.999"}}}`, "0.000000001 39.999 0",
		},
		"route without health": {`{"weights":{"plain":{"a":"1"}}}`, "60 40 0"},
		"of a later program":   {`{"weights":{"r":{"a":"45"}},"limits":{"a":5}}`, "45 40 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r, err := config.ParseVersion(7, healthy, []byte(c.effects))
			if err != nil {
				t.Fatal(err)
			}
			var got, configured []string
			for _, w := range r.Routes[0].Weights {
				got, configured = append(got, w.Weight.String()), append(configured, w.Configured.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff("60 40 0", strings.Join(configured, " ")); diff != "" {
				t.Error(diff)
			}
			if w := r.Routes[1].Weights[0]; w.Weight != w.Configured {
				t.Errorf("a route without health weighting has the effective weight %s", w.Weight)
			}
		})
	}
}

func TestUnreadableEffectsAreAnError(t *testing.T) {
	t.Parallel()
	for _, effects := range []string{
		`{`, `[]`, `{"weights":[]}`, `{"weights":{"r":{"a":"-1"}}}`, `{"weights":{"r":{"a":45}}}`,
		`{"weights":{"r":{"a":"1e3"}}}`,
	} {
		if _, _, err := config.ParseVersion(7, healthy, []byte(effects)); err == nil ||
			!strings.HasPrefix(err.Error(), "routing version 7: effects of a routing version: ") {
			t.Errorf("%s: error %v", effects, err)
		}
	}
	if _, _, err := config.ParseVersion(7, "{}", nil); err == nil ||
		!strings.HasPrefix(err.Error(), "routing version 7:1: channels is missing") {
		t.Errorf("error %v", err)
	}
}

// effectsOf are the effects in force in a routing.
func effectsOf(r *config.Routing) (e config.Effects) {
	for i := range r.Routes {
		route := &r.Routes[i]
		for _, w := range route.Weights {
			if w.Weight != w.Configured {
				e.Set(route.Name, w.Channel, w.Weight)
			}
		}
	}
	return e
}

func TestEffectsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	_, r, err := config.ParseVersion(7, healthy, []byte(`{"weights":{"r":{"b":"0.5","a":"45"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := effectsOf(r)
	if got, want := string(e.Encode()), `{"weights":{"r":{"a":"45","b":"0.5"}}}`; got != want {
		t.Errorf("effects %s, want %s", got, want)
	}
	back, err := config.ParseEffects(e.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back, compare); diff != "" {
		t.Error(diff)
	}
	plain := parse(t, healthy)
	if e := effectsOf(plain); !e.Empty() || e.Encode() != nil {
		t.Errorf("a document alone has the effects %s", e.Encode())
	}
}

func TestEveryVersionHasAValidTable(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		weight := rapid.Custom(func(t *rapid.T) selector.Weight {
			return selector.MustWeight(rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{0,5}[1-9])?`).Draw(t,
				"weight"))
		})
		var e config.Effects
		for _, channel := range []string{"a", "b", "c", "gone"} {
			if rapid.Bool().Draw(t, "lowered") {
				e.Set("r", channel, weight.Draw(t, channel))
			}
		}
		doc := strings.NewReplacer("60", weight.Draw(t, "a").String(), "40",
			weight.Draw(t, "b").String()).Replace(healthy)
		if _, err := config.ParseRouting("v", []byte(doc)); err != nil {
			return
		}
		_, r, err := config.ParseVersion(7, doc, e.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := selector.NewTable(r.Routes[0].Entries()); err != nil {
			t.Fatal(err)
		}
	})
}

// carried returns, as JSON, the effects on one document that still apply to another.
func carried(t *testing.T, before, effects, after string) string {
	t.Helper()
	_, was, err := config.ParseVersion(7, before, []byte(effects))
	if err != nil {
		t.Fatal(err)
	}
	return string(config.KeepEffects(was, parse(t, after)).Encode())
}

func TestADocumentKeepsEveryEffectAtTheSamePartOfItsWeights(t *testing.T) {
	t.Parallel()
	const lowered = `{"weights":{"r":{"a":"45","b":"4"}}}` // 75 % and 10 %
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing has changed": {"", "", `{"weights":{"r":{"a":"45","b":"4"}}}`},
		"a channel is drained": {
			"b: {provider: sandbox}", "b: {provider: sandbox, state: draining}",
			`{"weights":{"r":{"a":"45","b":"4"}}}`,
		},
		"another route changes": {
			"plain, weights: {a: 60", "plain, weights: {a: 70", `{"weights":{"r":{"a":"45","b":"4"}}}`,
		},
		"a weight is halved": {
			"a: 60, b: 40, c: 0", "a: 30, b: 40, c: 0", `{"weights":{"r":{"a":"22.5","b":"4"}}}`,
		},
		"a weight is raised": {
			"a: 60, b: 40, c: 0", "a: 60, b: 70, c: 0", `{"weights":{"r":{"a":"45","b":"7"}}}`,
		},
		"with decimals": {
			"a: 60, b: 40, c: 0", "a: 0.5, b: 33.33, c: 0", `{"weights":{"r":{"a":"0.375","b":"3.333"}}}`,
		},
		"a channel is taken out": {
			"a: 60, b: 40, c: 0", "a: 60, c: 0", `{"weights":{"r":{"a":"45"}}}`,
		},
		"a weight is set to nothing": {
			"a: 60, b: 40, c: 0", "a: 60, b: 0, c: 1", `{"weights":{"r":{"a":"45"}}}`,
		},
		"a channel comes in": {
			"a: 60, b: 40, c: 0", "a: 60, b: 40, c: 5", `{"weights":{"r":{"a":"45","b":"4"}}}`,
		},
		"the order changes": {
			"a: 60, b: 40, c: 0", "c: 0, b: 40, a: 60", `{"weights":{"r":{"a":"45","b":"4"}}}`,
		},
		"the floor is raised": {
			"errors: 20", "errors: 20, floor: 40", `{"weights":{"r":{"a":"45","b":"16"}}}`,
		},
		"the floor is lowered": {
			"errors: 20", "errors: 20, floor: 1", `{"weights":{"r":{"a":"45","b":"4"}}}`,
		},
		"health weighting ends": {", health: {errors: 20}", "", ""},
		"the route is renamed":  {"name: r,", "name: q,", ""},
		// 2.25, and 10 % rounded up
		"no room for decimals": {
			"a: 60, b: 40, c: 0", "a: 3, b: 1099511627773, c: 0",
			`{"weights":{"r":{"a":"2","b":"109951162778"}}}`,
		},
		"no room for anything smaller": {
			"a: 60, b: 40, c: 0", "a: 1099511627775, b: 1, c: 0", `{"weights":{"r":{"a":"824633720831"}}}`,
		},
		// 1.5 and 0.1 of the last decimal
		"beyond nine decimals, and upward": {
			"a: 60, b: 40, c: 0", "a: 0.000000002, b: 0.000000001, c: 0", "",
		},
	} {
		after := healthy
		if c.before != "" {
			if after = strings.Replace(healthy, c.before, c.after, 1); after == healthy {
				t.Fatalf("%s: the test replaces nothing", name)
			}
		}
		if diff := cmp.Diff(c.want, carried(t, healthy, lowered, after)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestADocumentWithoutEffectsGetsNone(t *testing.T) {
	t.Parallel()
	for _, effects := range []string{
		``, `{}`, `{"weights":{"gone":{"a":"1"}}}`, `{"weights":{"plain":{"a":"1"}}}`,
	} {
		if got := carried(t, healthy, effects, healthy); got != "" {
			t.Errorf("%s became %s", effects, got)
		}
	}
}

// exactly returns a weight as a fraction.
func exactly(w selector.Weight) *big.Rat {
	r, _ := new(big.Rat).SetString(w.String())
	return r
}

// someWeights draws a weight for each channel, of any size and precision.
func someWeights(t *rapid.T, label string) string {
	digits := rapid.IntRange(1, 12).Draw(t, label+" digits")
	decimals := rapid.IntRange(0, 9).Draw(t, label+" decimals")
	var parts []string
	for _, channel := range []string{"a", "b", "c"} {
		w := rapid.StringMatching(fmt.Sprintf(`[0-9]{1,%d}`, digits)).Draw(t, label)
		if decimals > 0 {
			w += "." + rapid.StringMatching(fmt.Sprintf(`[0-9]{1,%d}`, decimals)).Draw(t, label)
		}
		parts = append(parts, channel+": "+w)
	}
	return strings.Join(parts, ", ")
}

// TestCarriedEffectsKeepTheirPartAndTheFloorAndFitTheTable carries random effects between random
// documents.
func TestCarriedEffectsKeepTheirPartAndTheFloorAndFitTheTable(t *testing.T) {
	t.Parallel()
	carriedOver := 0
	tier.Check(t, func(t *rapid.T) {
		write := func(label string) string {
			floor := rapid.IntRange(1, 99).Draw(t, label+" floor")
			return fmt.Sprintf("channels: {a: {provider: sandbox}, b: {provider: sandbox}, c: {provider: "+
				"sandbox}}\n"+
				"routes: [{name: r, weights: {%s}, health: {errors: 5, floor: %d}}]\n", someWeights(t, label),
				floor)
		}
		was, err := config.ParseRouting("before", []byte(write("before")))
		if err != nil {
			return // no table can hold these weights
		}
		for i := range was.Routes[0].Weights {
			w := &was.Routes[0].Weights[i]
			left := rapid.IntRange(1, 100).Draw(t, "left")
			part := new(big.Rat).Mul(exactly(w.Configured), big.NewRat(int64(left), 100))
			if lowered, err := selector.ParseWeight(part.FloatString(len(w.Configured.String()) % 10)); err == nil && exactly(lowered).Cmp(exactly(w.Configured)) < 0 {
				w.Weight = lowered
			}
		}
		text := write("after")
		now, err := config.ParseRouting("after", []byte(text))
		if err != nil {
			return
		}
		e := config.KeepEffects(was, now)
		_, inForce, err := config.ParseVersion(7, text, e.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e.Encode(), effectsOf(inForce).Encode()); diff != "" {
			t.Fatalf("not all effects are in force: %s", diff)
		}
		if _, err := selector.NewTable(inForce.Routes[0].Entries()); err != nil {
			t.Fatal(err)
		}
		for i, w := range inForce.Routes[0].Weights {
			checkCarried(t, &was.Routes[0].Weights[i], &w, unitOf(now.Routes[0]), now.Routes[0].Health.Floor)
			if w.Weight != w.Configured {
				carriedOver++
			}
		}
	})
	if carriedOver < 20 {
		t.Errorf("only %d effects were carried over", carriedOver)
	}
}

// unitOf returns the smallest step between weights of a route at which the table can hold all of
// them.
func unitOf(r config.Route) *big.Rat {
	sum := new(big.Rat)
	for _, w := range r.Weights {
		sum.Add(sum, exactly(w.Configured))
	}
	unit := big.NewRat(1, 1e9)
	for new(big.Rat).Quo(sum, unit).Cmp(big.NewRat(1<<40, 1)) > 0 && unit.Cmp(big.NewRat(1, 1)) < 0 {
		unit.Mul(unit, big.NewRat(10, 1))
	}
	return unit
}

func checkCarried(t *rapid.T, before, after *config.Weight, unit *big.Rat, floor int) {
	configured := exactly(after.Configured)
	least := new(big.Rat).Mul(configured, big.NewRat(int64(floor), 100))
	got := exactly(after.Weight)
	if got.Cmp(least) < 0 {
		t.Fatalf("%s of %s is below the floor of %d %%", after.Weight, after.Configured, floor)
	}
	want := new(big.Rat).Set(configured)
	if before.Weight != before.Configured {
		want.Mul(want, new(big.Rat).Quo(exactly(before.Weight), exactly(before.Configured)))
	}
	if want.Cmp(least) < 0 {
		want = least
	}
	if off := new(big.Rat).Sub(got, want); off.Abs(off).Cmp(unit) >= 0 {
		t.Fatalf("%s of %s became %s of %s, want %s", before.Weight, before.Configured, after.Weight,
			after.Configured, want.FloatString(12))
	}
	if exact := new(big.Rat).Quo(want, unit); exact.IsInt() && got.Cmp(want) != 0 {
		t.Fatalf("%s of %s became %s of %s, want the exact value", before.Weight, before.Configured,
			after.Weight, after.Configured)
	}
}

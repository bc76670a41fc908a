package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
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
		"none":                              {``, "60 40 0"},
		"empty":                             {`{}`, "60 40 0"},
		"null":                              {`null`, "60 40 0"},
		"lowered":                           {`{"weights":{"r":{"a":"45"}}}`, "45 40 0"},
		"finer than the document":           {`{"weights":{"r":{"a":"0.000000001","b":"39.5"}}}`, "0.000000001 39.5 0"},
		"lowered to nothing":                {`{"weights":{"r":{"a":"0"}}}`, "0 40 0"},
		"unknown route":                     {`{"weights":{"gone":{"a":"45"}}}`, "60 40 0"},
		"unknown channel":                   {`{"weights":{"r":{"gone":"45","b":"30"}}}`, "60 30 0"},
		"above the weight in force since":   {`{"weights":{"r":{"a":"61","b":"100.5"}}}`, "60 40 0"},
		"on a channel that was taken out":   {`{"weights":{"r":{"c":"5"}}}`, "60 40 0"},
		"all zero":                          {`{"weights":{"r":{"a":"0","b":"0.0"}}}`, "60 40 0"},
		"more digits than the table can do": {`{"weights":{"r":{"a":"0.000000001","b":"39.999"}}}`, "0.000000001 39.999 0"},
		"route without health":              {`{"weights":{"plain":{"a":"1"}}}`, "60 40 0"},
		"of a later program":                {`{"weights":{"r":{"a":"45"}},"limits":{"a":5}}`, "45 40 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := config.ParseVersion("v7", []byte(healthy), []byte(c.effects))
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
	for _, effects := range []string{`{`, `[]`, `{"weights":[]}`, `{"weights":{"r":{"a":"-1"}}}`, `{"weights":{"r":{"a":45}}}`, `{"weights":{"r":{"a":"1e3"}}}`} {
		if _, err := config.ParseVersion("version 7", []byte(healthy), []byte(effects)); err == nil || !strings.HasPrefix(err.Error(), "version 7: effects of a routing version: ") {
			t.Errorf("%s: error %v", effects, err)
		}
	}
	if _, err := config.ParseVersion("version 7", []byte("{}"), nil); err == nil || !strings.HasPrefix(err.Error(), "version 7:1: channels is missing") {
		t.Errorf("error %v", err)
	}
}

func TestEffectsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	r, err := config.ParseVersion("v", []byte(healthy), []byte(`{"weights":{"r":{"b":"0.5","a":"45"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := config.EffectsOf(r)
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
	if e := config.EffectsOf(plain); !e.Empty() || e.Encode() != nil {
		t.Errorf("a document alone has the effects %s", e.Encode())
	}
}

func TestEveryVersionHasAValidTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.Custom(func(t *rapid.T) selector.Weight {
			return selector.MustWeight(rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{0,5}[1-9])?`).Draw(t, "weight"))
		})
		var e config.Effects
		for _, channel := range []string{"a", "b", "c", "gone"} {
			if rapid.Bool().Draw(t, "lowered") {
				e.Set("r", channel, weight.Draw(t, channel))
			}
		}
		doc := strings.NewReplacer("60", weight.Draw(t, "a").String(), "40", weight.Draw(t, "b").String()).Replace(healthy)
		if _, err := config.ParseRouting("v", []byte(doc)); err != nil {
			return
		}
		r, err := config.ParseVersion("v", []byte(doc), e.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := selector.NewTable(r.Routes[0].Entries()); err != nil {
			t.Fatal(err)
		}
	})
}

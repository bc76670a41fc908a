package control

import (
	"testing"

	"dispatcher/config"
)

// TestABurstThatCostsMostOfTheRateIsWarnedOf: if the document asks for it, not if it is the
// default.
func TestABurstThatCostsMostOfTheRateIsWarnedOf(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{
		"{window: 1m, max: 60, sliding: true, burst: 40}": "a 1m messages: burst 40, then 21 per " +
			"1m, which is less than half of its max of 60. A smaller burst lets more through.",
		"{window: 1m, max: 60, sliding: true, burst: 31}":      "",
		"{window: 1m, max: 60, sliding: true}":                 "",
		"{window: 1s, max: 12, unit: segments, sliding: true}": "", // every message has to fit
		"{window: 1s, max: 12, unit: segments, sliding: true, burst: 11}": "a 1s segments: burst " +
			"11, then 2 per 1s, which is less than half of its max of 12. A smaller burst lets " +
			"more through.",
		"{window: 1m, max: 0, sliding: true, burst: 40}": "",
	} {
		doc, err := config.ParseRouting("r.yaml",
			[]byte("channels: {a: {provider: sandbox, limits: ["+limit+
				"]}}\nroutes: [{name: default, weights: {a: 1}}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		e := limitEdit{channel: "a", after: &doc.Channels[0].Limits[0]}
		if got := burstWarning(doc, &e); got != want {
			t.Errorf("%s: %q, want %q", limit, got, want)
		}
		e.before = e.after
		if got := burstWarning(doc, &e); got != "" {
			t.Errorf("%s did not change: %q", limit, got)
		}
	}
}

func TestAShareOfADrainedChannelIsWarnedOf(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml", []byte(`
channels: {a: {provider: sandbox, state: draining}, b: {provider: sandbox}, c: {provider: sandbox, state: disabled}}
routes: [{name: default, weights: {a: 1, b: 1, c: 0}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := drawnInVain(doc, &doc.Routes[0])
	if len(got) != 1 || got[0] != TakesNone("a") {
		t.Errorf("got %q", got)
	}
}

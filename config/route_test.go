package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// readRoute returns the only route of a document with channels a, b and c.
func readRoute(t *testing.T, keys string) config.Route {
	t.Helper()
	return parse(t, three+"routes:\n- {name: r, "+keys+"}").Routes[0]
}

func TestEveryModeAndFallbackIsRead(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{
		"weighted", "round_robin", "longest_idle", "best_worker", "order",
	} {
		for _, fallback := range []string{
			"load_ratio", "best_worker", "round_robin", "redraw", "order",
		} {
			r := readRoute(t, "mode: "+mode+", fallback: "+fallback+", weights: {b: 1, a: 2.5, c: 0}")
			if string(r.Mode) != mode || string(r.Fallback) != fallback {
				t.Errorf("mode %s, fallback %s, want %s, %s", r.Mode, r.Fallback, mode, fallback)
			}
			if diff := cmp.Diff([]config.Weight{weight("b", "1"), weight("a", "2.5"), weight("c", "0")},
				r.Weights, compare); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"b", "a", "c"}, r.Channels); diff != "" {
				t.Error(diff)
			}
			if mode == "weighted" || fallback == "redraw" {
				continue
			}
			r = readRoute(t, "mode: "+mode+", fallback: "+fallback+", channels: [c, a], wait: 0s")
			if diff := cmp.Diff([]string{"c", "a"}, r.Channels); diff != "" || r.Weights != nil {
				t.Errorf("weights %v\n%s", r.Weights, diff)
			}
		}
	}
	if r := readRoute(t, "mode: order, channels: [c, a]"); r.Fallback != config.InOrder {
		t.Errorf("the fallback of mode order is %s", r.Fallback)
	}
	if r := readRoute(t, "mode: round_robin, channels: b"); !cmp.Equal(r.Channels, []string{"b"}) {
		t.Errorf("a single channel reads as %v", r.Channels)
	}
}

func TestScoringIsReadInItsThreeForms(t *testing.T) {
	t.Parallel()
	standard := config.Scoring{}
	for name, keys := range map[string]string{
		"absent": "", "a word": ", scoring: default", "empty": ", scoring:  ",
	} {
		r := readRoute(t, "mode: best_worker, channels: [a]"+keys)
		if diff := cmp.Diff(standard, r.Scoring, compare); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r := readRoute(t,
		"fallback: best_worker, weights: {a: 1}, scoring: {expression: 'load_ratio * 2', "+
			"descending: false}")
	if s := r.Scoring; s.Kind() != "expression" || !s.Ascending || s.Function != nil ||
		s.Expression.String() != "load_ratio * 2" {
		t.Errorf("%+v", s)
	}
	r = readRoute(t,
		"mode: best_worker, channels: [a], scoring: {function: 'http://127.0.0.1:9/score?v=1'}")
	want := config.Scoring{Function: &config.Function{
		URL: "http://127.0.0.1:9/score?v=1", BatchSize: 20, Deadline: 200 * time.Millisecond,
		Cache: 10 * time.Second,
	}}
	if diff := cmp.Diff(want, r.Scoring, compare); diff != "" {
		t.Error(diff)
	}
	r = readRoute(t, `mode: best_worker, channels: [a], scoring: {function: "https://x.example", token_file: t, allow_private: true, batch: true, batch_size: 1000,
      parameters: {tier: gold, factor: 1.5, code: "7"}, deadline: 10ms, cache: 0, descending: false}`)
	want = config.Scoring{Ascending: true, Function: &config.Function{
		URL: "https://x.example", TokenFile: "t", AllowPrivate: true, Batch: true, BatchSize: 1000,
		Deadline: 10 * time.Millisecond,
		Parameters: map[string]selector.Value{
			"tier": selector.TextValue("gold"), "factor": selector.NumberValue(1.5),
			"code": selector.TextValue("7"),
		},
	}}
	if diff := cmp.Diff(want, r.Scoring, compare); diff != "" {
		t.Error(diff)
	}
}

func TestBadExpressionIsRefusedWithBothPositions(t *testing.T) {
	t.Parallel()
	const at = "routing.yaml:3: routes[0].scoring.expression: line "
	for expression, want := range map[string]string{
		`price + speed`:       at + "1, column 9 of the expression: ",
		`price -\n  speed`:    at + "2, column 3 of the expression: ",
		`"fast"`:              at + "1, column 1 of the expression: ",
		`price + load_ration`: at + "1, column 9 of the expression: ",
	} {
		quoted := strings.ReplaceAll(expression, `"`, `\"`)
		_, err := config.ParseRouting("routing.yaml", []byte(three+`routes:
- {name: r, mode: best_worker, channels: [a], scoring: {expression: "`+quoted+`"}}`))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s...", expression, err, want)
		}
	}
}

func TestHealthHasDefaultsAndBounds(t *testing.T) {
	t.Parallel()
	if r := readRoute(t, "weights: {a: 1, b: 1}"); r.Health != nil {
		t.Errorf("health weighting is on by default: %+v", r.Health)
	}
	for keys, want := range map[string]config.Health{
		"errors: 20": {
			Errors: 20, Window: time.Minute, Step: 25, Floor: 10, Interval: time.Minute,
			Quiet: 5 * time.Minute,
		},
		"errors: 1, window: 1s, step: 99, floor: 1, interval: 1s, quiet: 1s": {
			Errors: 1, Window: time.Second, Step: 99, Floor: 1, Interval: time.Second, Quiet: time.Second,
		},
		// The default quiet time is never shorter than the window.
		"errors: 3, window: 30m": {
			Errors: 3, Window: 30 * time.Minute, Step: 25, Floor: 10, Interval: time.Minute,
			Quiet: 30 * time.Minute,
		},
	} {
		r := readRoute(t, "weights: {a: 1, b: 0}, health: {"+keys+"}")
		if diff := cmp.Diff(&want, r.Health); diff != "" {
			t.Errorf("%s: %s", keys, diff)
		}
	}
}

func thousand() string { return many(1000) }

// many returns a document with this number of channels, each a member of a weighted, a round-robin
// and a scoring route.
func many(channels int) string {
	var doc strings.Builder
	doc.WriteString("channels:\n")
	for i := range channels {
		fmt.Fprintf(&doc,
			"  channel-%d:\n    provider: smpp\n    settings: {address: \"smpp-%d.example:2775\", "+
				"system_id: acme, password_file: /etc/secret}\n", i, i)
		fmt.Fprintf(&doc,
			"    limits: [{window: 1s, max: 100}, {window: 1d, max: 200000}]\n    labels: {quality: %d}\n"+
				"    price: {currency: EUR, default: 0.031, prefixes: {\"+44\": 0.028}}\n", i%10)
	}
	doc.WriteString("routes:\n- name: shares\n  match: {lane: otp}\n  weights:\n")
	for i := range channels {
		fmt.Fprintf(&doc, "    channel-%d: %d.%d\n", i, 1+i%9, i%7)
	}
	for _, mode := range []string{"round_robin", "best_worker"} {
		fmt.Fprintf(&doc, "- name: %s\n  match: {lane: bulk}\n  mode: %s\n  channels:\n", mode, mode)
		for i := range channels {
			fmt.Fprintf(&doc, "  - channel-%d\n", i)
		}
	}
	return doc.String()
}

func TestAThousandChannelsAreReadEditedAndCompared(t *testing.T) {
	t.Parallel()
	size := tier.Size(50, 1000)
	doc := many(size)
	before := parse(t, doc)
	for _, r := range before.Routes {
		if len(r.Channels) != size || r.Channels[42] != "channel-42" {
			t.Errorf("route %s has %d members", r.Name, len(r.Channels))
		}
	}
	var set []config.Weight
	for i := range size {
		set = append(set,
			config.Weight{Channel: fmt.Sprintf("channel-%d", i), Weight: selector.MustWeight("50.25")})
	}
	text, err := setWeights([]byte(doc), "shares", set)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = setState(text, "channel-42", config.Draining); err != nil {
		t.Fatal(err)
	}
	if changes := config.Diff(before, parse(t, string(text))); len(changes) != size+1 {
		t.Errorf("%d changes, want %d", len(changes), size+1)
	}
}

func BenchmarkParseAThousandChannels(b *testing.B) {
	doc := []byte(thousand())
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := config.ParseRouting("r", doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSetWeightAmongAThousand(b *testing.B) {
	doc := []byte(thousand())
	for b.Loop() {
		if _, err := setWeights(doc, "shares", weights("channel-700=3")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiffOfAThousandChannels(b *testing.B) {
	before, err := config.ParseRouting("r", []byte(thousand()))
	if err != nil {
		b.Fatal(err)
	}
	after, err := config.ParseRouting("r", []byte(thousand()))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if d := config.Diff(before, after); len(d) != 0 {
			b.Fatal(d)
		}
	}
}

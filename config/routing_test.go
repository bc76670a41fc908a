package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// compare compares the contents of weights, and time zones by name.
var compare = cmp.Options{
	cmp.Comparer(func(a, b selector.Weight) bool { return a == b }),
	cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b *score.Expression) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	}),
}

func parse(t *testing.T, doc string) *config.Routing {
	t.Helper()
	r, err := config.ParseRouting("routing.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// weight returns a weight as the document has it, without effects.
func weight(channel, w string) config.Weight {
	return config.Weight{
		Channel: channel, Weight: selector.MustWeight(w), Configured: selector.MustWeight(w),
	}
}

func TestExampleReadsAsItIsDescribed(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := parse(t, string(doc))
	if got := r.Timezone.String(); got != "Europe/London" {
		t.Errorf("time zone %s", got)
	}
	want := config.Channel{
		Name: "alpha", Provider: "smpp", Capacity: 500, State: config.Enabled,
		Settings: map[string]any{
			"address": "smpp.alpha.example:2775", "system_id": "acme",
			"password_file": "alpha.secret", "window": 100,
		},
		Limits: []admission.Limit{
			{Window: admission.Second, Max: 100, Unit: admission.Segments},
			{Window: admission.Day, Max: 200000, Unit: admission.Messages},
		},
		Active: config.ActiveLimit{Max: 500, Until: "submit"},
		Labels: map[string]selector.Value{
			"country": selector.TextValue("gb"), "quality": selector.NumberValue(9),
		},
		Price: config.Price{
			Currency: "GBP",
			Lists:    []config.PriceList{{Default: 31_000, Prefixes: map[string]int64{"+44": 28_000}}},
		},
	}
	if diff := cmp.Diff(want, r.Channels[0], compare); diff != "" {
		t.Error(diff)
	}
	if c := r.Channels[2]; c.Provider != "sandbox" || !c.Test || c.Capacity != 100 ||
		c.Active != (config.ActiveLimit{Until: "submit"}) {
		t.Errorf("defaults of a channel: %+v", c)
	}
	codes := config.Route{
		Name: "codes", Match: config.Match{Lanes: []string{"otp"}, Prefixes: []string{"+44"}},
		Mode: "weighted", Fallback: "load_ratio", MaxSegments: 3, Substitute: true, Tolerance: 1_000_000,
		Channels: []string{"alpha", "beta"},
		Weights:  []config.Weight{weight("alpha", "70"), weight("beta", "30")},
	}
	if diff := cmp.Diff(codes, r.Routes[0], compare); diff != "" {
		t.Error(diff)
	}
	if got := r.Routes[6].MaxSegments; got != 10 {
		t.Errorf("max_segments defaults to %d, want 10", got)
	}
	if got, want := r.Routes[1].Match.Labels["dry_run"], selector.TextValue("yes"); got != want {
		t.Errorf("a quoted word is %+v, want a text", got)
	}
	if l := r.Lanes[1]; l.MaxWaiting != 10000 || l.Ambiguous != "never" || l.TTL != time.Hour {
		t.Errorf("defaults of a lane: %+v", l)
	}
}

func TestExampleShowsEveryModeFallbackAndScoring(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, r := range parse(t, string(doc)).Routes {
		shown["mode "+string(r.Mode)], shown["fallback "+string(r.Fallback)], shown["scoring "+
			r.Scoring.Kind()] = true, true, true
		shown["health"] = shown["health"] || r.Health != nil
	}
	for _, want := range []string{
		"mode weighted", "mode round_robin", "mode longest_idle", "mode best_worker", "mode order",
		"fallback load_ratio", "fallback best_worker", "fallback round_robin", "fallback redraw",
		"fallback order",
		"scoring default", "scoring expression", "scoring function", "health",
	} {
		if !shown[want] {
			t.Errorf("the example shows no %s", want)
		}
	}
}

func TestALaneSaysHowAmbiguitiesAreResolved(t *testing.T) {
	t.Parallel()
	r := parse(t, "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]\n"+
		"lanes: {x: {clarify: [receipt, lookup], clarify_for: 90s}, y: {clarify: []}}")
	x, y := r.Lanes[0], r.Lanes[1]
	if !slices.Equal(x.Clarify, []string{"receipt", "lookup"}) || x.ClarifyFor != 90*time.Second {
		t.Errorf("lane x: %v for %s", x.Clarify, x.ClarifyFor)
	}
	if y.Clarify == nil || len(y.Clarify) != 0 {
		t.Errorf("lane y: %v", y.Clarify)
	}
}

func TestDocumentWithoutLanesHasTheThreeStandardOnes(t *testing.T) {
	t.Parallel()
	r := parse(t, "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]")
	ways := []string{"same_key", "lookup", "receipt"}
	want := []config.Lane{
		{
			Name: "otp", Topics: []string{"sms.otp"}, TTL: 10 * time.Minute, MaxWaiting: 10000,
			Ambiguous: "resend_once", Clarify: ways, ClarifyFor: 30 * time.Second,
		},
		{
			Name: "transactional", Topics: []string{"sms.transactional"}, TTL: time.Hour, MaxWaiting: 10000,
			Ambiguous: "never", Clarify: ways, ClarifyFor: 10 * time.Minute,
		},
		{
			Name: "bulk", Topics: []string{"sms.bulk"}, TTL: 24 * time.Hour, MaxWaiting: 10000,
			Ambiguous: "never", Clarify: ways, ClarifyFor: time.Hour,
		},
	}
	if diff := cmp.Diff(want, r.Lanes); diff != "" {
		t.Error(diff)
	}
	if r.Timezone != time.UTC {
		t.Errorf("time zone %v, want UTC", r.Timezone)
	}
}

func TestListingOrderAndExactWeightsSurvive(t *testing.T) {
	t.Parallel()
	r := parse(t, `
channels: {z: {provider: sandbox}, a: {provider: sandbox}, m: {provider: sandbox}, b: {provider: sandbox}}
routes: [{name: r, weights: {m: 34.50, z: "1.3", b: 58.700, a: 5.500000000}}]`)
	if diff := cmp.Diff([]string{"z", "a", "m", "b"}, r.ChannelNames()); diff != "" {
		t.Error(diff)
	}
	table, err := selector.NewTable(r.Routes[0].Entries())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, iv := range table.Intervals() {
		got = append(got, iv.Name+" "+iv.Weight.String())
	}
	if diff := cmp.Diff([]string{"m 34.5", "z 1.3", "b 58.7", "a 5.5"}, got); diff != "" ||
		table.Size() != 1000 {
		t.Errorf("N = %d, want 1000\n%s", table.Size(), diff)
	}
}

func TestTheSameDocumentInJSONReadsTheSame(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := yaml.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.MarshalIndent(plain, "", "\t") // keys are sorted, which is also the example's order
	if err != nil {
		t.Fatal(err)
	}
	fromYAML, fromJSON := parse(t, string(text)), parse(t, string(inJSON))
	fromYAML.Lanes = fromJSON.Lanes // the example lists them by urgency, the JSON by name
	if diff := cmp.Diff(fromYAML, fromJSON, compare); diff != "" {
		t.Error(diff)
	}
}

func TestSingularAndSingleValuesAreLists(t *testing.T) {
	t.Parallel()
	r := parse(t, `
channels: {a: {provider: sandbox}}
routes: [{name: r, match: {country: GB, prefix: "+44", tenant: shop, lane: otp}, weights: {a: 1}}]`)
	want := config.Match{
		Prefixes: []string{"+44"}, Countries: []string{"gb"}, Tenants: []string{"shop"},
		Lanes: []string{"otp"},
	}
	if diff := cmp.Diff(want, r.Routes[0].Match); diff != "" {
		t.Error(diff)
	}
}

func TestAnchorsWorkAsValues(t *testing.T) {
	t.Parallel()
	r := parse(t, `
channels:
  a: {provider: sandbox, limits: &limits [{window: 1s, max: 10}], price: &price {currency: EUR, default: 0.05}}
  b: {provider: sandbox, limits: *limits, price: *price}
routes: [{name: r, weights: {a: 1, b: 1}}]`)
	if diff := cmp.Diff(r.Channels[0].Limits, r.Channels[1].Limits); diff != "" ||
		r.Channels[1].Price.Lists[0].Default != 50_000 {
		t.Errorf("%+v\n%s", r.Channels[1], diff)
	}
}

func TestWeightsReadBackDigitByDigit(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[1-9][0-9]{0,3}(\.[0-9]{1,4})?`), 1, 8).Draw(t,
			"weights")
		var doc strings.Builder
		doc.WriteString("channels:\n")
		for i := range texts {
			doc.WriteString("  c" + string(rune('a'+i)) + ": {provider: sandbox}\n")
		}
		doc.WriteString("routes:\n- name: r\n  weights:\n")
		for i, w := range texts {
			doc.WriteString("    c" + string(rune('a'+i)) + ": " + w + "\n")
		}
		r, err := config.ParseRouting("r", []byte(doc.String()))
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range r.Routes[0].Weights {
			if w.Weight != selector.MustWeight(texts[i]) {
				t.Fatalf("weight %d is %s, want %s", i, w.Weight, texts[i])
			}
		}
	})
}

func TestLimitsThatSuitTheRouteAreAccepted(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{
		// exactly the longest message
		"[{window: 1s, max: 10, unit: segments}]",
		"[{window: 1s, max: 1}]",                                               // counts messages
		"[{window: 1s, max: 10, unit: segments}, {window: 1s, max: 1}]",        // two units
		"[{window: 1s, max: 10}, {window: 1m, max: 20}, {window: 1h, max: 5}]", // several windows
		"[]",
	} {
		parse(t,
			"channels: {a: {provider: sandbox, limits: "+limits+
				"}}\nroutes: [{name: r, wait: 1d, weights: {a: 1}}]")
	}
	// A channel of weight 0 gets no messages, so its limits are not checked.
	parse(t, `
channels: {a: {provider: sandbox}, b: {provider: sandbox, limits: [{window: 1s, max: 1, unit: segments}]}}
routes: [{name: r, weights: {a: 1, b: 0}}]`)
}

func TestAliasesThatExplodeAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	doc.WriteString("channels:\n  a:\n    provider: sandbox\n    settings:\n" +
		"      l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&doc, "      l%d: &l%d [%s*l%d]\n", i+1, i+1,
			strings.Repeat(fmt.Sprintf("*l%d, ", i), 9), i)
	}
	for _, d := range []string{doc.String(), "channels: {a: {settings: &s {x: *s, y: *s, z: *s}}}"} {
		_, err := config.ParseRouting("routing.yaml", []byte(d))
		want := "routing.yaml: the document has more than 200000 values or an anchor that contains " +
			"itself; write aliases out"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A document of the largest size must be read quickly, whatever is wrong with it.
func TestThousandsOfProblemsAreReportedInShort(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	doc.WriteString("channels:\n")
	for i := range 9000 {
		fmt.Fprintf(&doc, "  channel-%d: {provider: sandbox}\n", i)
	}
	doc.WriteString("routes:\n- name: r\n  weights:\n")
	for i := range 9000 {
		fmt.Fprintf(&doc, "    chanel-%d: 1\n", i)
	}
	_, err := config.ParseRouting("routing.yaml", []byte(doc.String()))
	if err == nil || strings.Count(err.Error(), "\n") != 20 ||
		!strings.HasSuffix(err.Error(), "and 8980 more problems; fix these first") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseRouting(f *testing.F) {
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, doc := range []string{
		"", "{}", "a: &a [*a]", "channels: &a {a: *a}", "routes: [{weights: {a: -1}}]", "---\n---\n",
		"\"\\0\": 1", "channels: {a: {settings: &s {x: *s}}}",
		"channels: {a: {provider: sandbox, labels: {x: .nan, y: 0x1p4}}}\n" +
			"routes: [{name: r, weights: {a: 1e3}}]",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := config.ParseRouting("fuzz.yaml", doc)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz.yaml:") {
					t.Errorf("a line of the report does not name the file: %q", line)
				}
			}
			return
		}
		for i := range r.Routes {
			route := &r.Routes[i]
			if _, err := selector.NewTable(route.Entries()); err != nil && route.Weights != nil {
				t.Errorf("accepted weights have no table: %v", err)
			}
			if len(route.Channels) == 0 || route.Weights != nil &&
				len(route.Weights) != len(route.Channels) {
				t.Errorf("accepted members %v with weights %v", route.Channels, route.Weights)
			}
		}
		if len(r.Channels) == 0 || len(r.Routes) == 0 || len(r.Lanes) == 0 {
			t.Error("accepted a document without channels, routes or lanes")
		}
	})
}

func FuzzWeight(f *testing.F) {
	for _, w := range []string{
		"25", "34.5", "-1", "1e3", ".nan", "0", "\"7\"", "0x10", "1_000", "[1]", "~", "9999999999999999",
	} {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, weight string) {
		if strings.ContainsAny(weight, "\n\r,#&*{}") {
			return
		}
		doc := "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: " + weight + "}}]"
		if r, err := config.ParseRouting("f", []byte(doc)); err == nil &&
			r.Routes[0].Weights[0].Weight.IsZero() {
			t.Errorf("weight %q was read as 0 for the only channel", weight)
		}
	})
}

func BenchmarkParseRouting(b *testing.B) {
	doc, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := config.ParseRouting("r", doc); err != nil {
			b.Fatal(err)
		}
	}
}

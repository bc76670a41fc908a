package main

import (
	"strings"
	"testing"

	"dispatcher/ledger"
)

// cheapest is testRouting with a least-cost route over two channels on line 7. The price of a is in
// EUR.
func cheapest(rates string) string {
	doc := strings.Replace(testRouting, `price: {currency: GBP, default: "0.031"}`,
		`price: {currency: EUR, default: "0.031"}`, 1)
	return strings.Replace(doc, "{name: default, match: {}, weights: {a: 25, b: 15, c: 60}}",
		"{name: default, match: {}, mode: best_worker, channels: [a, b], scoring: {expression: "+
			"price, descending: false}}", 1) + rates
}

// TestPricesThatCannotBeComparedAreRefusedWhereADocumentIsApplied: by apply, preview and the first
// start, with the line, the route and the channels. With exchange rates the same document is
// accepted.
func TestPricesThatCannotBeComparedAreRefusedWhereADocumentIsApplied(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	bad := write(t, "bad.yaml", cheapest(""))
	good := write(t, "good.yaml", cheapest("rates: {base: EUR, GBP: \"1.17\"}\n"))
	const want = "bad.yaml:7: routes[0].scoring.expression: reads price, but the channels of " +
		"route default have theirs in several currencies, EUR (a) and GBP (b)"
	for _, args := range [][]string{
		withReason("cheap", "routing", "apply", bad), {"preview", "--routing", bad},
	} {
		got := dispatcher(t, "", env, args...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error", args, got, exitUsage, want)
		}
	}
	if v := current(t, l); v.Version != 1 {
		t.Errorf("version %d is in force", v.Version)
	}
	for _, args := range [][]string{
		{"preview", "--routing", good}, withReason("cheap", "routing", "apply", good),
	} {
		if got := dispatcher(t, "", env, args...); got.code != exitOK {
			t.Errorf("%v: got %+v, want exit code %d", args, got, exitOK)
		}
	}
	if v := current(t, l); v.Version != 2 || !strings.Contains(v.Document, "rates: {base: EUR") {
		t.Errorf("got %+v", v)
	}
}

// TestARollbackToADocumentWithoutPricesIsRefused: it was applied before least cost required prices,
// and a channel without a price would be the cheapest. The error says what to do.
func TestARollbackToADocumentWithoutPricesIsRefused(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "earlier build", Reason: "least cost", Document: cheapest(""),
		Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	good := write(t, "good.yaml", cheapest("rates: {base: EUR, GBP: \"1.17\"}\n"))
	applyRouting(t, env, good)
	for _, more := range [][]string{nil, {"--dry-run"}} {
		got := dispatcher(t, "", env,
			append(withReason("back", "routing", "rollback", "2"), more...)...)
		for _, want := range []string{
			"routing version 2:7: routes[0].scoring.expression: reads price",
			"dispatcher routing show --version 2 > routing.yaml",
			"dispatcher routing apply routing.yaml",
		} {
			if got.code != exitUsage || !strings.Contains(got.err, want) {
				t.Errorf("%+v misses %q", got, want)
			}
		}
	}
	if v := current(t, l); v.Version != 3 {
		t.Errorf("version %d is in force", v.Version)
	}
}

// TestExplainComparesPricesAtTheRates: at 1.17 EUR for a GBP, 0.031 EUR is less than 0.028 GBP; at
// 0.5 it is more.
func TestExplainComparesPricesAtTheRates(t *testing.T) {
	t.Parallel()
	message := write(t, "m.json", `{"id":"m-1","to":"+447700900123","text":"hello"}`)
	for rate, want := range map[string]string{"1.17": "a", "0.5": "b"} {
		file := write(t, "r.yaml", cheapest("rates: {base: EUR, GBP: \""+rate+"\"}\n"))
		got := dispatcher(t, "", nil, "explain", "--routing", file, "--message", message,
			"--format", "json")
		if !strings.Contains(got.out, `"chosen": "`+want+`"`) {
			t.Errorf("at %s: %+v", rate, got)
		}
	}
}

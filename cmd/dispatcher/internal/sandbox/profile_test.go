package sandbox

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// TestRatiosAreKeptEvenly: after any number of submits each verdict was given nearly as often as
// its ratio says, and so were the receipts.
func TestRatiosAreKeptEvenly(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		part := rapid.Float64Range(0, 0.2)
		p := Profile{
			Reject: part.Draw(t,
				"reject"), Refuse: part.Draw(t, "refuse"), Throttle: part.Draw(t, "throttle"),
			Lose: part.Draw(t, "lose"), Cut: part.Draw(t, "cut"),
			Receipts: rapid.Float64Range(0, 1).
				Draw(t, "receipts"),
			Delivered: rapid.Float64Range(0, 1).Draw(t, "delivered"),
			Early:     part.Draw(t, "early"), Duplicates: part.Draw(t, "duplicates"),
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 20_000).Draw(t, "n")
		verdicts := map[providertest.Reply]int{}
		reported, delivered, early, twice := 0, 0, 0, 0
		for i := range uint64(n) {
			verdicts[p.verdict(i+1)]++
			receiptPlan := p.receiptPlan(i + 1)
			if receiptPlan.none {
				continue
			}
			reported++
			delivered += one(receiptPlan.state == provider.Delivered)
			early += one(receiptPlan.early)
			twice += one(receiptPlan.twice)
		}
		near := func(what string, got int, want float64) {
			if slack := 12 + 0.01*float64(n); math.Abs(float64(got)-want) > slack {
				t.Errorf("%d %s of %d, want %.0f", got, what, n, want)
			}
		}
		all := float64(n)
		near("rejected", verdicts[providertest.Reject], p.Reject*all)
		near("refused", verdicts[providertest.Refuse], p.Refuse*all)
		near("throttled", verdicts[providertest.Throttle], p.Throttle*all)
		near("lost", verdicts[providertest.Lose], p.Lose*all)
		near("cut", verdicts[providertest.Cut], p.Cut*all)
		near("told", reported, p.Receipts*all)
		near("delivered", delivered, p.Delivered*p.Receipts*all)
		near("early", early, p.Early*p.Receipts*all)
		near("twice", twice, p.Duplicates*p.Receipts*all)
	})
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func TestARatioOfZeroNeverAndOfOneAlwaysHappens(t *testing.T) {
	t.Parallel()
	none, all := Profile{}, Profile{Reject: 1, Receipts: 1, Delivered: 1, Early: 1, Duplicates: 1}
	for n := range uint64(100_000) {
		if none.verdict(n) != providertest.Accept || !none.receiptPlan(n).none {
			t.Fatalf("submit %d of nothing: %v", n, none.verdict(n))
		}
		if got := all.receiptPlan(n); all.verdict(n) != providertest.Reject ||
			got != (receiptPlan{state: provider.Delivered, early: true, twice: true}) {
			t.Fatalf("submit %d of all: %+v", n, got)
		}
	}
}

func TestAPlanIsReadOverItsProfile(t *testing.T) {
	t.Parallel()
	plan, err := ParsePlan([]byte(`
profile: {latency: 5ms, delivered: 0.5}
carriers:
  - {provider: smpp}
  - {name: nl, provider: bird, weight: "2.5", address: "127.0.0.1:0", profile: {reject: 0.1, delivered: 1}}
`), Usual())
	if err != nil {
		t.Fatal(err)
	}
	first, second := plan.Carriers[0], plan.Carriers[1]
	want := Usual()
	want.Latency, want.Delivered = 5_000_000, 0.5
	if first.Name != "smpp" || first.Profile != want {
		t.Errorf("first %+v", first)
	}
	want.Reject, want.Delivered = 0.1, 1
	if second.Name != "nl" || second.Weight != "2.5" || second.Address != "127.0.0.1:0" ||
		second.Profile != want {
		t.Errorf("second %+v", second)
	}
}

func TestAPlanThatMakesNoSenseIsRefusedWithItsFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                               "carriers: there is none",
		`carriers: [{provider: pigeon}]`: "is none of smpp",
		`carriers: [{provider: twilo}]`:  "did you mean twilio?",
		`carriers: [{name: a}]`:          "carriers.a.provider: is missing",
		`carriers: {provider: smpp}`:     "line 1: carriers: is not a list",
		`carriers: [smpp]`:               "carriers[0]: is not a mapping",
		`[]`:                             "the plan: is not a mapping",
		`carrier: []`: "line 1: carrier: there is no such key; known are " +
			"carriers, profile; did you mean carriers?",
		`carriers: [{provider: smpp, weight: heavy}]`: `carriers.smpp.weight: ` +
			`"heavy" is not a weight`,
		`carriers: [{provider: smpp, name: "a b"}]`: `"a b" cannot name a ` +
			`channel`,
		`carriers: [{provider: smpp, address: ` +
			`here}]`: `carriers.smpp.address: "here" is not host:port`,
		`carriers: [{provider: smpp, profile: {rejct: ` +
			`1}}]`: "carriers[0].profile.rejct: there is no such key",
		`carriers: [{provider: smpp, profile: {reject: ` +
			`much}}]`: `carriers[0].profile.reject: "much" is not a number such as 0.05`,
		`carriers: [{provider: smpp, profile: {rate: ` +
			`1.5}}]`: `carriers[0].profile.rate: "1.5" is not a whole number`,
		`carriers: [{provider: smpp, profile: {reject: }}]`: "is not a number",
		`carriers: [{provider: smpp, address: ` +
			`"0.0.0.0:2775"}]`: `carriers.smpp.address: "0.0.0.0:2775" is not on ` +
			`loopback, and a sandbox asks nobody for a password: write 127.0.0.1:2775`,
		`carriers: [{provider: smpp, profile: {latency: ` +
			`-1s}}]`: "carriers.smpp.profile.latency: cannot be negative",
		`carriers: [{provider: smpp}, {provider: smpp}]`: "used twice",
		`carriers: [{provider: smpp, profile: {reject: ` +
			`1.5}}]`: "carriers.smpp.profile.reject: 1.5 is not between 0 and 1",
		`carriers: [{provider: smpp, profile: {reject: 0.7, lose: 1}}]`: "more than all",
		`carriers: [{provider: smpp, profile: {delay: 1s}}]`:            "delay",
		`carriers: [{provider: smpp, port: 1}]`:                         "port",
		`profile: {latency: quick}`:                                     "not a duration such as 20ms",
		`carriers: [{provider: smpp, profile: {reject: .nan}}]`:         "not between",
	} {
		_, err := ParsePlan([]byte(text), Usual())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if err != nil &&
			(strings.Contains(err.Error(), "sandbox.") || strings.Contains(err.Error(),
				"float64")) {
			t.Errorf("%s: %v shows a type of Go", text, err)
		}
	}
}

func TestASandboxListensOnlyOnLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, "127.1.2.3:80": true, "[::1]:2775": true, "localhost:2775": true,
		"[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:0":            false, ":8090": false, "[::]:0": false, "192.168.1.10:80": false,
		"carrier.example:80": false, "127.0.0.1": false, "127.0.0.1:": false, "": false,
	} {
		if err := CheckLoopback(address); (err == nil) != want {
			t.Errorf("%q: got error %v", address, err)
		}
	}
	s, err := Start(Config{Plan: Each([]string{"smpp"}, Profile{}), Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if page, err := s.Serve(t.Context(), ":0"); err == nil {
		t.Errorf("a page at %s", page.URL())
		_ = page.Close()
	}
}

package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// versionOf parses a document with effects.
func versionOf(t *testing.T, document, effects string) *config.Routing {
	t.Helper()
	_, doc, err := config.ParseVersion(1, document, []byte(effects))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func appliedDocument(t *testing.T, text string) *config.Document {
	t.Helper()
	doc, err := config.ParseApplied("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

const everyMode = `
channels:
  a: {provider: sandbox}
  b: {provider: sandbox}
  c: {provider: sandbox}
routes:
  - {name: weighted, match: {tenants: [w]}, weights: {c: 60, a: 25}, fallback: redraw}
  - {name: turns, match: {tenants: [t]}, mode: round_robin, channels: [b, a], fallback: round_robin}
  - {name: idle, match: {tenants: [i]}, mode: longest_idle, channels: [a, b, c]}
  - name: best
    mode: best_worker
    weights: {c: 1, b: 2}
    fallback: best_worker
    scoring: {function: "http://127.0.0.1:1/score", token_file: token, allow_private: true,
      batch: true, batch_size: 7, deadline: 150ms, cache: 3s, descending: false, parameters: {x: 1}}
`

func TestRoutesAreCompiledAsTheDocumentHasThem(t *testing.T) {
	t.Parallel()
	compiled, err := Compile(versionOf(t, everyMode, ""), 5)
	if err != nil {
		t.Fatal(err)
	}
	type shape struct {
		Mode     decide.Mode
		Fallback decide.Ranker
		Members  []int
		Size     uint64
	}
	var got []shape
	for _, r := range compiled.Routes {
		s := shape{r.Mode, r.Fallback, r.Members, 0}
		if r.Table != nil {
			s.Size = r.Table.Size()
		}
		got = append(got, s)
	}
	want := []shape{
		{decide.Weighted, decide.Redraw, []int{2, 0}, 85},
		{decide.RoundRobinMode, decide.RoundRobin, []int{1, 0}, 0},
		{decide.LongestIdle, decide.LoadRatio, []int{0, 1, 2}, 0},
		{decide.BestWorkerMode, decide.BestWorker, []int{2, 1}, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := compiled.Routes[0].Scoring; s != (decide.Scoring{}) {
		t.Errorf("the default scoring is %+v", s)
	}
	function := decide.Scoring{Ascending: true, Function: &decide.Function{
		URL: "http://127.0.0.1:1/score", TokenFile: "token", AllowPrivate: true, Batch: true,
		BatchSize: 7, Deadline: 150 * time.Millisecond, Cache: 3 * time.Second,
		Parameters: map[string]selector.Value{"x": selector.NumberValue(1)},
	}}
	if diff := cmp.Diff(function, compiled.Routes[3].Scoring); diff != "" {
		t.Error(diff)
	}
}

func TestDrawsUseEffectiveWeights(t *testing.T) {
	t.Parallel()
	const document = `
channels: {a: {provider: sandbox}, b: {provider: sandbox}}
routes: [{name: default, weights: {a: 40, b: 60}, health: {errors: 5}}]
`
	compiled, err := Compile(versionOf(t, document, `{"weights":{"default":{"b":"7.5"}}}`), 5)
	if err != nil {
		t.Fatal(err)
	}
	if got := compiled.Routes[0].Table.Size(); got != 475 {
		t.Errorf("size %d, want that of 40 and 7.5", got)
	}
}

func TestTheLedgerGetsAllChannelsAndRoutes(t *testing.T) {
	t.Parallel()
	seven := int64(7)
	n := NewRouting(appliedDocument(t, everyMode), nil, "alice", "because", &seven)
	want := []ledger.RouteSpec{
		{
			Name: "weighted", Members: []string{"c", "a"}, Weights: []string{"60", "25"},
			Mode: "weighted", Fallback: "redraw",
		},
		{
			Name: "turns", Members: []string{"b", "a"},
			Mode: "round_robin", Fallback: "round_robin",
		},
		{
			Name: "idle", Members: []string{"a", "b", "c"},
			Mode: "longest_idle", Fallback: "load_ratio",
		},
		{
			Name: "best", Members: []string{"c", "b"}, Weights: []string{"1", "2"},
			Mode: "best_worker", Fallback: "best_worker", LowestFirst: true,
		},
	}
	if diff := cmp.Diff(want, n.Routes); diff != "" {
		t.Error(diff)
	}
	if len(n.Channels) != 3 || n.Channels[2].Name != "c" || n.Document != everyMode ||
		n.Author != "alice" || n.Reason != "because" || *n.Expect != 7 {
		t.Errorf("got %+v", n)
	}
}

// TestADocumentKeepsTheEffectsOfTheOneBefore calls the function as the ledger does under its lock.
func TestADocumentKeepsTheEffectsOfTheOneBefore(t *testing.T) {
	t.Parallel()
	const before = `
channels: {a: {provider: sandbox}, b: {provider: sandbox}}
routes: [{name: r, weights: {a: 60, b: 40}, health: {errors: 5}}]
`
	after := strings.Replace(before, "a: 60", "a: 30", 1)
	n := NewRouting(appliedDocument(t, after), nil, "alice", "because", nil)
	current := ledger.RoutingVersion{
		Version: 7, Document: before,
		Effects: []byte(`{"weights": {"r": {"a": "45"}}}`),
	}
	if got, want := string(n.Effects(current)), `{"weights":{"r":{"a":"22.5"}}}`; got != want {
		t.Errorf("effects %s, want %s", got, want)
	}
	// The routing of the version that the change is based on is not read again.
	current.Document = "not read"
	seven := current.Version
	known := versionOf(t, before, string(current.Effects))
	n = NewRouting(appliedDocument(t, after), known, "alice", "because", &seven)
	if got, want := string(n.Effects(current)), `{"weights":{"r":{"a":"22.5"}}}`; got != want {
		t.Errorf("effects %s, want %s", got, want)
	}
	n = NewRouting(appliedDocument(t, after), nil, "alice", "because", nil)
	for name, text := range map[string]string{
		"no document":        "",
		"of another program": "routes: {}",
	} {
		current.Document = text
		if got := n.Effects(current); got != nil {
			t.Errorf("%s: effects %s", name, got)
		}
	}
}

const everyLimit = `
channels:
  a:
    provider: sandbox
    limits:
      - {window: 1s, max: 100, reserve: {otp: 20%}}
      - {window: 1s, max: 10, tenant: shop}
      - {window: 1d, max: 500, unit: money, currency: EUR}
    price: {currency: EUR, default: "0.03"}
    admission: {policy: curve, curve_factor: 0.5}
    active: {max: 50, until: receipt, hold: 3m}
  b: {provider: sandbox, active: {max: 5, hold: 7s}}
limits: [{window: 1m, max: 1000, prefix: "+44"}]
routes: [{name: default, weights: {a: 1, b: 1}}]
lanes: {otp: {topics: [o], ttl: 5m}, bulk: {topics: [b], ttl: 5m}}
`

func TestLimitsAreCompiledAndReachTheLedgerAsTheDocumentHasThem(t *testing.T) {
	t.Parallel()
	doc := versionOf(t, everyLimit, "")
	compiled, err := Compile(doc, 5)
	if err != nil {
		t.Fatal(err)
	}
	over := []admission.Limit{{
		Scope: admission.Scope{Prefix: "+44"}, Window: admission.Minute,
		Max: 1000,
	}}
	a, b := &compiled.Channels[0], &compiled.Channels[1]
	for name, pair := range map[string][2]any{
		"over all":        {over, compiled.Limits},
		"of a":            {doc.Channels[0].Limits, a.Limits},
		"policy of a":     {admission.Curve{Factor: 0.5}, a.Policy},
		"policy of b":     {admission.Policy(nil), b.Policy},
		"hold of a":       {3 * time.Minute, a.Active.Hold},
		"hold of b":       {7 * time.Second, b.Active.Hold},
		"a until receipt": {true, a.Active.UntilReceipt()},
		"b until receipt": {false, b.Active.UntilReceipt()},
		"the ledger's": {over, NewRouting(appliedDocument(t, everyLimit), nil, "alice",
			"because", nil).Limits},
		"the ledger's of a": {doc.Channels[0].Limits, Specs(doc)[0].Limits},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(a.Limits) != 3 || len(a.Limits[0].Reserve) != 1 || a.Limits[1].Scope.Tenant != "shop" ||
		a.Limits[2].Unit != admission.Money {
		t.Errorf("got %+v", a.Limits)
	}
}

func TestOnlyWhatAConnectionDependsOnConnectsAnew(t *testing.T) {
	t.Parallel()
	base := config.Channel{
		Name: "a", Provider: "smpp", Settings: map[string]any{"address": "x:1", "binds": 2},
		Capacity: 10, State: config.Enabled,
		Limits: []admission.Limit{
			{Window: admission.Second, Max: 40},
			{Window: admission.Day, Max: 1000},
		},
	}
	for name, tc := range map[string]struct {
		change func(*config.Channel)
		same   bool
	}{
		"nothing": {func(*config.Channel) {}, true},
		"a daily limit": {func(c *config.Channel) {
			c.Limits = []admission.Limit{c.Limits[0], {Window: admission.Day, Max: 5}}
		}, true},
		"price": {func(c *config.Channel) {
			c.Price.Lists = []config.PriceList{{Default: 5}}
		}, true},
		"labels": {func(c *config.Channel) {
			c.Labels = map[string]selector.Value{"a": {}}
		}, true},
		"state":    {func(c *config.Channel) { c.State = config.Draining }, true},
		"capacity": {func(c *config.Channel) { c.Capacity = 11 }, true},
		"active":   {func(c *config.Channel) { c.Active.Max = 11 }, true},
		"pace": {func(c *config.Channel) {
			c.Limits = []admission.Limit{{Window: admission.Second, Max: 41}}
		}, true},
		"the unit of pace": {func(c *config.Channel) {
			c.Limits = []admission.Limit{{
				Window: admission.Second, Max: 40,
				Unit: admission.Segments,
			}}
		}, true},
		"settings": {func(c *config.Channel) {
			c.Settings = map[string]any{"address": "x:2", "binds": 2}
		}, false},
		"provider": {func(c *config.Channel) { c.Provider = "sandbox" }, false},
		"test":     {func(c *config.Channel) { c.Test = true }, false},
	} {
		changed := base
		tc.change(&changed)
		if got := sameConnection(&base, &changed); got != tc.same {
			t.Errorf("%s: same %v", name, got)
		}
	}
}

// TestNewRoutingKnowsWhereDaysAreCut: otherwise a new limit per day would not know what its day has
// used.
func TestNewRoutingKnowsWhereDaysAreCut(t *testing.T) {
	t.Parallel()
	doc := appliedDocument(t, "timezone: Europe/London\n"+everyMode)
	if n := NewRouting(doc, nil, "a", "b", nil); n.Zone != doc.Routing.Timezone ||
		n.Zone.String() != "Europe/London" {
		t.Errorf("zone %v", n.Zone)
	}
}

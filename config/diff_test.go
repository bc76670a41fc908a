package config_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/provider/sms"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// full is a routing with every field set.
func full(t *testing.T) *config.Routing {
	t.Helper()
	expression, err := score.Compile("price")
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	labels := func() map[string]selector.Value {
		return map[string]selector.Value{"quality": selector.NumberValue(9)}
	}
	limit := func() admission.Limit {
		return admission.Limit{
			Scope: admission.Scope{Tenant: "x"}, Window: admission.Minute, Max: 7, Unit: admission.Money,
			Currency: "EUR",
			Sliding:  true, Burst: 3, Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}},
		}
	}
	return &config.Routing{
		Timezone: zone,
		Guards: []config.Guard{{
			Per: config.ByTenant, Times: 5, AtLeast: 200, Days: 9, Action: config.GuardWarns,
		}},
		Channels: []config.Channel{{
			Name: "a", Provider: "smpp", Settings: map[string]any{"address": "x:1", "tls": true},
			Capacity: 5,
			Limits:   []admission.Limit{limit()}, Policy: admission.Curve{Factor: 2},
			Active: config.ActiveLimit{Max: 3, Until: "receipt", Hold: time.Hour}, State: config.Draining,
			Labels: labels(),
			Price: config.Price{Currency: "EUR", Lists: []config.PriceList{{
				Default: 30_000, Prefixes: map[string]int64{"+44": 1}, Countries: map[string]int64{"gb": 2},
				Networks: map[string]int64{"23415": 3},
			}}},
			Contract: config.Contract{Unit: admission.Segments, Commitment: 10, Cap: 20, Begins: 15},
			Senders: config.Senders{Default: "ACME", Rules: []config.SenderRule{{
				Countries: []string{"us"}, Allow: []sms.SenderKind{sms.LongCode}, IDs: []string{"ACME"},
				From: "+14155550100",
			}}},
			Test: true,
		}},
		Routes: []config.Route{{
			Name: "r",
			Match: config.Match{
				Prefixes: []string{"+44"}, Countries: []string{"gb"}, Tenants: []string{"x"},
				Lanes: []string{"otp"}, Labels: labels(), Senders: []string{"ACME"},
				Hours: config.Hours{{Days: 62, From: 480, To: 1080}},
			},
			Mode: "weighted", Channels: []string{"a"}, Weights: []config.Weight{weight("a", "1")},
			Fallback: "best_worker",
			Scoring: config.Scoring{Expression: expression, Function: &config.Function{
				URL: "https://x.example", TokenFile: "t", Parameters: labels(), Batch: true, BatchSize: 5,
				Deadline: time.Second, Cache: time.Minute,
			}},
			Health: &config.Health{
				Errors: 1, Window: time.Minute, Step: 2, Floor: 3, Interval: time.Hour, Quiet: time.Hour,
				Receipts: &config.HealthReceipts{
					Delivered: 80, Within: time.Second, Window: time.Hour, Least: 30,
				},
			},
			NoReceipt: &config.NoReceipt{After: time.Minute},
			Quiet: &config.Quiet{
				Hours: config.Hours{{Days: 127, From: 1320, To: 480}}, Zone: zone, Next: true,
			},
			Wait: time.Second, BypassSelectors: true, MaxSegments: 4, Substitute: true, HoldThrottled: true,
			PriceCap: map[string]int64{"EUR": 100_000}, Tolerance: 3_000_000,
			AllowedCountries: []string{"gb"},
		}},
		Rates:         config.Rates{Base: "EUR", Per: map[string]int64{"GBP": 1_170_000_000}},
		CountryGroups: map[string][]string{"dach": {"de"}},
		Limits:        []admission.Limit{limit()},
		Paused: config.Paused{
			Lanes: []string{"bulk"}, Routes: []string{"default"}, Tenants: []string{"shop"},
			Prefixes: []string{"+44"},
		},
		Blocked: config.Blocked{Prefixes: []string{"+4487"}, Countries: []string{"kp"}, Premium: true},
		Allowed: config.Allowed{
			Countries: []string{"gb"},
			Tenants:   []config.TenantCountries{{Tenant: "x", Countries: []string{"fr"}}},
		},
		Lanes: []config.Lane{
			{
				Name: "otp", Topics: []string{"t"}, TTL: time.Minute, MaxWaiting: 5, Ambiguous: "never",
				IgnoreOptOut: true, Clarify: []string{"lookup"}, ClarifyFor: time.Minute,
			},
		},
		Inbound: config.Inbound{
			Keywords: config.Keywords{Stop: []string{"HALT"}, Start: []string{"GO"}},
			Numbers: []config.InboundSource{
				{
					Name: "+15550100", Tenant: "x", Channels: []string{"a"},
					Keywords: config.Keywords{Stop: []string{"NO"}, Start: []string{"OK"}},
				},
			},
			Channels: []config.InboundSource{
				{
					Name: "a", Tenant: "y", Channels: []string{"a"},
					Keywords: config.Keywords{Stop: []string{"NO"}, Start: []string{"OK"}},
				},
			},
		},
	}
}

// mutation changes one field of a routing; at is the field's path.
type mutation struct {
	at    string
	apply func()
}

// mutations lists every field below a value by reflection, so that it covers fields added later.
func mutations(t *testing.T, at string, v reflect.Value) []mutation {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		return []mutation{
			{at, func() { v.Set(reflect.ValueOf(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))) }},
		}
	case selector.Weight:
		return []mutation{{at, func() { v.Set(reflect.ValueOf(selector.MustWeight("0.125"))) }}}
	case *time.Location:
		return []mutation{{at, func() { v.Set(reflect.ValueOf(time.UTC)) }}}
	case admission.Policy:
		return []mutation{
			{at, func() { v.SetZero() }},
			{at, func() { v.Set(reflect.ValueOf(admission.CounterPolicy{})) }},
			{at, func() { v.Set(reflect.ValueOf(admission.Curve{Factor: 3})) }},
		}
	case *score.Expression:
		other, err := score.Compile("load_ratio")
		if err != nil {
			t.Fatal(err)
		}
		return []mutation{{at, func() { v.Set(reflect.ValueOf(other)) }}}
	}
	var out []mutation
	switch v.Kind() {
	case reflect.String:
		return []mutation{{at, func() { v.SetString(v.String() + "x") }}}
	case reflect.Bool:
		return []mutation{{at, func() { v.SetBool(!v.Bool()) }}}
	case reflect.Int, reflect.Int64:
		return []mutation{{at, func() { v.SetInt(v.Int() + 1) }}}
	case reflect.Uint8:
		return []mutation{{at, func() { v.SetUint(v.Uint() - 1) }}}
	case reflect.Float64:
		return []mutation{{at, func() { v.SetFloat(v.Float() + 1) }}}
	case reflect.Struct:
		for i := range v.NumField() {
			if value, ok := reflect.TypeAssert[selector.Value](v); ok && value.IsNumber &&
				v.Type().Field(i).Name == "Text" {
				continue // a number has no text
			}
			if v.Type() == reflect.TypeFor[config.Function]() && v.Type().Field(i).Name == "Token" {
				continue // not part of the document
			}
			out = append(out, mutations(t, at+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
	case reflect.Slice:
		out = append(out, mutation{at + "[]", func() { v.SetLen(0) }})
		out = append(out, mutations(t, at+"[0]", v.Index(0))...)
	case reflect.Map:
		out = append(out, mutation{at + "{}", func() { v.Clear() }})
		for _, key := range v.MapKeys() {
			copied := reflect.New(v.Type().Elem()).Elem()
			copied.Set(v.MapIndex(key))
			for _, m := range mutations(t, at+"{"+key.String()+"}", copied) {
				out = append(out, mutation{m.at, func() { m.apply(); v.SetMapIndex(key, copied) }})
			}
		}
	case reflect.Pointer:
		out = append(out, mutation{at + "*", func() { v.SetZero() }})
		out = append(out, mutations(t, at, v.Elem())...)
	case reflect.Interface:
		return []mutation{
			{at, func() { v.Set(reflect.ValueOf([]any{"other", 2.0, nil, map[string]any{}})) }},
		}
	default:
		t.Fatalf("%s is a %s, which this test does not know how to change", at, v.Kind())
	}
	return out
}

func TestDiffSeesEveryField(t *testing.T) {
	t.Parallel()
	if d := config.Diff(full(t), full(t)); len(d) != 0 {
		t.Fatalf("equal routings differ: %+v", d)
	}
	count := len(mutations(t, "", reflect.ValueOf(full(t)).Elem()))
	if count < 70 {
		t.Fatalf("only %d fields were found", count)
	}
	for i := range count {
		before, after := full(t), full(t)
		m := mutations(t, "", reflect.ValueOf(after).Elem())[i]
		m.apply()
		for _, d := range [][]config.Change{config.Diff(before, after), config.Diff(after, before)} {
			if len(d) == 0 {
				t.Errorf("a change of %s is not reported", m.at)
			}
			for _, c := range d {
				if c.Path == "" || c.From == c.To {
					t.Errorf("a change of %s is reported as %+v", m.at, c)
				}
			}
		}
	}
}

func TestDiffReadsAsAnOperatorWouldWriteIt(t *testing.T) {
	t.Parallel()
	before := parse(t, `
limits: [{window: 1d, max: 100, tenant: shop}]
channels:
  a: {provider: sandbox, limits: [{window: 1s, max: 100}, {window: 1d, max: 5000, unit: segments}], labels: {quality: 9}}
  d: {provider: sandbox, admission: counter, limits: [{window: 1m, max: 40, sliding: true}, {window: 1h, max: 40, reserve: {otp: 20%}}], price: {currency: EUR, default: 0.05}}
  b: {provider: sandbox, capacity: 50, price: {currency: EUR, default: 0.05}}
  x.y: {provider: smpp, settings: {address: [one:1, two:2]}}
routes:
- {name: codes, match: {lane: otp, country: GB}, weights: {a: 25, b: 75}, wait: 90m}
- {name: default, weights: {a: 1, b: 1, x.y: 1}}
lanes: {otp: {}, bulk: {}}`)
	after := parse(t, `
timezone: Europe/Warsaw
limits: [{window: 1d, max: 100, tenant: my.shop}]
channels:
  a: {provider: sandbox, limits: [{max: 5000, unit: segments, window: 1d}, {window: 1s, max: 120}], labels: {quality: "9"}, state: enabled}
  d: {provider: sandbox, admission: curve, active: {max: 5, until: receipt}, price: {currency: EUR, default: 0.05},
      limits: [{window: 1m, max: 60, sliding: true}, {window: 1h, max: 40, reserve: {otp: 25%, promo: 5%}}, {window: 1d, unit: money, max: "250.00", prefix: "+44"}]}
  x.y: {provider: smpp, settings: {address: [one:1, three:3], window: 10}}
  c: {provider: sandbox, state: draining, capacity: 100}
routes:
- {name: new, match: {tenant: shop}, mode: best_worker, channels: [c, a], scoring: {expression: load_ratio, descending: false}}
- {name: codes, match: {lane: otp, countries: [GB, IE]}, weights: {a: 30.50, c: 69.5}}
- {name: default, weights: {x.y: 1.0, a: 1}, health: {errors: 20}}
lanes: {otp: {ttl: 10m}, promo: {}}`)
	want := []config.Change{
		{Path: "timezone", From: "UTC", To: "Europe/Warsaw"},
		{Path: "channels.a.limits.1d.segments", From: "", To: ""},
		{Path: "channels.a.limits.1s.messages", From: "100", To: "120"},
		{Path: "channels.a.labels.quality", From: "9", To: `"9"`},
		{Path: "channels.d.limits.1m.messages", From: "40", To: "60"},
		{Path: "channels.d.limits.1m.messages.burst", From: "4, then 37 per 1m", To: "6, then 55 per 1m"},
		{Path: "channels.d.limits.1h.messages.reserve.otp", From: "20%", To: "25%"},
		{Path: "channels.d.limits.1h.messages.reserve.promo", To: "5%"},
		{Path: "channels.d.limits.prefix.+44.1d.money", To: "250.00 EUR"},
		{Path: "channels.d.admission", From: "counter", To: "curve"},
		{Path: "channels.d.active.max", To: "5"},
		{Path: "channels.d.active.until", From: "submit", To: "receipt"},
		{Path: "channels.d.active.hold", From: "0s", To: "10m"},
		{Path: "channels.b.provider", From: "sandbox"},
		{Path: "channels.b.capacity", From: "50"},
		{Path: "channels.b.price.currency", From: "EUR"},
		{Path: "channels.b.price.default", From: "0.05"},
		{Path: `channels."x.y".settings.address[1]`, From: "two:2", To: "three:3"},
		{Path: `channels."x.y".settings.window`, To: "10"},
		{Path: "channels.c.provider", To: "sandbox"},
		{Path: "channels.c.state", To: "draining"},
		{Path: "routes", From: "codes, default", To: "new, codes, default"},
		{Path: "routes.new.match.tenants", To: "shop"},
		{Path: "routes.new.mode", To: "best_worker"},
		{Path: "routes.new.channels", To: "[c, a]"},
		{Path: "routes.new.scoring", To: "expression"},
		{Path: "routes.new.scoring.expression", To: "load_ratio"},
		{Path: "routes.new.scoring.descending", To: "false"},
		{Path: "routes.codes.match.countries", From: "gb", To: "gb, ie"},
		{Path: "routes.codes.weights.a", From: "25", To: "30.5"},
		{Path: "routes.codes.weights.b", From: "75"},
		{Path: "routes.codes.weights.c", To: "69.5"},
		{Path: "routes.codes.wait", From: "1h30m", To: "0s"},
		{Path: "routes.default.weights.b", From: "1"},
		{Path: "routes.default.weights", From: "a, b, x.y", To: "x.y, a"},
		{Path: "routes.default.health.errors", To: "20"},
		{Path: "limits.tenant.shop.1d.messages", From: "100"},
		{Path: `limits.tenant."my.shop".1d.messages`, To: "100"},
		{Path: "lanes.bulk.topics", From: "sms.bulk"},
		{Path: "lanes.promo.topics", To: "sms.promo"},
	}
	// The change is an order without meaning.
	want = slices.DeleteFunc(want, func(c config.Change) bool { return c.From == c.To })
	if diff := cmp.Diff(want, config.Diff(before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestDiffHidesWhatCouldBeASecret(t *testing.T) {
	t.Parallel()
	with := func(secret string) *config.Routing {
		r := full(t)
		r.Channels[0].Settings = map[string]any{
			"password": secret, "list": []any{map[string]any{"api_key": secret}},
			"token": map[string]any{"value": secret},
			"url":   "https://me:" + secret + "@x.example",
		}
		return r
	}
	changes := config.Diff(with("hunter2"), with("hunter3"))
	if len(changes) != 4 {
		t.Errorf("%d changes, want 4", len(changes))
	}
	for _, c := range changes {
		if strings.Contains(c.From+c.To, "hunter") || !strings.Contains(c.From, config.Hidden) ||
			!strings.Contains(c.To, config.Hidden) {
			t.Errorf("%+v", c)
		}
	}
}

func TestDiffOfManyNamesShowsThePlaceThatMoved(t *testing.T) {
	t.Parallel()
	list := func(names []string) *config.Routing {
		r := full(t)
		r.Lanes = nil
		for _, n := range names {
			r.Lanes = append(r.Lanes,
				config.Lane{
					Name: n, Topics: []string{n}, TTL: time.Hour, MaxWaiting: 10_000, Ambiguous: "never",
				})
		}
		return r
	}
	names := strings.Split("abcdefghijklmnopqrst", "")
	moved := slices.Clone(names)
	moved[10], moved[11] = moved[11], moved[10]
	want := []config.Change{
		{Path: "lanes", From: "..., j, k, l, m, n, o, p, q, ...", To: "..., j, l, k, m, n, o, p, q, ..."},
	}
	if diff := cmp.Diff(want, config.Diff(list(names), list(moved))); diff != "" {
		t.Error(diff)
	}
}

func TestDiffShowsEffectiveWeightsApart(t *testing.T) {
	t.Parallel()
	doc := []byte(healthy)
	_, before, err := config.ParseVersion(1, string(doc), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := config.ParseVersion(1, string(doc), []byte(`{"weights":{"r":{"a":"45"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Change{{Path: "routes.r.effective_weights.a", To: "45"}}
	if diff := cmp.Diff(want, config.Diff(before, after)); diff != "" {
		t.Error(diff)
	}
	want = []config.Change{{Path: "routes.r.effective_weights.a", From: "45"}}
	if diff := cmp.Diff(want, config.Diff(after, before)); diff != "" {
		t.Error(diff)
	}
}

// Both directions name the same paths with the sides exchanged. Orders are left out: an insertion
// in the middle reports its position, while a removal there reports no path.
func TestDiffOfTheOppositeDirectionIsItsMirror(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(example), "\n")
	tier.Check(t, func(t *rapid.T) {
		read := func(name string) *config.Routing {
			cut := rapid.IntRange(0, len(lines)-1).Draw(t, name)
			r, err := config.ParseRouting("r",
				[]byte(strings.Join(slices.Delete(slices.Clone(lines), cut, cut+1), "")))
			if err != nil {
				r, _ = config.ParseRouting("r", example)
			}
			return r
		}
		a, b := read("line of the first"), read("line of the second")
		there, back := sides(config.Diff(a, b), false), sides(config.Diff(b, a), true)
		if diff := cmp.Diff(there, back); diff != "" {
			t.Fatal(diff)
		}
		if changes := config.Diff(a, b); cmp.Equal(a, b, compare) != (len(changes) == 0) {
			t.Fatalf("equal: %v, changes: %v", len(changes) > 0, changes)
		}
	})
}

// sides maps the path of each change except orders to its two sides, exchanged if asked for.
func sides(changes []config.Change, exchange bool) map[string][2]string {
	out := map[string][2]string{}
	for _, c := range changes {
		if !strings.Contains(c.Path, ".") || strings.HasSuffix(c.Path, ".weights") {
			continue
		}
		out[c.Path] = [2]string{c.From, c.To}
		if exchange {
			out[c.Path] = [2]string{c.To, c.From}
		}
	}
	return out
}

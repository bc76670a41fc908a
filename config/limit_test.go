package config_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
)

// limited returns a document whose channel a has a price and the given keys, and which has the
// given routes.
func limited(keys, routes string) string {
	return "channels: {a: {provider: sandbox, price: {currency: GBP, default: \"0.03\", prefixes: " +
		"{\"+44\": \"0.05\"}}, " + keys + "}}\nroutes: [" + routes + "]"
}

const anyRoute = "{name: r, weights: {a: 1}}"

func TestLimitsReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := parse(t, limited(`limits: [
  {window: 1s, max: 100, unit: segments, sliding: true},
  {window: 1m, max: 100, unit: segments, reserve: {otp: 20%, bulk: 5%}},
  {window: 1d, max: "250.50", unit: money},
  {window: 1d, max: 0, tenant: shop},
  {window: 1d, max: 7, unit: money, currency: GBP, prefix: "+44"}]`, anyRoute)+`
limits: [{window: 1m, max: "0.50", unit: money, currency: GBP, tenant: shop}]`)
	want := []admission.Limit{
		{Window: admission.Second, Max: 100, Unit: admission.Segments, Sliding: true, Burst: 10},
		{
			Window: admission.Minute, Max: 100, Unit: admission.Segments,
			Reserve: []admission.Reserve{{Lane: "bulk", Percent: 5}, {Lane: "otp", Percent: 20}},
		},
		{Window: admission.Day, Max: 250_500_000, Unit: admission.Money, Currency: "GBP"},
		{Scope: admission.Scope{Tenant: "shop"}, Window: admission.Day},
		{
			Scope: admission.Scope{Prefix: "+44"}, Window: admission.Day, Max: 7_000_000,
			Unit: admission.Money, Currency: "GBP",
		},
	}
	if diff := cmp.Diff(want, r.Channels[0].Limits); diff != "" {
		t.Error(diff)
	}
	want = []admission.Limit{
		{
			Scope: admission.Scope{Tenant: "shop"}, Window: admission.Minute, Max: 500_000,
			Unit: admission.Money, Currency: "GBP",
		},
	}
	if diff := cmp.Diff(want, r.Limits); diff != "" {
		t.Error(diff)
	}
}

// The default burst lets every message pass and costs a limit per second as little rate as
// possible.
func TestBurstsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	short, long := "{name: q, match: {tenant: shop}, max_segments: 3, weights: {a: 1}}",
		"{name: r, max_segments: 12, weights: {a: 1}}"
	for _, c := range []struct {
		limit, routes string
		want          int64
	}{
		{"window: 1s, max: 100", long, 1},
		{"window: 1s, max: 100, unit: segments", short + ", " + long, 12},
		{"window: 1s, max: 100, unit: segments, tenant: other", short, 10}, // no route takes this tenant
		{"window: 1s, max: 100, unit: segments, tenant: shop", short, 3},
		{"window: 1m, max: 100", long, 10},
		{"window: 1m, max: 1", long, 1},
		{"window: 1m, max: 13, unit: segments", long, 12},
		{"window: 1h, max: 100, unit: segments", long, 12},
		{"window: 1h, max: 1000, unit: segments", long, 100},
		{"window: 1s, max: 100, burst: 30", long, 30},
		{"window: 1s, max: 30, burst: 30", long, 30},
		{"window: 1s, max: 0", long, 0},
		{"window: 1s, max: 0, unit: segments, burst: 30", long, 0},
	} {
		r := parse(t, limited("limits: [{sliding: true, "+c.limit+"}]", c.routes))
		if got := r.Channels[0].Limits[0].Burst; got != c.want {
			t.Errorf("%s: burst %d, want %d", c.limit, got, c.want)
		}
	}
	r := parse(t,
		limited("test: true", short+", "+long)+
			"\nlimits: [{window: 1s, max: 50, unit: segments, sliding: true, prefix: '+44'}]")
	if r.Limits[0].Burst != 12 {
		t.Errorf("over all channels: burst %d", r.Limits[0].Burst)
	}
}

func TestPoliciesReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]admission.Policy{
		"exact": nil, "{policy: exact}": nil, "even": admission.Even{},
		"counter":                              admission.CounterPolicy{},
		"curve":                                admission.Curve{Factor: 1},
		"{policy: curve, curve_factor: 0.204}": admission.Curve{Factor: 0.204},
	} {
		r := parse(t, limited("limits: [{window: 1s, max: 9}], admission: "+text, anyRoute))
		if got := r.Channels[0].Policy; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if r := parse(t, limited("admission: exact", anyRoute)); r.Channels[0].Policy != nil {
		t.Error("an explicit default differs from the default")
	}
}

func TestSlotsUntilTheReceiptAreHeldForTenMinutes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.ActiveLimit{
		"{max: 5}":                            {Max: 5, Until: "submit"},
		"{max: 5, hold: 30s}":                 {Max: 5, Until: "submit", Hold: 30 * time.Second},
		"{max: 5, hold: 0}":                   {Max: 5, Until: "submit"},
		"{max: 5, until: receipt}":            {Max: 5, Until: "receipt", Hold: 10 * time.Minute},
		"{max: 5, until: receipt, hold: 24h}": {Max: 5, Until: "receipt", Hold: 24 * time.Hour},
	} {
		if got := parse(t, limited("active: "+text, anyRoute)).Channels[0].Active; got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestLimitsThatConcernNoSuchMessageAreAccepted: they count other messages, other numbers, or close
// the channel on purpose.
func TestLimitsThatConcernNoSuchMessageAreAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"window: 1s, max: 0, unit: segments", anyRoute},
		{"window: 1d, max: 0, unit: money", anyRoute},
		{
			"window: 1s, max: 5, unit: segments, tenant: other",
			"{name: r, match: {tenants: [shop]}, weights: {a: 1}}",
		},
		{
			"window: 1s, max: 5, unit: segments, prefix: '+353'",
			"{name: r, match: {prefixes: ['+44', '+1']}, weights: {a: 1}}",
		},
		// exactly the longest message to the most expensive country
		{"window: 1d, max: 0.5, unit: money", anyRoute},
		// a cheaper country
		{"window: 1d, max: 0.3, unit: money, prefix: '+1'", anyRoute},
		// the route admits that country alone
		{"window: 1d, max: 0.3, unit: money", "{name: r, match: {prefixes: ['+1']}, weights: {a: 1}}"},
		// short messages
		{
			"window: 1d, max: 0.15, unit: money, prefix: '+44'",
			"{name: r, max_segments: 3, weights: {a: 1}}",
		},
		// one segment
		{
			"window: 1d, max: 0.05, unit: money, prefix: '+44'",
			"{name: r, max_segments: 1, weights: {a: 1}}",
		},
		// exactly enough
		{
			"window: 1d, max: 5, unit: segments",
			"{name: r, mode: weighted, max_segments: 5, weights: {a: 1}}",
		},
	} {
		parse(t, limited("limits: [{"+c[0]+"}]", c[1]))
	}
	for _, limit := range []string{
		"window: 1d, max: 0.49, unit: money", "window: 1d, max: 0.29, unit: money, prefix: '+1'",
		"window: 1d, max: 0.49, unit: money, prefix: '+4477'",
	} {
		if _, err := config.ParseRouting("r", []byte(limited("limits: [{"+limit+"}]", anyRoute))); err ==
			nil {
			t.Errorf("%s was accepted", limit)
		}
	}
}

// TestReservesLeaveRoomForTheLongestMessageOfEveryOtherLane that a route takes. The lane of a
// reserve may use it, and exactly enough is enough.
func TestReservesLeaveRoomForTheLongestMessageOfEveryOtherLane(t *testing.T) {
	t.Parallel()
	const short, codes, others = "{name: r, max_segments: 5, weights: {a: 1}}",
		"{name: r, match: {lane: otp}, weights: {a: 1}}",
		"{name: r, match: {lanes: [bulk, transactional]}, weights: {a: 1}}"
	for _, c := range []struct {
		limit, routes string
		fits          bool
	}{
		{"window: 1s, max: 20, unit: segments, reserve: {otp: 50%}", anyRoute, true},
		// 9 are reserved, rounded as admission rounds
		{"window: 1s, max: 19, unit: segments, reserve: {otp: 50%}", anyRoute, true},
		{"window: 1s, max: 18, unit: segments, reserve: {otp: 50%}", anyRoute, false},
		{"window: 1s, max: 10, unit: segments, reserve: {otp: 50%}", short, true},
		{"window: 1s, max: 10, unit: segments, reserve: {otp: 51%}", short, true},
		{"window: 1s, max: 10, unit: segments, reserve: {otp: 60%}", short, false},
		{"window: 1s, max: 10, unit: segments, reserve: {otp: 100%}", codes, true},
		{"window: 1s, max: 10, unit: segments, reserve: {otp: 90%, bulk: 10%}", codes, false},
		// transactional has 8
		{"window: 1s, max: 20, unit: segments, reserve: {otp: 40%, bulk: 20%}", others, false},
		{"window: 1s, max: 25, unit: segments, reserve: {otp: 40%, bulk: 20%}", others, true},
		{
			"window: 1s, max: 10, unit: segments, reserve: {otp: 50%}, tenant: other",
			"{name: r, match: {tenant: shop}, weights: {a: 1}}", true,
		},
		{"window: 1s, max: 0, unit: segments, reserve: {otp: 50%}", anyRoute, true},
		{"window: 1s, max: 10, reserve: {otp: 99%}", anyRoute, true},
		{"window: 1s, max: 10, reserve: {otp: 100%}", anyRoute, false},
		// 0.50 is the highest price
		{"window: 1d, max: 1.00, unit: money, reserve: {otp: 50%}", anyRoute, true},
		{"window: 1d, max: 0.98, unit: money, reserve: {otp: 50%}", anyRoute, false},
		{
			"window: 1d, max: 0.25, unit: money, reserve: {otp: 50%}",
			"{name: r, max_segments: 2, weights: {a: 1}}", true,
		},
	} {
		_, err := config.ParseRouting("r", []byte(limited("limits: [{"+c.limit+"}]", c.routes)))
		if (err == nil) != c.fits {
			t.Errorf("%s for %s: %v", c.limit, c.routes, err)
		}
		if err != nil && !strings.Contains(err.Error(), "would never be sure of room") {
			t.Errorf("%s: %v", c.limit, err)
		}
	}
}

// TestOneOfAUnitIsNotWrittenAsSeveral in the problems of a limit.
func TestOneOfAUnitIsNotWrittenAsSeveral(t *testing.T) {
	t.Parallel()
	const single = "{name: r, max_segments: 1, weights: {a: 1}}"
	for limit, want := range map[string]string{
		"window: 1s, max: 1, unit: segments, reserve: {otp: 100%}": "a message of 1 segment of lane " +
			"transactional would never be sure of room under channel a, which takes 1 segment per 1s and " +
			"keeps 1 segment of that",
		"window: 1m, max: 1, reserve: {otp: 100%}": "a message of lane transactional would never be " +
			"sure of room under channel a, which takes 1 message per 1m and keeps 1 message of that",
		"window: 1d, max: 0.01, unit: money": "a message of 1 segment on channel a may cost 0.05 GBP " +
			"and would never pass channel a",
	} {
		if _, err := config.ParseRouting("r", []byte(limited("limits: [{"+limit+"}]", single))); err ==
			nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", limit, err, want)
		}
	}
}

func TestBurstIsToldWithWhatIsSustained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"window: 1m, max: 60, sliding: true, burst: 10": "burst 10, then 51 per 1m",
		"window: 1s, max: 10, sliding: true, burst: 10": "burst 10, then 1 per 1s",
		// the pace is at least a part of max
		"window: 1m, max: 9216, sliding: true, burst: 9216": "burst 9216, then 10 per 1m",
		"window: 1s, max: 0, sliding: true, burst: 10":      "",
		"window: 1s, max: 10":                               "",
	} {
		l := parse(t, limited("limits: [{"+text+"}]", anyRoute)).Channels[0].Limits[0]
		if got := config.BurstWords(&l); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWindowsReadInAnyUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]admission.Window{
		"1s": admission.Second, "1000ms": admission.Second, "60s": admission.Minute,
		"1m": admission.Minute, "60m": admission.Hour, "24h": admission.Day, "1d": admission.Day,
	} {
		if got, err := config.ParseWindow(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if got := parse(t,
			limited("limits: [{max: 5, window: "+text+"}]", anyRoute)).Channels[0].Limits[0].Window; got !=
			want {
			t.Errorf("%s in a document: %s", text, got)
		}
	}
	for _, text := range []string{"2s", "30s", "0s", "-1s", "week", ""} {
		if _, err := config.ParseWindow(text); err == nil ||
			!strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

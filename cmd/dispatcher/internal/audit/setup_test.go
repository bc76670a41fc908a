package audit

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/selector"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// testRouting has three channels at 25/15/60.
func testRouting(t testing.TB) *decide.Routing {
	t.Helper()
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight("25")},
		{Name: "b", Weight: selector.MustWeight("15")},
		{Name: "c", Weight: selector.MustWeight("60")},
	})
	if err != nil {
		t.Fatal(err)
	}
	route := decide.Route{
		Route: config.Route{Name: "default", MaxSegments: 10}, Table: table,
		Members: []int{0, 1, 2},
	}
	r := &decide.Routing{
		Version: 7, Zone: time.UTC, Routes: []decide.Route{route},
		Lanes: map[string]decide.Lane{"bulk": {Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 100,
		}}},
	}
	for _, name := range []string{"a", "b", "c"} {
		r.Channels = append(r.Channels, decide.Channel{
			Channel: config.Channel{Name: name, Capacity: 100},
			Price:   decide.NewPrice("GBP", decide.PriceList{Default: 30_000}),
		})
	}
	return r
}

var (
	shop    = admission.Scope{Tenant: "shop"}
	british = admission.Scope{Prefix: "+44"}
)

// drawnScope draws a tenant or a prefix.
func drawnScope(t *rapid.T) admission.Scope {
	if rapid.Bool().Draw(t, "by tenant") {
		return admission.Scope{Tenant: rapid.SampledFrom([]string{"shop", "bank", "news"}).Draw(t,
			"tenant")}
	}
	return admission.Scope{Prefix: rapid.SampledFrom([]string{
		"+4", "+44", "+447", "+4479", "+1",
		"+447700900123", "+4477009001234",
	}).Draw(t, "prefix")}
}

// drawnLimits draws limits of tenants and prefixes.
func drawnLimits(t *rapid.T) []admission.Limit {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) admission.Limit {
		return admission.Limit{
			Scope: drawnScope(t), Max: rapid.Int64Range(0, 9).Draw(t, "max"),
			Window: rapid.SampledFrom([]admission.Window{admission.Minute, admission.Day}).Draw(t,
				"window"),
		}
	}), 0, 8, func(l admission.Limit) admission.Key { return l.Key() }).Draw(t, "limits")
}

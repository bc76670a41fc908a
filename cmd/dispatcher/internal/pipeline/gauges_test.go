package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// presentOf returns the state of a throttled channel of the routing, of a channel that the routing
// no longer has, and of a limit over all channels whose window has ended.
func presentOf(shop admission.Scope) *ledger.Present {
	counter := func(scope admission.Scope, w admission.Window, u admission.Unit, granted,
		most int64, start time.Time,
	) admission.Counter {
		return admission.Counter{Limit: admission.Limit{
			Scope: scope, Window: w, Max: most,
			Unit: u,
		}, Start: start, Granted: granted, Max: most}
	}
	second := counter(admission.Scope{}, admission.Second, admission.Messages, 30, 100, noon)
	second.Taken = map[string]int64{"lane:otp": 5}
	return &ledger.Present{
		Now: noon,
		Channels: []ledger.ChannelState{
			{Name: "a", Gate: admission.Gate{
				Counters: []admission.Counter{second}, Active: admission.Active{Max: 5, Count: 3},
				Ease: admission.Ease{Rate: 0.5, Since: noon.Add(-5 * time.Second)},
			}},
			{Name: "gone", Gate: admission.Gate{Ease: admission.Ease{
				Rate: 0.5, Since: noon,
				Until: noon.Add(time.Second),
			}}},
		},
		Scoped: []ledger.ScopeState{
			{
				ScopeRef: ledger.ScopeRef{Scope: shop},
				Counters: []admission.Counter{counter(shop, admission.Minute, admission.Segments,
					50, 60, noon.Add(-time.Minute))},
			},
			{ScopeRef: ledger.ScopeRef{Channel: "a", Scope: shop}, Counters: []admission.Counter{
				counter(shop, admission.Day, admission.Money, 1000, 1000,
					admission.Day.Start(noon, time.UTC)),
			}},
		},
		Waiting: []ledger.Waiters{{On: "a", Reason: "no_active", Messages: 12}},
	}
}

// gathered returns the gauges of a registry by labels and by name without the common prefix.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		name := strings.TrimPrefix(family.GetName(), "dispatcher_dispatch_")
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			words := []string{name}
			for _, label := range []string{"channel", "scope", "window", "unit", "on", "reason"} {
				if value, ok := labels[label]; ok {
					words = append(words, value)
				}
			}
			if len(words) != 1+len(labels) {
				t.Errorf("%s has labels %v", name, labels)
			}
			out[strings.Join(words, " ")] = m.GetGauge().GetValue()
		}
	}
	return out
}

// unix returns a time as the value of a gauge.
func unix(at time.Time) float64 { return float64(at.Unix()) }

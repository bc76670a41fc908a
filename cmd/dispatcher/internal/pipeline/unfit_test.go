package pipeline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestWhatTheMessageIsAtFaultForIsNoFaultOfItsChannel: b refuses each message for its sender, c
// because it cannot accept any. Health weighting and ramps use these figures.
func TestWhatTheMessageIsAtFaultForIsNoFaultOfItsChannel(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.channels["b"].answer = func(provider.Submission) provider.Result {
		return provider.Result{Outcome: provider.Refused, Unfit: true, Code: "0x0000000a"}
	}
	p.channels["c"].answer = func(provider.Submission) provider.Result {
		return provider.Result{Outcome: provider.Refused, Code: "0x00000008"}
	}
	p.handle(t, jobsNamed("m", 100))
	p.eventually(t, byState, map[string]int64{"accepted": 100})
	figures, err := p.ledger.Reports.Faults(t.Context(), time.Minute, time.Minute)
	if err != nil || len(figures) != 3 {
		t.Fatal(figures, err)
	}
	carried, err := p.ledger.Reports.Carried(t.Context(), p.routing.Routes[0].Name,
		time.Now().Add(-time.Minute), time.Minute, p.routing.Version)
	if err != nil || len(carried) != 3 {
		t.Fatal(carried, err)
	}
	for i, f := range figures {
		want := ledger.Fault{
			Channel: f.Channel, Attempts: int64(len(p.channels[f.Channel].submits())),
		}
		if f.Channel == "c" {
			want.Errors = want.Attempts
		}
		if f != want || f.Attempts == 0 || carried[i].Errors != want.Errors ||
			carried[i].Attempts != want.Attempts {
			t.Errorf("counted %+v and %+v, want %+v", f, carried[i], want)
		}
	}
	checkOutcomes(t, p, map[string]string{"a": "accepted", "b": "unfit", "c": "refused"})
}

// checkOutcomes expects all answers of a channel to be counted under one outcome.
func checkOutcomes(t *testing.T, p *pipeline, want map[string]string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.cfg.Metrics.outcomes)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(len(families), err)
	}
	for _, m := range families[0].GetMetric() {
		channel, outcome := m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue()
		answers := 0 // other outcomes are counted from 0
		if outcome == want[channel] {
			answers = len(p.channels[channel].submits())
		}
		if n := int(m.GetCounter().GetValue()); n != answers {
			t.Errorf("%d of %s are counted as %s, not %d", n, channel, outcome, answers)
		}
	}
}

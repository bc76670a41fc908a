package steer

import (
	"testing"
	"time"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/selector"
)

func TestMain(m *testing.M) {
	tier.Parallel(4)
	ledgertest.Main(m, lent.Close)
}

// midnight is the start of the tests of pure decisions.
var midnight = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// routed returns a routing with one route whose channels have the given weights, all effective.
func routed(pairs ...string) *config.Routing {
	r := &config.Routing{Routes: []config.Route{{Name: "default", Mode: "weighted"}}}
	for i := 0; i < len(pairs); i += 2 {
		r.Channels = append(r.Channels, config.Channel{Name: pairs[i], State: config.Enabled})
		r.Routes[0].Channels = append(r.Routes[0].Channels, pairs[i])
		r.Routes[0].Weights = append(r.Routes[0].Weights, weightOf(pairs[i],
			selector.MustWeight(pairs[i+1])))
	}
	return r
}

// put sets the weights of the document.
func put(r *config.Routing, weights []config.Weight) {
	route := &r.Routes[0]
	for _, w := range weights {
		found := false
		for i := range route.Weights {
			if route.Weights[i].Channel == w.Channel {
				route.Weights[i], found = w, true
			}
		}
		if !found {
			route.Weights = append(route.Weights, w)
		}
	}
}

// texts returns the configured weights.
func texts(r *config.Routing) map[string]string {
	out := map[string]string{}
	for _, w := range r.Routes[0].Weights {
		out[w.Channel] = w.Configured.String()
	}
	return out
}

// ramped returns a running ramp that is due now.
func ramped(from, to map[string]string, steps int) *ledger.Ramp {
	return &ledger.Ramp{
		ID: 3, Route: "default", From: from, To: to, Steps: steps, Every: time.Minute,
		NextAt: midnight, ChangedAt: midnight,
		State: ledger.RampRunning, Author: "alice",
	}
}

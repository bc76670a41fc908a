package main

import (
	"slices"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// effects returns the effective weights in force as JSON, or an empty string if there are none.
func (s *stage) effects() string {
	s.t.Helper()
	return queryOne[string](s.t, s.postgres, `
		select coalesce(effects::text, '') from audit.routing_versions
		order by version desc limit 1`)
}

// TestRampMovesWeightsAndHoldsByItself: a ramp reaches its target weights in three steps. A second
// ramp holds, with a reason, when its channel begins to refuse, and continues when an operator
// resumes it after the repair.
func TestRampMovesWeightsAndHoldsByItself(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{})
	s.runAll(2)
	s.joined(2)
	stop := make(chan struct{})
	total := s.stream("ramp", stop)
	weights := func() string {
		return queryOne[string](t, s.postgres,
			`
				select substring(document from 'weights: {[^}]*}') from audit.routing_versions
				order by version desc limit 1`)
	}
	// ramp returns the state of the latest ramp, and why it is held.
	ramp := func() (state, held string) {
		p := s.byID(`select 'state', state from dispatcher.ramps where id = (select max(id)
			from dispatcher.ramps)
			union all select 'held', held from dispatcher.ramps where id = (select max(id)
			from dispatcher.ramps)`)
		return p["state"], p["held"]
	}

	s.command("weights", "ramp", "default", "a=40", "b=30", "c=30", "--over", "6s", "--steps", "3",
		"--least", "10", "--reason", "a grows")
	tier.Within(t, stepTimeout, "the ramp is done", func() bool {
		state, _ := ramp()
		return state == "done"
	})
	if got := weights(); got != "weights: {a: 40, b: 30, c: 30}" {
		t.Errorf("got ramp state %s", got)
	}
	steps := queryOne[string](t, s.postgres, `
		select string_agg(substring(document from 'weights: {[^}]*}'), ' ' order by version)
		from audit.routing_versions where version > 1`)
	want := "weights: {a: 30, b: 20, c: 50} weights: {a: 35, b: 25, c: 40} weights: {a: 40, b: " +
		"30, c: 30}"
	if steps != want {
		t.Errorf("got steps %s, want %s", steps, want)
	}

	s.command("weights", "ramp", "default", "a=10", "b=80", "c=10", "--over", "8s", "--steps", "4",
		"--least", "10",
		// The breakers open slowly.
		"--max-errors", "20%", "--max-deviation", "0%", "--reason", "b grows")
	s.carriers["b"].SetBehaviour(smpptest.Behaviour{ErrorEvery: 2, ErrorStatus: pdu.StatusSysErr})
	tier.Within(t, stepTimeout, "the ramp holds", func() bool {
		state, _ := ramp()
		return state == "held"
	})
	_, held := ramp()
	if !strings.Contains(held, "channel b: errors") ||
		!strings.Contains(held, "above the band of 20 %") {
		t.Errorf("got reason of the hold %q", held)
	}
	at := weights()
	s.carriers["b"].SetBehaviour(quick())
	if shown := s.command("weights", "show", "default"); !strings.Contains(shown, "held") {
		t.Errorf("weights show does not show the held ramp:\n%s", shown)
	}
	if weights() != at {
		t.Errorf("the weights moved from %s to %s while the ramp was held", at, weights())
	}
	repaired := s.now()
	tier.Within(t, stepTimeout, "what was claimed before the repair is settled", func() bool {
		return s.count(`
			select count(*) from audit.attempts where outcome is null and claimed_at < $1`,
			repaired) == 0
	})
	s.command("weights", "ramp", "default", "--resume", "--reason", "b is repaired")
	tier.Within(t, stepTimeout, "the resumed ramp is done", func() bool {
		state, held := ramp()
		if state == "held" {
			t.Fatalf("the resumed ramp is held: %s", held)
		}
		return state == "done"
	})
	if got := weights(); got != "weights: {a: 10, b: 80, c: 10}" {
		t.Errorf("got state of the resumed ramp %s", got)
	}
	close(stop)
	n := <-total
	s.settled(n)
	s.checkNoneTwice()
	s.checkVerified(n)
}

// TestHealthWeightingLowersAndRestores: a channel that refuses loses effective weight in steps,
// each a version over the same document, and gets it back after the repair. Every choice is derived
// again with the weights of its draw.
func TestHealthWeightingLowersAndRestores(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t,
		stageConfig{
			route: "health: {errors: 5, window: 5s, step: 50, floor: 10, interval: 1s, quiet: 5s}",
		})
	s.runAll(2)
	s.joined(2)
	stop := make(chan struct{})
	total := s.stream("health", stop)
	tier.Within(t, stepTimeout, "messages flow", func() bool {
		return s.count(`select count(*) from dispatcher.messages`) > 50
	})
	s.carriers["c"].SetBehaviour(smpptest.Behaviour{ErrorEvery: 2, ErrorStatus: pdu.StatusSysErr})
	tier.Within(t, stepTimeout, "c is lowered to its floor", func() bool {
		return strings.Contains(s.effects(), `"c": "6"`)
	})
	if shown := s.command("weights", "show", "default"); !strings.Contains(shown, "6") {
		t.Errorf("weights show does not show the effective weight:\n%s", shown)
	}
	s.carriers["c"].SetBehaviour(quick())
	tier.Within(t, stepTimeout, "c has its weight again", func() bool {
		return s.effects() == "" || !strings.Contains(s.effects(), `"c"`)
	})
	close(stop)
	n := <-total
	s.settled(n)
	s.checkNoneTwice()
	s.checkVerified(n)
	documents := s.count(`select count(distinct document) from audit.routing_versions`)
	if documents != 1 {
		t.Errorf("got %d documents, want only the operator's", documents)
	}
	other := s.count(`
		select count(*) from audit.routing_versions where version > 1 and (author <> 'health'
		or base <> 1 or reason not like 'default: c %')`)
	if other != 0 {
		t.Errorf("%d changes by health weighting have no description", other)
	}
	daily := s.report()
	for _, row := range daily.Rows {
		if row.DrawsVerdict != report.Fair {
			t.Errorf("the draws are judged %q, want fair: they are held against the effective "+
				"weights",
				row.DrawsVerdict)
		}
	}
	c := daily.Rows[2]
	if c.Channel != "c" ||
		!slices.ContainsFunc(c.Moved,
			func(m report.Move) bool { return m.Cause == "health_weighting" }) {
		t.Errorf("the report does not show that health weighting lowered c: %+v", c)
	}
}

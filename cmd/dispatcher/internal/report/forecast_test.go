package report

import (
	"encoding/json"
	"strings"
	"testing"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
)

// forecastCase is an answer about a route of a mode, and the data of its forecast.
type forecastCase struct {
	mode   string
	answer decide.Explanation
	first  string // choice
	chosen string
	last   string // reason of the last candidate
}

// forecastCases returns the forecasts of the golden file.
func forecastCases() map[string]forecastCase {
	drawn := ledger.Plan{Route: "default", Draw: 17, Size: 100, FirstChoice: "a"}
	plan := ledger.Plan{Route: "default"}
	send := func(channel string) ledger.Decision {
		return ledger.Decision{
			State: ledger.Sending, Plan: ledger.Plan{Route: "default", FirstChoice: channel},
			Attempt: ledger.Attempt{Channel: channel},
		}
	}
	free := []decide.Candidate{
		{Channel: "a"}, {Channel: "c", LoadRatio: 0.4}, {Channel: "b", LoadRatio: 0.8},
	}
	busy := []decide.Candidate{
		{Channel: "a", Reason: "no_slot"},
		{Channel: "c", LoadRatio: 0.4},
		{Channel: "b", LoadRatio: 0.8, Reason: "disabled"},
	}
	shut := []decide.Candidate{
		{Channel: "a", Reason: "draining"}, {Channel: "c", Reason: "connecting"},
	}
	scored := []decide.Candidate{
		{Channel: "b", Score: new(1.0)}, {Channel: "a", Score: new(0.5), Reason: "draining"},
	}
	turns := []decide.Candidate{{Channel: "a", Reason: "not_ready"}, {Channel: "b"}, {Channel: "c"}}
	wait := ledger.Decision{State: ledger.Waiting, NextAt: ten}
	later := ledger.Decision{State: ledger.Scheduled, NextAt: ten}
	fail := ledger.Decision{State: ledger.Failed, Reason: "no_channel"}
	noRoute := envelope.Problem{
		Code: envelope.NoRoute, Detail: "no route of the routing document matches it",
	}
	weighted := func(c []decide.Candidate, d ledger.Decision) decide.Explanation {
		return decide.Explanation{Plan: drawn, By: decide.LoadRatio, Candidates: c, Decision: d}
	}
	return map[string]forecastCase{
		"first-choice": {"weighted", weighted(free, send("a")), "a", "a", ""},
		"fallback":     {"weighted", weighted(busy, send("c")), "a", "c", "disabled"},
		"wait":         {"weighted", weighted(shut, wait), "a", "", "connecting"},
		"scheduled":    {"weighted", weighted(free, later), "a", "", ""},
		"failed":       {"weighted", weighted(shut, fail), "a", "", "connecting"},
		"dead":         {"weighted", decide.Explanation{Problem: &noRoute}, "", "", ""},
		"round-robin": {"round_robin", decide.Explanation{
			Plan: plan, By: decide.RoundRobin, Cursor: "c", Decision: send("b"), Candidates: turns,
		}, "b", "b", ""},
		"best-worker": {"best_worker", decide.Explanation{
			Plan: plan, By: decide.BestWorker, Decision: send("b"), Candidates: scored,
		}, "b", "b", "draining"},
		"function-failed": {"best_worker", decide.Explanation{
			Plan: plan, By: decide.BestWorker, Trouble: "function_unreachable", Decision: send("b"),
			Candidates: scored,
		}, "b", "b", "draining"},
	}
}

func TestForecastsReadAsTheirGoldenFile(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for name, tc := range forecastCases() {
		one := modeRecord{mode: tc.mode}
		e := forecast(t, "order-1", &tc.answer, one.with(t))
		texts[name] = e.Text
		last := ""
		if n := len(e.Candidates); n > 0 {
			last = e.Candidates[n-1].Reason
		}
		if e.FirstChoice != tc.first || (e.Chosen == nil) != (tc.chosen == "") || e.Chosen != nil &&
			*e.Chosen != tc.chosen ||
			last != tc.last || len(e.Candidates) != len(tc.answer.Candidates) ||
			(e.Draw != nil) != (tc.answer.Plan.Size > 0) {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	closed, small := limitedForecasts()
	for name, answer := range map[string]*decide.Explanation{"closed": &closed, "too-small": &small} {
		texts[name] = forecast(t, "order-1", answer, withBudgets(t)).Text
	}
	golden(t, "forecasts.txt", texts)
}

// withBudgets returns a document with a budget of 0 for a tenant and one of a millionth on a.
func withBudgets(t *testing.T) *config.Routing {
	t.Helper()
	doc := london(t)
	doc.Limits = []admission.Limit{budget(tenantShop, 0)}
	doc.Channels[0].Limits = []admission.Limit{budget(admission.Scope{}, 1)}
	return doc
}

// limitedForecasts returns a message that waits for the first budget, and one that goes elsewhere
// because of the second.
func limitedForecasts() (closed, small decide.Explanation) {
	c := decide.Candidate{
		Channel: "c", Reason: "no_budget", Limit: "tenant:shop 1d money", Never: true,
	}
	a := decide.Candidate{Channel: "a", Reason: "no_budget", Limit: "a 1d money", Never: true}
	closed = decide.Explanation{
		Plan:       ledger.Plan{Route: "default", Draw: 17, Size: 100, FirstChoice: "a"},
		By:         decide.LoadRatio,
		Candidates: []decide.Candidate{c, {Channel: "b", Reason: "connecting"}},
		Decision: ledger.Decision{
			State: ledger.Waiting, Reason: "no_budget", WaitsFor: c.Limit, NextAt: ten,
		},
	}
	small = closed
	small.Candidates = []decide.Candidate{a, {Channel: "c"}}
	small.Decision = ledger.Decision{State: ledger.Sending, Attempt: ledger.Attempt{Channel: "c"}}
	return closed, small
}

func TestForecastNamesTheLimitThatNeverHasRoom(t *testing.T) {
	t.Parallel()
	closed, small := limitedForecasts()
	e := forecast(t, "order-1", &closed, withBudgets(t))
	if e.Limit != "tenant:shop 1d money" || e.Lack != "closed" || e.Until != nil ||
		e.Candidates[0].Never != "closed" {
		t.Errorf("got %+v, want Limit %v, Lack %v, no Until and Candidates[0].Never %v",
			e, "tenant:shop 1d money", "closed", "closed")
	}
	raw, err := json.Marshal(forecast(t, "order-1", &small, withBudgets(t)).Candidates[0])
	if err != nil || !strings.Contains(string(raw), `"limit":"a 1d money","never":"too_small"`) {
		t.Errorf("got %s, error %v", raw, err)
	}
}

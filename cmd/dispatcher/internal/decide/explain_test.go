package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// testQuestion asks about a message in a state in which b has 80 of 100 in flight and c 40.
func testQuestion(t *testing.T) *ExplainInput {
	t.Helper()
	w := newFixture(t)
	w.seen.Channels[1].Gate.Active.Count, w.seen.Channels[2].Gate.Active.Count = 80, 40
	return &ExplainInput{
		Routing: w.routing, Keys: testKeys, Job: testJob(envelope.Message{}), Now: noon,
		Channels: w.seen.Channels, Unready: map[string]string{},
	}
}

func TestExplainListsAllMembersInTheOrderOfConsideration(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	first := Explain(q).Plan.FirstChoice
	q.Unready[first] = "breaker_open"
	got := Explain(q)
	loads := map[string]float64{"a": 0, "b": 0.8, "c": 0.4}
	want := []Candidate{{
		Channel: first, LoadRatio: loads[first], Reason: "breaker_open",
		Segments: 1, Micros: 30_000, Currency: "GBP",
	}}
	for _, name := range []string{"a", "c", "b"} {
		if name != first {
			want = append(want, Candidate{
				Channel: name, LoadRatio: loads[name], Segments: 1,
				Micros: 30_000, Currency: "GBP",
			})
		}
	}
	if !cmp.Equal(got.Candidates, want) {
		t.Error(cmp.Diff(want, got.Candidates))
	}
	if got.Decision.State != ledger.Sending || got.Decision.Attempt.Channel != want[1].Channel {
		t.Errorf("decision %+v, want channel %s", got.Decision, want[1].Channel)
	}
}

func TestExplainDrawsAsThePipelineDoes(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	row := (&planner{routing: q.Routing, keys: newDrawers(q.Keys), now: noon}).plan(&q.Job).Row
	if got := Explain(q).Plan; !cmp.Equal(got, row.Plan) {
		t.Error(cmp.Diff(row.Plan, got))
	}
}

func TestExplainLeavesTheStateAsItWas(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	for i := range q.Channels {
		q.Channels[i].Gate.Counters = []admission.Counter{{
			Limit: admission.Limit{Window: admission.Minute, Max: 5}, Start: noon, Max: 5,
		}}
	}
	before := Explain(q)
	if after := Explain(q); !cmp.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
	if got := q.Channels[0].Gate.Counters[0].Granted; got != 0 {
		t.Errorf("the explanation took %d slots", got)
	}
}

func TestExplainSaysWhyAMessageCannotBeSent(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Routing.Routes[0].Match.Prefixes = []string{"+49"}
	got := Explain(q)
	if got.Problem == nil || got.Problem.Code != envelope.NoRoute || got.Problem.Detail == "" ||
		got.Candidates != nil {
		t.Errorf("answer %+v", got)
	}
}

func TestExplainKnowsTheLimitsOfTenantsAndPrefixes(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Job.Message.Tenant = "shop"
	q.Routing.Limits = []admission.Limit{{Scope: shop, Window: admission.Day, Max: 5}}
	if got := Explain(q); got.Decision.State != ledger.Sending {
		t.Errorf("with all slots free: got %+v", got.Decision)
	}
	used := admission.Counter{
		Limit: q.Routing.Limits[0], Start: noon.Add(-12 * time.Hour),
		Granted: 5, Max: 5,
	}
	q.Scoped = []ledger.ScopeState{{
		ScopeRef: ledger.ScopeRef{Scope: shop},
		Counters: []admission.Counter{used},
	}}
	got := Explain(q)
	first := got.Candidates[0]
	if got.Decision.State != ledger.Waiting || got.Decision.WaitsFor != "tenant:shop 1d messages" ||
		first.Reason != TenantLimit {
		t.Errorf("with all slots used: got %+v", got)
	}
	if first.Limit != got.Decision.WaitsFor || first.Never {
		t.Errorf("the limit that is used up: %+v", first)
	}
	q.Scoped, q.Routing.Limits[0].Max = nil, 0
	if last := Explain(q).Candidates[2]; last.Reason != TenantLimit ||
		last.Limit != "tenant:shop 1d messages" || !last.Never {
		t.Errorf("the limit is 0: %+v", last)
	}
}

func TestExplainKeepsAScheduledMessage(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Job.Message.SendAt = noon.Add(time.Hour)
	got := Explain(q)
	if got.Decision.State != ledger.Scheduled || !got.Decision.NextAt.Equal(q.Job.Message.SendAt) ||
		len(got.Candidates) != 3 {
		t.Errorf("answer %+v", got)
	}
}

// TestExplainRanksAllMembersInEveryMode asks in a state in which a was assigned last, b has 80 of
// 100 in flight and c 40, only b has the message's label, and c had the last turn.
func TestExplainRanksAllMembersInEveryMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[Mode][]string{
		RoundRobinMode: {"a", "b", "c"},
		LongestIdle:    {"a", "c", "b"},
		BestWorkerMode: {"b 1", "c 0", "a 0"},
	} {
		q := testQuestion(t)
		q.Routing.Routes[0].Mode = mode
		q.Routing.Channels[1].Labels = map[string]selector.Value{
			"language": selector.TextValue("en"),
		}
		q.Job.Message.Labels = map[string]selector.Value{"language": selector.TextValue("en")}
		q.Channels[0].LastAssigned = noon
		q.Cursors = []ledger.Cursor{{Route: "default", Channel: "c", Position: 2}}
		got := Explain(q)
		var order []string
		for _, c := range got.Candidates {
			one := c.Channel
			if c.Score != nil {
				one += fmt.Sprint(" ", *c.Score)
			}
			if c.Reason != "" {
				one += "!" + c.Reason
			}
			order = append(order, one)
		}
		if !cmp.Equal(order, want) || got.Plan.Size != 0 || got.Plan.FirstChoice != "" ||
			got.By != q.Routing.Routes[0].Ranker(0) {
			t.Errorf("%s: %v by %s, plan %+v; want %v", mode, order, got.By, got.Plan, want)
		}
		if got.Decision.Attempt.Channel != got.Candidates[0].Channel ||
			got.Decision.Plan.FirstChoice != got.Candidates[0].Channel {
			t.Errorf("%s: decision %+v", mode, got.Decision)
		}
		if q.Cursors[0].Channel != "c" {
			t.Errorf("%s: the explanation moved the cursor", mode)
		}
	}
}

package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// testQuestion asks about a message under a state in which b carries 80 of 100 and c 40.
func testQuestion(t *testing.T) *Question {
	t.Helper()
	w := newWorld(t)
	w.seen.Channels[1].Gate.Active.Count, w.seen.Channels[2].Gate.Active.Count = 80, 40
	return &Question{
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
	want := []Candidate{{Channel: first, LoadRatio: loads[first], Reason: "breaker_open"}}
	for _, name := range []string{"a", "c", "b"} {
		if name != first {
			want = append(want, Candidate{Channel: name, LoadRatio: loads[name]})
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
	row := (&planner{routing: q.Routing, keys: newDrawers(q.Keys), now: noon}).plan(&q.Job).row
	if got := Explain(q).Plan; !cmp.Equal(got, row.Plan) {
		t.Error(cmp.Diff(row.Plan, got))
	}
}

func TestExplainLeavesTheStateAsItWas(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	for i := range q.Channels {
		q.Channels[i].Gate.Counters = []admission.Counter{{Limit: admission.Limit{Window: admission.Minute, Max: 5}, Start: noon, Max: 5}}
	}
	before := Explain(q)
	if after := Explain(q); !cmp.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
	if got := q.Channels[0].Gate.Counters[0].Granted; got != 0 {
		t.Errorf("asking took %d slots", got)
	}
}

func TestExplainSaysWhyAMessageCannotBeSent(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Routing.Routes[0].Match.Prefixes = []string{"+49"}
	got := Explain(q)
	if got.Problem == nil || got.Problem.Code != envelope.NoRoute || got.Problem.Detail == "" || got.Candidates != nil {
		t.Errorf("answer %+v", got)
	}
}

func TestExplainKeepsAScheduledMessage(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Job.Message.SendAt = noon.Add(time.Hour)
	got := Explain(q)
	if got.Decision.State != ledger.Scheduled || !got.Decision.NextAt.Equal(q.Job.Message.SendAt) || len(got.Candidates) != 3 {
		t.Errorf("answer %+v", got)
	}
}

package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// anyState returns a fixture in any state: some channels are full, down, disabled or unfit.
func anyState(t *rapid.T, tb testing.TB) (*fixture, []*Task) {
	mode := rapid.SampledFrom([]Mode{
		"", Weighted, RoundRobinMode, LongestIdle,
		BestWorkerMode, InOrderMode,
	}).Draw(t, "mode")
	fallback := rapid.SampledFrom([]Ranker{
		"", LoadRatio, BestWorker, RoundRobin, Redraw, InOrder,
	}).Draw(t, "fallback")
	n := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(30, 40)).Draw(t, "channels")
	w := wideFixture(tb, n, mode, fallback)
	w.routing.Routes[0].BypassSelectors = rapid.Bool().Draw(t, "bypass")
	for i := range n {
		ch, state := &w.routing.Channels[i], &w.seen.Channels[i]
		ch.Capacity = rapid.Int64Range(1, 5).Draw(t, "capacity")
		ch.State = rapid.SampledFrom([]ChannelState{
			Enabled, Enabled, Enabled, Draining,
			Disabled,
		}).Draw(t, "state")
		w.unready[i] = rapid.SampledFrom([]string{
			"", "", "", "connecting", Throttled,
			provider.Probing,
		}).Draw(t, "unready")
		state.Gate.Active = admission.Active{
			Count: rapid.Int64Range(0, 4).Draw(t, "active"),
			Max:   rapid.SampledFrom([]int64{0, 4, 6}).Draw(t, "active_max"),
		}
		state.Gate.Counters = []admission.Counter{{Limit: admission.Limit{
			Window: admission.Minute,
			Max:    rapid.Int64Range(0, 5).Draw(t, "max"),
		}}}
		times := []time.Time{{}, noon, noon.Add(-time.Second)}
		state.LastAssigned = rapid.SampledFrom(times).Draw(t, "last_assigned")
	}
	// one too many
	name := func() string { return fmt.Sprintf("c%03d", rapid.IntRange(0, n).Draw(t, "name")) }
	if rapid.Bool().Draw(t, "cursor") {
		w.seen.Cursors[0] = ledger.Cursor{
			Route: "default", Channel: name(),
			Position: rapid.IntRange(0, n+1).Draw(t, "position"),
		}
	}
	var tasks []*Task
	for i := range rapid.IntRange(1, 8).Draw(t, "tasks") {
		task := w.fresh()
		task.Row.ID = fmt.Sprint("m-", i)
		task.Row.Attempts = rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "attempts")
		if w.routing.Routes[0].Draws() || task.Row.Attempts > 0 {
			task.Row.Plan.FirstChoice = name()
			task.First = w.routing.MemberIndex(task.Route, task.Row.Plan.FirstChoice)
		}
		if task.Row.Attempts > 0 {
			task.Row.Tried = rapid.SliceOfN(rapid.Custom(func(*rapid.T) string {
				return name()
			}), 0, 3).Draw(t, "tried")
			if rapid.IntRange(0, 5).Draw(t, "is pinned") == 0 {
				task.Row.Pinned = name()
			}
		}
		if rapid.Bool().Draw(t, "selectors") {
			task.msg.Labels = map[string]selector.Value{"language": selector.TextValue("en")}
			task.msg.Selectors = []selector.Selector{{
				Key: "quality", Operator: selector.GreaterThan,
				Value: selector.NumberValue(rapid.Float64Range(0, 6).Draw(t, "quality")),
				ExpiresAfter: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t,
					"expires_after"),
			}}
		}
		tasks = append(tasks, task)
	}
	return w, tasks
}

// TestTakenIsTheFirstOfTheRankingWithoutExclusion: in any state the chosen channel is the first
// candidate without a reason, and all before it have one. Each assignment counts at once, and the
// stored ranking gives the same order again.
func TestTakenIsTheFirstOfTheRankingWithoutExclusion(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		w, tasks := anyState(rt, t)
		a := w.assigner()
		for _, task := range tasks {
			before := make([]admission.Gate, len(w.seen.Channels))
			for i := range w.seen.Channels {
				before[i] = w.seen.Channels[i].Gate
				before[i].Counters = slices.Clone(before[i].Counters)
			}
			cursor := w.seen.Cursors[0]
			d := a.decide(task)
			switch d.State {
			case ledger.Sending:
				checkTake(rt, w, task, &d.Decision, before)
			case ledger.Waiting:
				if !d.NextAt.After(noon) || d.Reason == "" {
					rt.Fatalf("waits until %s for %q", d.NextAt, d.Reason)
				}
			case ledger.Failed:
				if d.Reason != reasonNoChannel {
					rt.Fatalf("failed for %s", d.Reason)
				}
			default:
				rt.Fatalf("decision %+v", d)
			}
			if d.State == ledger.Sending && d.Attempt.Ranking == nil {
				continue
			}
			r := decoded(t, d.Decision)
			checkRanking(rt, w, task, &d.Decision, &r)
			if r.By == "round_robin" && (cursor.Channel != r.Cursor || *r.After < -1) {
				rt.Fatalf("cursor %+v, ranking %+v", cursor, r)
			}
		}
	})
}

// checkTake compares the gates before and after: one more on the chosen channel, no change on
// others.
func checkTake(t *rapid.T, w *fixture, task *Task, d *ledger.Decision, before []admission.Gate) {
	for i := range w.seen.Channels {
		want := int64(0)
		if w.seen.Channels[i].Name == d.Attempt.Channel {
			want = 1
		}
		gate := &w.seen.Channels[i].Gate
		if got := gate.Active.Count - before[i].Active.Count; got != want {
			t.Fatalf("channel %s was chosen, and the active count of %s grew by %d", d.Attempt.Channel,
				w.seen.Channels[i].Name, got)
		}
		if got := gate.Counters[0].Granted - before[i].Counters[0].Granted; got != want ||
			gate.Counters[0].Granted > gate.Counters[0].Max {
			t.Fatalf("channel %s was chosen, and %s granted %d more, %d of %d", d.Attempt.Channel,
				w.seen.Channels[i].Name, got, gate.Counters[0].Granted, gate.Counters[0].Max)
		}
	}
	first := task.Row.Attempts == 0 && d.Attempt.Channel == d.Plan.FirstChoice
	if first != (d.Attempt.Reason == ledger.ByFirstChoice) {
		t.Fatalf("attempt %d on %s, first choice %s: %s", d.Attempt.Number, d.Attempt.Channel,
			d.Plan.FirstChoice, d.Attempt.Reason)
	}
	if needless := task.Route.Draws() && first; needless != (d.Attempt.Ranking == nil) {
		t.Fatalf("attempt %d, reason %s, has the ranking %s", d.Attempt.Number, d.Attempt.Reason,
			d.Attempt.Ranking)
	}
}

// checkRanking derives the order again from the stored ranking.
func checkRanking(t *rapid.T, w *fixture, task *Task, d *ledger.Decision, r *Ranking) {
	chosen := r.Chosen()
	if d.State == ledger.Sending &&
		(chosen < 0 || r.Candidates[chosen].Channel != d.Attempt.Channel) {
		t.Fatalf("channel %s was chosen with the ranking %+v", d.Attempt.Channel, r)
	}
	stored := r.Candidates
	if len(stored) > 0 && stored[0].Reason == Removed && stored[0].Capacity == 0 {
		stored = stored[1:] // a first choice that was removed
	}
	stateless := fieldsOf(r).stateless()
	members := len(task.Route.Members)
	if least := min(MaxRanked, members); len(stored)+r.More != members ||
		(stateless && chosen >= 0 && chosen != len(r.Candidates)-1) ||
		((!stateless || chosen < 0) && len(stored) < least) {
		t.Fatalf("%d of %d members stored, %d more", len(stored), len(task.Route.Members), r.More)
	}
	if d.State != ledger.Sending && chosen >= 0 {
		t.Fatalf("%s by the ranking %+v", d.State, r)
	}
	if task.Route.Draws() && task.First >= 0 {
		if stored[0].Channel != task.Row.Plan.FirstChoice {
			t.Fatalf("the first choice %s is not at the front: %+v", task.Row.Plan.FirstChoice, r)
		}
		stored = stored[1:]
	}
	candidates := make([]selector.Candidate, len(stored))
	for i := range stored {
		candidates[i] = stored[i].Candidate(w.routing.MemberIndex(task.Route, stored[i].Channel))
	}
	want := slices.Clone(candidates)
	if stateless {
		for place := range task.Route.Members {
			if !slices.ContainsFunc(want, func(c selector.Candidate) bool {
				return c.Index == place
			}) && (place != task.First || !task.Route.Draws()) {
				candidates = append(candidates, selector.Candidate{Index: place})
			}
		}
	}
	slices.SortFunc(candidates, func(a, b selector.Candidate) int { return a.Index - b.Index })
	b := basis{}
	if r.After != nil {
		b.after = *r.After
	}
	if r.By == string(Redraw) {
		first := -1
		if task.Route.Draws() {
			first = task.First
		}
		b.drawn = task.Route.Table.Redraw(newDrawers(testKeys).of(r.KeyID), task.Row.ID, first)
	}
	order(Ranker(r.By), candidates, b)
	if diff := cmp.Diff(want, candidates[:len(want)]); diff != "" {
		t.Fatalf("%s, derived again (-stored +derived):\n%s", r.By, diff)
	}
}

func TestThousandChannelsKeepTheRecordShort(t *testing.T) {
	t.Parallel()
	w := wideFixture(t, 1000, LongestIdle, LoadRatio)
	if r := decoded(t, w.decide(w.fresh())); len(r.Candidates) != MaxRanked ||
		r.More != 1000-MaxRanked || r.Chosen() != 0 {
		t.Errorf("%d candidates and %d more", len(r.Candidates), r.More)
	}
	for i := range w.unready {
		w.unready[i] = "connecting"
	}
	if d := w.decide(w.fresh()); d.State != ledger.Waiting ||
		len(decoded(t, d).Candidates) != MaxRanked || decoded(t, d).More != 1000-MaxRanked {
		t.Errorf("a wait stores %d bytes", len(d.Seen))
	}
	w.unready[999] = "" // all channels before it are considered, so all are stored
	w.seen.Channels[999].Gate.Active.Count = 500
	if r := decoded(t, w.decide(w.fresh())); len(r.Candidates) != 1000 || r.More != 0 ||
		r.Candidates[r.Chosen()].Channel != "c999" {
		t.Errorf("%d candidates and %d more", len(r.Candidates), r.More)
	}
}

func TestThousandWeightsDrawAndRedraw(t *testing.T) {
	t.Parallel()
	w := wideFixture(t, 1000, Weighted, Redraw)
	p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}
	a := w.assigner()
	for _, job := range jobsNamed("m", 50) {
		job.Produced = noon
		planned := p.plan(&job)
		w.unready[planned.First] = "connecting"
		d := a.decide(&planned)
		if d.State != ledger.Sending || d.Attempt.Reason != ledger.ByFallback ||
			d.Attempt.Channel == planned.Row.Plan.FirstChoice {
			t.Fatalf("decision %+v", d)
		}
	}
}

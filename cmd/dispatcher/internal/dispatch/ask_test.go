package dispatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/selector"
)

// inquiries are so many distinct questions of a route with a function.
func inquiries(t *testing.T, n int) *scoreRequest {
	t.Helper()
	routing := testRouting(t)
	scoredByEndpoint(routing)
	jobs := jobsNamed("m", n)
	for i := range jobs {
		number := selector.NumberValue(float64(i))
		jobs[i].Message.Labels = map[string]selector.Value{"n": number}
	}
	plan := newPlan(routing, testKeys, time.Now(), jobs)
	q := &scoreRequest{routing: routing, now: noon}
	for i := range plan.tasks {
		q.add(&plan.tasks[i])
	}
	return q
}

// TestASlowFunctionHoldsABatchUpForSoLongAndNoLonger asks a function that answers one question a
// second: it is the scorer that lets them wait for each other.
func TestASlowFunctionHoldsABatchUpForSoLongAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{}, 1)
		slow := &scriptedScorer{answer: func(ctx context.Context, q *ScoreQuestion) Scores {
			select {
			case turn <- struct{}{}:
				time.Sleep(time.Second) // on the fake clock
				<-turn
				return favours("a")(ctx, q)
			case <-ctx.Done():
				return Scores{Trouble: FunctionTimeout}
			}
		}}
		q := inquiries(t, 100)
		began := time.Now()
		ask(t.Context(), slow, q)
		if took := time.Since(began); took < longestHold || took >= longestHold+2*time.Second {
			t.Errorf("the batch was held up for %s", took)
		}
		words := map[string]int{}
		for _, one := range q.open {
			words[one.answer.Trouble]++
		}
		if words[""] < 5 || words[""]+words[FunctionTimeout] != 100 {
			t.Errorf("answers: %v", words)
		}
	})
}

func TestEachQuestionIsPutToTheScorerAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int32
		all := make(chan struct{})
		q := inquiries(t, 300)
		ask(t.Context(), &scriptedScorer{answer: func(ctx context.Context, q *ScoreQuestion) Scores {
			if under.Add(1) == 300 {
				close(all)
			}
			select {
			case <-all:
				return favours("a")(ctx, q)
			case <-ctx.Done():
				return Scores{Trouble: FunctionTimeout}
			}
		}}, q)
		for _, one := range q.open {
			if one.answer.Trouble != "" {
				t.Fatalf("answer %+v: the questions waited for each other", one.answer)
			}
		}
	})
}

func TestAnswersAboutDueRowsAreForgotten(t *testing.T) {
	t.Parallel()
	var a answers
	scores := &Scores{Values: []float64{1}}
	a.put(map[int64]keptAnswer{7: {RowScores: RowScores{scores: scores}}}, noon)
	if a.known()[7].scores != scores {
		t.Error("the answer is not there")
	}
	a.put(nil, noon.Add(keptFor+1))
	if known := a.known(); known != nil {
		t.Errorf("an answer that nobody came for is still there: %v", known)
	}
}

// TestAnAnswerIsOfItsRowRoutingAndQuestion: another row, version or number of selectors that count
// has to be asked about.
func TestAnAnswerIsOfItsRowRoutingAndQuestion(t *testing.T) {
	t.Parallel()
	w := modal(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	for name, tc := range map[string]struct {
		row       int64
		version   int64
		selectors int
		lacks     bool
	}{
		"its own":            {7, 7, 1, false},
		"of another row":     {8, 7, 1, true},
		"of another routing": {7, 6, 1, true},
		"a selector expired": {7, 7, 2, true},
	} {
		task := w.fresh()
		task.row.Seq, task.msg.Selectors = 7, []selector.Selector{wish(5, time.Minute)}
		answer := RowScores{version: tc.version, selectors: tc.selectors, scores: &Scores{}}
		r := &Plan{routing: w.routing}
		lacks := r.lacksAnswer(task, noon, map[int64]RowScores{tc.row: answer})
		if lacks != tc.lacks || (task.scores == nil) != tc.lacks {
			t.Errorf("%s: lacks an answer: %v, scores %v", name, lacks, task.scores)
		}
	}
}

// TestTheNumberOfWishesTellsQuestionsOfARowApart proves what lacksAnswer relies on: at two moments
// of the same row under one routing, the questions are the same exactly when as many selectors
// count.
func TestTheNumberOfWishesTellsQuestionsOfARowApart(t *testing.T) {
	t.Parallel()
	w := modal(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	task := w.fresh()
	task.row.ReceivedAt = noon
	for _, after := range []time.Duration{0, 3 * time.Second, time.Second, 2 * time.Second, time.Second} {
		task.msg.Selectors = append(task.msg.Selectors, wish(float64(after), after))
	}
	questions := map[int]string{}
	for age := time.Duration(0); age < 5*time.Second; age += 100 * time.Millisecond {
		q := newQuestion(w.routing, task, noon.Add(age))
		key := string(q.AppendKey(nil))
		if before, known := questions[len(q.Selectors)]; known && before != key {
			t.Errorf("after %s: another question with %d selectors", age, len(q.Selectors))
		}
		questions[len(q.Selectors)] = key
	}
	if len(questions) != 4 {
		t.Errorf("%d questions, want 4", len(questions))
	}
}

func TestRowsThatAreBeingAskedAboutAreLeftOut(t *testing.T) {
	t.Parallel()
	var a answers
	if a.open() != nil {
		t.Error("nobody is being asked")
	}
	a.begin([]int64{1, 2})
	a.begin([]int64{3})
	a.end([]int64{1, 3})
	if diff := cmp.Diff([]int64{2}, a.open()); diff != "" {
		t.Error(diff)
	}
}

// heldScorer answers when it is let go, and counts how often it was asked.
type heldScorer struct {
	free  chan struct{}
	asked atomic.Int64
}

func (s *heldScorer) Scores(ctx context.Context, _ *Function, q *ScoreQuestion) Scores {
	s.asked.Add(1)
	select {
	case <-s.free:
		return favours("b")(ctx, q)
	case <-ctx.Done():
		return Scores{Trouble: FunctionTimeout}
	}
}

// TestASlowFunctionHoldsUpNoDueRowsOfOtherRoutes has rows of two routes come due while the function
// of one does not answer. The others are sent, and its own are neither claimed again meanwhile nor
// lost.
func TestASlowFunctionHoldsUpNoDueRowsOfOtherRoutes(t *testing.T) {
	t.Parallel()
	scorer := &heldScorer{free: make(chan struct{})}
	p := setupScored(t, func(r *Routing) {
		scoredByEndpoint(r)
		r.Routes[0].Match = Match{Tenants: []string{"slow"}}
		r.Routes = append(r.Routes, Route{Route: config.Route{Name: "other", Mode: RoundRobinMode, MaxSegments: 10}, Members: r.Routes[0].Members})
	}, scorer)
	release := sync.OnceFunc(func() { close(scorer.free) })
	t.Cleanup(release)
	// More rows of the slow route than one claim takes come due before any of the other.
	of := func(tenant string, n int) []Job {
		jobs := jobsNamed(tenant, n)
		for i := range jobs {
			jobs[i].Message.Tenant = tenant
		}
		return forLater(jobs)
	}
	p.handle(t, of("slow", 600))
	p.handle(t, of("other", 300))
	p.comeDue(t)
	const sent = `select tenant, count(*) from dispatcher.messages where state = 'accepted' group by 1`
	p.eventually(t, sent, map[string]int64{"other": 300})
	p.eventually(t, `select state, count(*) from dispatcher.messages where tenant = 'slow' group by 1`, map[string]int64{"scheduled": 600})
	if n := scorer.asked.Load(); n < 1 || n > maxAsking {
		t.Errorf("600 equal questions of due rows were asked %d times while there was no answer", n)
	}
	release()
	p.eventually(t, sent, map[string]int64{"other": 300, "slow": 600})
	p.eventually(t, `select coalesce(ranking->>'trouble', '-'), count(*) from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
		where tenant = 'slow' group by 1`, map[string]int64{"-": 600})
}

// TestStoppingWaitsForQuestionsUnderWay would leave a goroutine behind otherwise.
func TestStoppingWaitsForQuestionsUnderWay(t *testing.T) {
	t.Parallel()
	scorer := &heldScorer{free: make(chan struct{})}
	p := setupScored(t, scoredByEndpoint, scorer)
	p.handle(t, forLater(jobsNamed("m", 3)))
	p.comeDue(t)
	deadline := time.After(20 * time.Second)
	for scorer.asked.Load() == 0 {
		select {
		case <-deadline:
			t.Fatal("nobody was asked")
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.stop()
	p.eventually(t, `select state, count(*) from dispatcher.messages group by 1`, map[string]int64{"scheduled": 3})
	if open := p.answers.open(); len(open) != 0 {
		t.Errorf("%d rows are still being asked about", len(open))
	}
}

// BenchmarkLacksAnswer is what a due row of a route with a function costs while channels are
// locked.
func BenchmarkLacksAnswer(b *testing.B) {
	for _, channels := range []int{3, 20, 100} {
		b.Run(fmt.Sprint(channels), func(b *testing.B) {
			w := modal(b, BestWorkerMode, LoadRatio)
			scoredByEndpoint(w.routing)
			for len(w.routing.Channels) < channels {
				w.routing.Routes[0].Members = append(w.routing.Routes[0].Members, len(w.routing.Channels))
				w.routing.Channels = append(w.routing.Channels, w.routing.Channels[0])
			}
			task := w.fresh()
			task.row.Seq, task.msg.Selectors = 7, []selector.Selector{wish(5, time.Minute)}
			r := &Plan{routing: w.routing}
			answers := map[int64]RowScores{7: {version: w.routing.Version, selectors: 1, scores: &Scores{}}}
			task.row.ReceivedAt = noon
			b.ReportAllocs()
			for b.Loop() {
				if r.lacksAnswer(task, noon, answers) {
					b.Fatal("the answer was not found")
				}
			}
		})
	}
}

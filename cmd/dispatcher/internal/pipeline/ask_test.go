package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// distinctQuestions returns n distinct questions of a route with a function.
func distinctQuestions(t *testing.T, n int) *decide.ScoreRequest {
	t.Helper()
	routing := testRouting(t)
	scoredByEndpoint(routing)
	jobs := jobsNamed("m", n)
	for i := range jobs {
		number := selector.NumberValue(float64(i))
		jobs[i].Message.Labels = map[string]selector.Value{"n": number}
	}
	plan := decide.NewPlan(routing, testKeys, time.Now(), jobs)
	r := &decide.ScoreRequest{Routing: routing, Now: noon}
	for i := range plan.Tasks {
		r.Add(&plan.Tasks[i])
	}
	return r
}

// TestASlowFunctionHoldsABatchUpForSoLongAndNoLonger asks a function that answers one question a
// second. The scorer limits how long the questions wait for each other.
func TestASlowFunctionHoldsABatchUpForSoLongAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{}, 1)
		slow := &scriptedScorer{answer: func(ctx context.Context,
			q *decide.ScoreQuestion,
		) decide.Scores {
			select {
			case turn <- struct{}{}:
				time.Sleep(time.Second) // on the fake clock
				<-turn
				return favours("a")(ctx, q)
			case <-ctx.Done():
				return decide.Scores{Trouble: decide.FunctionTimeout}
			}
		}}
		r := distinctQuestions(t, 100)
		began := time.Now()
		ask(t.Context(), slow, r)
		if took := time.Since(began); took < longestHold || took >= longestHold+2*time.Second {
			t.Errorf("the batch was held up for %s", took)
		}
		troubles := map[string]int{}
		for _, one := range r.Open {
			troubles[one.Answer.Trouble]++
		}
		if troubles[""] < 5 || troubles[""]+troubles[decide.FunctionTimeout] != 100 {
			t.Errorf("answers: %v", troubles)
		}
	})
}

func TestEachQuestionIsPutToTheScorerAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int32
		all := make(chan struct{})
		r := distinctQuestions(t, 300)
		ask(t.Context(), &scriptedScorer{answer: func(ctx context.Context,
			q *decide.ScoreQuestion,
		) decide.Scores {
			if under.Add(1) == 300 {
				close(all)
			}
			select {
			case <-all:
				return favours("a")(ctx, q)
			case <-ctx.Done():
				return decide.Scores{Trouble: decide.FunctionTimeout}
			}
		}}, r)
		for _, one := range r.Open {
			if one.Answer.Trouble != "" {
				t.Fatalf("answer %+v: the questions waited for each other", one.Answer)
			}
		}
	})
}

func TestAnswersAboutDueRowsAreForgotten(t *testing.T) {
	t.Parallel()
	var a scoreAnswers
	scores := &decide.Scores{Values: []float64{1}}
	a.put(map[int64]keptAnswer{7: {RowScores: decide.RowScores{Scores: scores}}}, noon)
	if a.known()[7].Scores != scores {
		t.Error("the answer is not there")
	}
	a.put(nil, noon.Add(keptFor+1))
	if known := a.known(); known != nil {
		t.Errorf("an unused answer is still stored: %v", known)
	}
}

func TestRowsThatAreBeingAskedAboutAreLeftOut(t *testing.T) {
	t.Parallel()
	var a scoreAnswers
	if a.open() != nil {
		t.Error("no question is in progress")
	}
	a.begin([]int64{1, 2})
	a.begin([]int64{3})
	a.end([]int64{1, 3})
	if diff := cmp.Diff([]int64{2}, a.open()); diff != "" {
		t.Error(diff)
	}
}

// heldScorer answers when it is released, and counts its calls.
type heldScorer struct {
	free      chan struct{}
	asked     atomic.Int64
	unbounded bool // it waits for its release, however long the batch can wait
}

func (s *heldScorer) Scores(ctx context.Context, _ *decide.Function,
	q *decide.ScoreQuestion,
) decide.Scores {
	s.asked.Add(1)
	over := ctx.Done()
	if s.unbounded {
		over = nil
	}
	select {
	case <-s.free:
		return favours("b")(ctx, q)
	case <-over:
		return decide.Scores{Trouble: decide.FunctionTimeout}
	}
}

// TestASlowFunctionHoldsUpNoDueRowsOfOtherRoutes: rows of two routes become due while the function
// of one does not answer. The rows of the other are sent. Those of the slow route are not claimed
// again meanwhile, and not lost.
func TestASlowFunctionHoldsUpNoDueRowsOfOtherRoutes(t *testing.T) {
	t.Parallel()
	scorer := &heldScorer{free: make(chan struct{}), unbounded: true}
	p := setupScored(t, func(r *decide.Routing) {
		scoredByEndpoint(r)
		r.Routes[0].Match = decide.Match{Tenants: []string{"slow"}}
		r.Routes = append(r.Routes, decide.Route{Route: config.Route{
			Name: "other",
			Mode: decide.RoundRobinMode, MaxSegments: 10,
		}, Members: r.Routes[0].Members})
	}, scorer)
	release := sync.OnceFunc(func() { close(scorer.free) })
	t.Cleanup(release)
	// More rows of the slow route than one claim takes become due before those of the other.
	of := func(tenant string, n int) []decide.Job {
		jobs := jobsNamed(tenant, n)
		for i := range jobs {
			jobs[i].Message.Tenant = tenant
		}
		return forLater(jobs)
	}
	p.handle(t, of("slow", 600))
	p.handle(t, of("other", 300))
	p.comeDue(t)
	const sent = `select tenant, count(*) from dispatcher.message_states where state = 'accepted' ` +
		`group by 1`
	p.eventually(t, sent, map[string]int64{"other": 300})
	p.eventually(t, `select state, count(*) from dispatcher.message_states where tenant = 'slow' group `+
		`by 1`, map[string]int64{"scheduled": 600})
	if n := scorer.asked.Load(); n < 1 || n > maxAsking {
		t.Errorf("600 equal questions of due rows were asked %d times while there was no answer", n)
	}
	release()
	p.eventually(t, sent, map[string]int64{"other": 300, "slow": 600})
	p.eventually(t,
		`select coalesce(ranking->>'trouble', '-'), count(*)
		from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
		where tenant = 'slow' group by 1`, map[string]int64{"-": 600})
}

// TestStoppingWaitsForQuestionsUnderWay: otherwise a goroutine would be left.
func TestStoppingWaitsForQuestionsUnderWay(t *testing.T) {
	t.Parallel()
	scorer := &heldScorer{free: make(chan struct{})}
	p := setupScored(t, scoredByEndpoint, scorer)
	p.handle(t, forLater(jobsNamed("m", 3)))
	p.comeDue(t)
	deadline := time.After(tier.LongestWait)
	for scorer.asked.Load() == 0 {
		select {
		case <-deadline:
			t.Fatal("the function was not called")
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.stop()
	p.eventually(t, `select state, count(*) from dispatcher.message_states group by 1`,
		map[string]int64{"scheduled": 3})
	if open := p.answers.open(); len(open) != 0 {
		t.Errorf("%d rows are still being asked about", len(open))
	}
}

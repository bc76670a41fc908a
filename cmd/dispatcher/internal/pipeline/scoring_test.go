package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/selector"
)

// scriptedScorer answers as its script says and keeps every question.
type scriptedScorer struct {
	answer func(ctx context.Context, q *decide.ScoreQuestion) decide.Scores

	mu    sync.Mutex
	asked []decide.ScoreQuestion // guarded by mu
}

func (s *scriptedScorer) Scores(ctx context.Context, _ *decide.Function,
	q *decide.ScoreQuestion,
) decide.Scores {
	s.mu.Lock()
	s.asked = append(s.asked, *q)
	s.mu.Unlock()
	return s.answer(ctx, q)
}

func (s *scriptedScorer) questions() []decide.ScoreQuestion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]decide.ScoreQuestion(nil), s.asked...)
}

// favours scores one channel 1 and the others 0.
func favours(channel string) func(context.Context, *decide.ScoreQuestion) decide.Scores {
	return func(_ context.Context, q *decide.ScoreQuestion) decide.Scores {
		values := make([]float64, len(q.Candidates))
		for i, c := range q.Candidates {
			if c.Channel == channel {
				values[i] = 1
			}
		}
		return decide.Scores{Values: values}
	}
}

// scoredByEndpoint makes the only route rank by the scores of a function.
func scoredByEndpoint(r *decide.Routing) {
	r.Routes[0].Mode = decide.BestWorkerMode
	r.Routes[0].Scoring = decide.Scoring{Function: &decide.Function{
		URL:      "http://127.0.0.1/score",
		Deadline: 200 * time.Millisecond,
	}}
}

func TestFunctionDecidesWhereMessagesGo(t *testing.T) {
	t.Parallel()
	scorer := &scriptedScorer{answer: favours("b")}
	p := setupScored(t, scoredByEndpoint, scorer)
	p.handle(t, jobsNamed("m", 300))
	p.eventually(t, byState, map[string]int64{"accepted": 300})
	p.eventually(t, `select channel || ' ' || reason, count(*) from audit.attempts group by 1`,
		map[string]int64{"b first_choice": 300})
	p.eventually(t, `select first_choice || coalesce(draw_size, 0), count(*) from audit.messages `+
		`group by 1`, map[string]int64{"b0": 300})
	p.eventually(t, `select coalesce(ranking->>'scoring', '-'), count(*) from `+
		`dispatcher.attempts group by 1`, map[string]int64{"function": 300})
	if n := len(scorer.questions()); n != 1 {
		t.Errorf("300 equal messages of one batch were asked about %d times", n)
	}
}

// TestJobsThatFollowInTheNextClaimAreNotAskedAboutAgain: slots are free for a few jobs at a time.
func TestJobsThatFollowInTheNextClaimAreNotAskedAboutAgain(t *testing.T) {
	t.Parallel()
	scorer := &scriptedScorer{answer: favours("b")}
	p := setupScored(t, scoredByEndpoint, scorer)
	p.slots.hold(t, p.slots.size()-10)
	defer p.slots.release(p.slots.size() - 10)
	const messages = 100
	jobs := jobsNamed("m", messages)
	for i := range jobs {
		jobs[i].Message.Labels = map[string]selector.Value{"n": selector.NumberValue(float64(i))}
	}
	p.handle(t, jobs)
	p.eventually(t, byState, map[string]int64{"accepted": messages})
	if n := len(scorer.questions()); n != messages {
		t.Errorf("%d questions about %d messages", n, messages)
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	if n := len(p.answers.jobs); n != 0 {
		t.Errorf("got %d used answers still stored", n)
	}
}

// TestDueRowsAreAskedAboutOnceAndSentAtOnce: scheduled messages are first seen inside a claim,
// where the function may not be asked, and each answer may be used only once.
func TestDueRowsAreAskedAboutOnceAndSentAtOnce(t *testing.T) {
	t.Parallel()
	scorer := &scriptedScorer{answer: favours("b")}
	p := setupScored(t, scoredByEndpoint, scorer)
	jobs := jobsNamed("m", 40)
	for i := range jobs {
		jobs[i].Message.Labels = map[string]selector.Value{
			"n": selector.NumberValue(float64(i % 4)),
		}
	}
	p.handle(t, forLater(jobs))
	if n := len(scorer.questions()); n != 0 {
		t.Errorf("%d questions about messages that are for later", n)
	}
	p.comeDue(t)
	p.eventually(t, byState, map[string]int64{"accepted": 40})
	p.eventually(t, `select channel || ' ' || coalesce(ranking->>'scoring', '-'), count(*) from `+
		`dispatcher.attempts group by 1`, map[string]int64{"b function": 40})
	if n := len(scorer.questions()); n != 4 {
		t.Errorf("%d questions, want the 4 distinct ones", n)
	}
	p.eventually(t, `select 'status', sum(cardinality(keys)) from dispatcher.outbox where kind = `+
		`'status'`, map[string]int64{"status": 120})
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	if n := len(p.answers.rows); n != 0 {
		t.Errorf("got %d used answers still stored", n)
	}
}

func TestSilentFunctionDelaysButStopsNothing(t *testing.T) {
	t.Parallel()
	p := setupScored(t, scoredByEndpoint,
		&scriptedScorer{answer: func(ctx context.Context, _ *decide.ScoreQuestion) decide.Scores {
			<-ctx.Done()
			return decide.Scores{Trouble: decide.FunctionTimeout}
		}})
	for _, c := range p.channels {
		c.answer = always(provider.Refused) // each message comes due again
	}
	p.handle(t, jobsNamed("m", 20))
	rounds := tier.Size(2, 3) // each is held up for longestHold
	p.eventually(t, fmt.Sprintf(`
		select reason, count(*) from audit.attempts where attempt <= %d group by 1`, rounds),
		map[string]int64{"first_choice": 20, "fallback": int64(20 * (rounds - 1))})
	p.eventually(t, `select ranking->>'trouble', count(*) from dispatcher.all_attempts where attempt `+
		`= 1 group by 1`, map[string]int64{"function_timeout": 20})
}

// lockProbingScorer needs the lock of every channel to answer. A claim that asked while it holds
// these locks would wait for itself.
type lockProbingScorer struct {
	mu  sync.Mutex
	sql *pgx.Conn // guarded by mu; nil until the pipeline is up
}

func (s *lockProbingScorer) Scores(ctx context.Context, _ *decide.Function,
	q *decide.ScoreQuestion,
) decide.Scores {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := s.sql.Exec(ctx, `select from dispatcher.channels for update`); err != nil {
		return decide.Scores{Trouble: decide.FunctionTimeout}
	}
	return favours("c")(ctx, q)
}

func TestNoFunctionIsCalledInsideAClaim(t *testing.T) {
	t.Parallel()
	scorer := &lockProbingScorer{}
	p := setupScored(t, scoredByEndpoint, scorer)
	scorer.mu.Lock()
	var err error
	scorer.sql, err = pgx.Connect(t.Context(), p.sql.Config().ConnString())
	scorer.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scorer.sql.Close(context.WithoutCancel(t.Context())) })
	jobs := jobsNamed("m", 20)
	forLater(jobs[:10])
	p.handle(t, jobs)
	p.comeDue(t)
	p.eventually(t, `select channel || coalesce(ranking->>'trouble', ''), count(*) from `+
		`dispatcher.attempts group by 1`, map[string]int64{"c": 20})
}

func TestRoundRobinIsCircularOverClaimsOfTheLedger(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) { r.Routes[0].Mode = decide.RoundRobinMode })
	var want []string
	for batch := range 7 {
		p.handle(t, jobsNamed(fmt.Sprint("batch", batch), 4)) // ids ascend in the order of jobs
	}
	for i := range 28 {
		want = append(want, []string{"a", "b", "c"}[i%3])
	}
	p.eventually(t, byState, map[string]int64{"accepted": 28})
	var got []string
	err := p.sql.QueryRow(t.Context(),
		`select array_agg(a.channel order by m.id collate "C") from dispatcher.all_attempts a join `+
			`dispatcher.messages m on m.seq = a.message_seq`).Scan(&got)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: turns %v", err, got)
	}
}

func TestConcurrentClaimsShareOneCursor(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) { r.Routes[0].Mode = decide.RoundRobinMode })
	var producers sync.WaitGroup
	for i := range 6 {
		producers.Go(func() {
			for batch := range 5 {
				if err := p.Handle(t.Context(),
					jobsNamed(fmt.Sprintf("p%d-%d", i, batch), 10), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	producers.Wait()
	p.eventually(t, byState, map[string]int64{"accepted": 300})
	p.eventually(t, `select channel, count(*) from audit.attempts group by 1`,
		map[string]int64{"a": 100, "b": 100, "c": 100})
}

func TestRolledBackClaimTakesNoTurn(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) { r.Routes[0].Mode = decide.RoundRobinMode })
	bad := jobsNamed("bad", 1)
	bad[0].Message.Tenant = "\x00" // the ledger refuses it
	p.handle(t, append(bad, jobsNamed("good", 2)...))
	p.handle(t, jobsNamed("more", 1))
	p.eventually(t, byState, map[string]int64{"accepted": 3, "dead": 1})
	p.eventually(t, `select channel, count(*) from audit.attempts group by 1`,
		map[string]int64{"a": 1, "b": 1, "c": 1})
}

func TestSelectorThatExpiresLetsItsMessageGo(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	jobs := jobsNamed("m", 3)
	for i := range jobs {
		jobs[i].Message.Selectors = []envelope.Selector{qualityAbove(5, 5*time.Second)}
		jobs[i].Raw = jobs[i].Message.Append(nil)
	}
	p.handle(t, jobs)
	p.eventually(t, `select state || ' ' || reason, count(*) from dispatcher.message_states group by 1`,
		map[string]int64{"waiting selector": 3})
	p.eventually(t, byState, map[string]int64{"accepted": 3})
	p.eventually(t,
		`select 'early', count(*)
		from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
		where a.claimed_at < m.received_at + interval '5 seconds'`, map[string]int64{"early": 0})
}

package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Scorer asks scoring functions. Scores is called from many goroutines at once, one for each
// distinct question of a batch, and never inside a claim.
//
// The deadline of f is the Scorer's to keep, from the moment at which it begins to ask: how long a
// question waits until it is its turn is not the function's doing. ctx ends when the batch cannot
// wait any longer; Scores must return soon after. It does not fail: what goes wrong is a word in
// the answer.
type Scorer interface {
	Scores(ctx context.Context, f *decide.Function, q *decide.ScoreQuestion) decide.Scores
}

// longestHold bounds how long scoring functions may hold up one batch in all. It is as long as the
// longest deadline of one question, so a question that is asked at once always has its time. Those
// that have no answer by then get FunctionTimeout: their messages go by the default scoring rather
// than wait on.
const longestHold = 5 * time.Second

// ask puts every question of a request to its function, all at once: it is the Scorer that knows
// how many a function can take. It returns when all have an answer, if only a word of trouble, and
// after longestHold at the latest.
func ask(ctx context.Context, scorer Scorer, q *decide.ScoreRequest) {
	ctx, cancel := context.WithTimeout(ctx, longestHold)
	defer cancel()
	if len(q.Open) == 1 {
		askOne(ctx, scorer, q.Open[0])
		return
	}
	var asking sync.WaitGroup
	for _, one := range q.Open {
		asking.Go(func() { askOne(ctx, scorer, one) })
	}
	asking.Wait()
}

func askOne(ctx context.Context, scorer Scorer, o *decide.OpenQuestion) {
	if scorer == nil {
		o.Answer = decide.Scores{Trouble: decide.FunctionUnreachable}
		return
	}
	o.Answer = scorer.Scores(ctx, o.Function, &o.Question).Checked(len(o.Question.Candidates))
}

// askAboutJobs asks the scoring functions about the jobs of a claim that are to find a channel in
// its claim, and about each job once: the claim before may have had no slots for it. It asks before
// the claim has slots, because a function may take seconds, and slots that are held meanwhile would
// be missing on all lanes.
func (d *Dispatcher) askAboutJobs(ctx context.Context, r *claim) error {
	q := decide.ScoreRequest{Routing: r.plan.Routing, Now: r.plan.Now}
	asked := map[int]*decide.OpenQuestion{}
	now := time.Now()
	for i := range r.plan.Tasks {
		if t := &r.plan.Tasks[i]; t.Wanted() && t.Route.Asks() {
			t.Scores = d.answers.findJob(t.JobKey(), r.plan.Routing.Version, now)
			if t.Scores == nil {
				asked[i] = q.Add(t)
			}
		}
	}
	if len(asked) == 0 {
		return ctx.Err()
	}
	ask(ctx, d.cfg.Scorer, &q)
	if ctx.Err() != nil {
		return ctx.Err() // answers that were cut short are not decided upon
	}
	kept := make(map[decide.JobKey]keptAnswer, len(asked))
	for i, one := range asked {
		t := &r.plan.Tasks[i]
		t.Scores = &one.Answer
		answer := decide.RowScores{Version: r.plan.Routing.Version, Scores: t.Scores}
		kept[t.JobKey()] = keptAnswer{RowScores: answer}
	}
	d.answers.putJobs(kept, time.Now())
	return nil
}

// maxAsking bounds the claims about whose due rows functions are being asked at once.
const maxAsking = 4

// askAboutDue begins to ask about the due rows that a claim left as they were, so that a later one
// can decide on them. The due loop goes on meanwhile, with other rows: a slow function holds up no
// route but its own until maxAsking claims wait for it, and then for longestHold at most.
func (d *Dispatcher) askAboutDue(ctx context.Context, r *claim, asking *sync.WaitGroup) {
	select {
	case d.asking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	q := decide.ScoreRequest{Routing: r.plan.Routing, Now: r.decided.Now}
	asked := make(map[int64]*decide.OpenQuestion, len(r.decided.Unasked))
	for _, i := range r.decided.Unasked {
		t := &r.decided.Tasks[i]
		asked[t.Row.Seq] = q.Add(t)
	}
	rows := slices.Collect(maps.Keys(asked))
	d.answers.begin(rows)
	asking.Go(func() {
		defer func() { <-d.asking }()
		ask(ctx, d.cfg.Scorer, &q)
		if ctx.Err() == nil { // answers that were cut short are not decided upon
			d.keep(asked, r.plan.Routing.Version)
		}
		d.answers.end(rows)
		d.wake()
	})
}

// keep hands the answers about due rows to the claims to come.
func (d *Dispatcher) keep(asked map[int64]*decide.OpenQuestion, version int64) {
	rows := make(map[int64]keptAnswer, len(asked))
	for seq, one := range asked {
		answer := decide.RowScores{
			Version: version, Selectors: len(one.Question.Selectors), Scores: &one.Answer,
		}
		rows[seq] = keptAnswer{RowScores: answer}
	}
	d.answers.put(rows, time.Now())
}

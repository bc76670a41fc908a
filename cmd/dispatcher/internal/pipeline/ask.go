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
// The Scorer enforces the timeout of f, from the moment at which it begins to ask: time spent in
// its queue does not count against the function. ctx ends when the batch cannot wait any longer;
// Scores must return soon after. It returns no error: Trouble in the answer names a failure.
type Scorer interface {
	Scores(ctx context.Context, f *decide.Function, q *decide.ScoreQuestion) decide.Scores
}

// longestHold bounds how long scoring functions may delay one batch in all. It equals the longest
// timeout of one question, so a question that is asked at once always has its full time. Questions
// without an answer by then get FunctionTimeout, and the default scoring ranks for their messages.
const longestHold = 5 * time.Second

// ask puts every question of a request to its function, all at once: the Scorer knows how many a
// function can take. It returns when each has an answer or a trouble, and after longestHold at the
// latest.
func ask(ctx context.Context, scorer Scorer, r *decide.ScoreRequest) {
	ctx, cancel := context.WithTimeout(ctx, longestHold)
	defer cancel()
	if len(r.Open) == 1 {
		askOne(ctx, scorer, r.Open[0])
		return
	}
	var asking sync.WaitGroup
	for _, one := range r.Open {
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

// askAboutJobs asks the scoring functions about the jobs that need a channel in this claim, except
// those for which an earlier claim asked and had no slots. It asks before the claim has slots: a
// function may take seconds, and slots held meanwhile would be missing on all lanes.
func (d *Dispatcher) askAboutJobs(ctx context.Context, c *claim) error {
	request := decide.ScoreRequest{Routing: c.plan.Routing, Now: c.plan.Now}
	asked := map[int]*decide.OpenQuestion{}
	now := time.Now()
	for i := range c.plan.Tasks {
		if t := &c.plan.Tasks[i]; t.Wanted() && t.Route.Asks() {
			t.Scores = d.answers.findJob(t.JobKey(), c.plan.Routing.Version, now)
			if t.Scores == nil {
				asked[i] = request.Add(t)
			}
		}
	}
	if len(asked) == 0 {
		return ctx.Err()
	}
	ask(ctx, d.cfg.Scorer, &request)
	if ctx.Err() != nil {
		return ctx.Err() // answers that were cut short are not used
	}
	kept := make(map[decide.JobKey]keptAnswer, len(asked))
	for i, one := range asked {
		t := &c.plan.Tasks[i]
		t.Scores = &one.Answer
		answer := decide.RowScores{Version: c.plan.Routing.Version, Scores: t.Scores}
		kept[t.JobKey()] = keptAnswer{RowScores: answer}
	}
	d.answers.putJobs(kept, time.Now())
	return nil
}

// maxAsking bounds how many claims may wait at once for answers about their due rows.
const maxAsking = 4

// askAboutDue starts to ask about the due rows that a claim left unchanged, so that a later claim
// can decide on them. The due loop goes on meanwhile with other rows. A slow function delays only
// its own route, until maxAsking claims wait for it; then it delays others for longestHold at most.
func (d *Dispatcher) askAboutDue(ctx context.Context, c *claim, asking *sync.WaitGroup) {
	select {
	case d.asking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	request := decide.ScoreRequest{Routing: c.plan.Routing, Now: c.decided.Now}
	asked := make(map[int64]*decide.OpenQuestion, len(c.decided.Unasked))
	for _, i := range c.decided.Unasked {
		t := &c.decided.Tasks[i]
		asked[t.Row.Seq] = request.Add(t)
	}
	rows := slices.Collect(maps.Keys(asked))
	d.answers.begin(rows)
	asking.Go(func() {
		defer func() { <-d.asking }()
		ask(ctx, d.cfg.Scorer, &request)
		if ctx.Err() == nil { // answers that were cut short are not used
			d.keep(asked, c.plan.Routing.Version)
		}
		d.answers.end(rows)
		d.wake()
	})
}

// keep stores the answers about due rows for later claims.
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

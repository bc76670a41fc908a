package dispatch

import (
	"context"
	"sync"
	"time"
)

// maxAsking bounds the questions that one batch has under way at once.
const maxAsking = 64

// ask puts every question of an inquiry to its function, several at once, each with the
// function's deadline. It returns when all have an answer, if only a word of trouble.
func ask(ctx context.Context, scorer Scorer, q *inquiry) {
	if len(q.open) == 1 {
		q.open[0].ask(ctx, scorer)
		return
	}
	var asking sync.WaitGroup
	turn := make(chan struct{}, maxAsking)
	for _, one := range q.open {
		turn <- struct{}{}
		asking.Go(func() {
			one.ask(ctx, scorer)
			<-turn
		})
	}
	asking.Wait()
}

func (o *openQuestion) ask(ctx context.Context, scorer Scorer) {
	if scorer == nil {
		o.answer = Scores{Trouble: FunctionUnreachable}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.function.Deadline)
	defer cancel()
	o.answer = scorer.Scores(ctx, o.function, &o.question).checked(len(o.question.Candidates))
}

// askAboutJobs asks the scoring functions about the jobs of a round that are to find a
// channel in its claim.
func (d *Dispatcher) askAboutJobs(ctx context.Context, r *round) error {
	q := inquiry{routing: r.routing, now: r.planner.now}
	asked := map[int]*openQuestion{}
	for i := range r.tasks {
		if t := &r.tasks[i]; t.wanted() && t.route.asks() {
			asked[i] = q.add(t)
		}
	}
	ask(ctx, d.cfg.Scorer, &q)
	for i, one := range asked {
		r.tasks[i].scores = &one.answer
	}
	return ctx.Err() // answers that were cut short are not decided upon
}

// askAboutDue asks about the due rows that a claim left as they were, so that the next one
// can decide on them.
func (d *Dispatcher) askAboutDue(ctx context.Context, r *round) {
	q := inquiry{routing: r.routing, now: r.now}
	asked := make(map[int64]*openQuestion, len(r.unasked))
	for _, i := range r.unasked {
		asked[r.tasks[i].row.Seq] = q.add(&r.tasks[i])
	}
	ask(ctx, d.cfg.Scorer, &q)
	if ctx.Err() != nil {
		return
	}
	rows := make(map[int64]keptAnswer, len(asked))
	for seq, one := range asked {
		rows[seq] = keptAnswer{version: r.routing.Version, key: one.question.key(), scores: &one.answer}
	}
	d.answers.put(rows, time.Now())
}

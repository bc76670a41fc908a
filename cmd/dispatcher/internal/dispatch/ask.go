package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// longestHold bounds how long scoring functions may hold up one batch in all. It is as long as the
// longest deadline of one question, so a question that is asked at once always has its time. Those
// that have no answer by then get FunctionTimeout: their messages go by the default scoring rather
// than wait on.
const longestHold = 5 * time.Second

// ask puts every question of a request to its function, all at once: it is the Scorer that knows
// how many a function can take. It returns when all have an answer, if only a word of trouble, and
// after longestHold at the latest.
func ask(ctx context.Context, scorer Scorer, q *scoreRequest) {
	ctx, cancel := context.WithTimeout(ctx, longestHold)
	defer cancel()
	if len(q.open) == 1 {
		askOne(ctx, scorer, q.open[0])
		return
	}
	var asking sync.WaitGroup
	for _, one := range q.open {
		asking.Go(func() { askOne(ctx, scorer, one) })
	}
	asking.Wait()
}

func askOne(ctx context.Context, scorer Scorer, o *openQuestion) {
	if scorer == nil {
		o.answer = Scores{Trouble: FunctionUnreachable}
		return
	}
	o.answer = scorer.Scores(ctx, o.function, &o.question).checked(len(o.question.Candidates))
}

// askAboutJobs asks the scoring functions about the jobs of a claim that are to find a channel in
// its claim, and about each job once: the claim before may have had no slots for it. It asks before
// the claim has slots, because a function may take seconds, and slots that are held meanwhile would
// be missing on all lanes.
func (d *Dispatcher) askAboutJobs(ctx context.Context, r *claim) error {
	q := scoreRequest{routing: r.plan.routing, now: r.plan.now}
	asked := map[int]*openQuestion{}
	now := time.Now()
	for i := range r.plan.tasks {
		if t := &r.plan.tasks[i]; t.wanted() && t.route.asks() {
			t.scores = d.answers.findJob(t.jobKey(), r.plan.routing.Version, now)
			if t.scores == nil {
				asked[i] = q.add(t)
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
	kept := make(map[jobKey]keptAnswer, len(asked))
	for i, one := range asked {
		t := &r.plan.tasks[i]
		t.scores = &one.answer
		answer := RowScores{version: r.plan.routing.Version, scores: t.scores}
		kept[t.jobKey()] = keptAnswer{RowScores: answer}
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
	q := scoreRequest{routing: r.plan.routing, now: r.decided.now}
	asked := make(map[int64]*openQuestion, len(r.decided.unasked))
	for _, i := range r.decided.unasked {
		t := &r.decided.tasks[i]
		asked[t.row.Seq] = q.add(t)
	}
	rows := slices.Collect(maps.Keys(asked))
	d.answers.begin(rows)
	asking.Go(func() {
		defer func() { <-d.asking }()
		ask(ctx, d.cfg.Scorer, &q)
		if ctx.Err() == nil { // answers that were cut short are not decided upon
			d.keep(asked, r.plan.routing.Version)
		}
		d.answers.end(rows)
		d.wake()
	})
}

// keep hands the answers about due rows to the claims to come.
func (d *Dispatcher) keep(asked map[int64]*openQuestion, version int64) {
	rows := make(map[int64]keptAnswer, len(asked))
	for seq, one := range asked {
		answer := RowScores{version, len(one.question.Selectors), &one.answer}
		rows[seq] = keptAnswer{RowScores: answer}
	}
	d.answers.put(rows, time.Now())
}

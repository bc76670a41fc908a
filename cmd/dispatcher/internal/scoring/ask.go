package scoring

import (
	"context"
	"errors"
	"sync"

	"dispatcher/cmd/dispatcher/internal/dispatch"
)

// calls is how many calls of a question are under way at once.
func calls(f *dispatch.Function, q *dispatch.ScoreQuestion) int {
	size := callSize(f)
	return min((len(q.Candidates)+size-1)/size, maxConnections)
}

// ask puts a question to a function in as many calls as it takes, all within f.Deadline,
// which begins now. The caller has made sure that they find room. The first call that fails ends the others.
func (c *Client) ask(ctx context.Context, f *dispatch.Function, q *dispatch.ScoreQuestion) ([]float64, problem) {
	ctx, cancel := context.WithTimeout(ctx, f.Deadline)
	defer cancel()
	a := asking{client: c, function: f, question: q, cancel: cancel, values: make([]float64, len(q.Candidates))}
	a.left = cut(len(q.Candidates), callSize(f))
	if len(a.left) == 1 {
		a.work(ctx)
	} else {
		var group sync.WaitGroup
		for range calls(f, q) {
			group.Go(func() { a.work(ctx) })
		}
		group.Wait()
	}
	if a.first.word != "" {
		return nil, a.first
	}
	return a.values, problem{}
}

// callSize is how many candidates one call may be about.
func callSize(f *dispatch.Function) int {
	if f.Batch {
		return max(f.BatchSize, 1)
	}
	return 1
}

// stretch is the candidates from low up to but not including high.
type stretch struct{ low, high int }

// cut divides n candidates into stretches of at most size.
func cut(n, size int) []stretch {
	var out []stretch
	for low := 0; low < n; low += size {
		out = append(out, stretch{low, min(low+size, n)})
	}
	return out
}

// asking is one question on its way.
type asking struct {
	client   *Client
	function *dispatch.Function
	question *dispatch.ScoreQuestion
	cancel   context.CancelFunc
	values   []float64 // each call writes those of its own candidates

	mu    sync.Mutex
	left  []stretch // guarded by mu: the calls to be made
	first problem   // guarded by mu: what went wrong first
}

// work makes calls until none is left or one has failed.
func (a *asking) work(ctx context.Context) {
	for part, ok := a.next(); ok; part, ok = a.next() {
		if p := a.call(ctx, part); p.word != "" {
			a.fail(p)
		}
	}
}

func (a *asking) next() (stretch, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.left) == 0 || a.first.word != "" {
		return stretch{}, false
	}
	part := a.left[0]
	a.left = a.left[1:]
	return part, true
}

// fail keeps the first problem: those that follow are only its consequence.
func (a *asking) fail(p problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.word == "" {
		a.first = p
		a.cancel()
	}
}

// call is one of the calls.
func (a *asking) call(ctx context.Context, part stretch) problem {
	about := a.question.Candidates[part.low:part.high]
	payload, err := encode(a.function, a.question, about)
	if err != nil {
		return problem{word: dispatch.FunctionInvalid} // a label that JSON cannot hold
	}
	p := a.client.post(ctx, a.function, payload, about, a.values[part.low:part.high])
	if !errors.Is(ctx.Err(), context.Canceled) { // else it was cut off from here
		a.client.metrics.called(a.question.Route, p.word)
	}
	return p
}

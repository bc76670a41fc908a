package scoring

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// calls is how many calls of a question are made at once.
func calls(f *decide.Function, q *decide.ScoreQuestion) int {
	size := callSize(f)
	return min((len(q.Candidates)+size-1)/size, maxConnections)
}

// callSize is how many candidates one call may be about.
func callSize(f *decide.Function) int {
	if f.Batch {
		return max(f.BatchSize, 1)
	}
	return 1
}

// ask puts a question to a function in as many calls as needed, all within f.Deadline, which starts
// now. The caller has reserved their places at the gate. The first call that fails ends the others,
// and its problem is returned.
func (c *Client) ask(
	ctx context.Context, f *decide.Function, q *decide.ScoreQuestion,
) ([]float64, problem) {
	ctx, cancel := context.WithTimeout(ctx, f.Deadline)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(calls(f, q))
	values, size := make([]float64, len(q.Candidates)), callSize(f)
	for low := 0; low < len(values); low += size {
		high := min(low+size, len(values))
		group.Go(func() error {
			return c.call(ctx, f, q, q.Candidates[low:high], values[low:high])
		})
	}
	if p, failed := errors.AsType[problem](group.Wait()); failed {
		return nil, p
	}
	return values, problem{}
}

// call makes one call about some of the candidates; its error is a problem.
func (c *Client) call(
	ctx context.Context, f *decide.Function, q *decide.ScoreQuestion,
	about []decide.ScoreCandidate, out []float64,
) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return problem{word: decide.FunctionTimeout} // another call has failed, or the caller has gone
	}
	payload, err := encode(f, q, about)
	if err != nil {
		return problem{word: decide.FunctionInvalid} // a label that JSON cannot hold
	}
	p := c.post(ctx, f, payload, about, out)
	if !errors.Is(ctx.Err(), context.Canceled) { // otherwise this process has cancelled it
		c.metrics.called(q.Route, p.word)
	}
	if p.word != "" {
		return p
	}
	return nil
}

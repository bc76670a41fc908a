package kafka

import (
	"context"
	"sync"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// call is one call of ConsumerConfig.Handle, in a goroutine of its own.
type call struct {
	work  batch
	next  chan struct{} // closed when the next batch may be handed over
	ended chan struct{} // closed when Handle has returned
	err   error         // set before ended is closed
}

func (c *call) run(
	ctx context.Context, handle func(ctx context.Context, jobs []decide.Job, next func()) error,
) {
	defer close(c.ended)
	c.err = handle(ctx, c.work.jobs, sync.OnceFunc(func() { close(c.next) }))
}

// allowsNext waits until Handle has called next or returned, or the first call has returned. It
// reports whether the next batch may be handed over.
func (c *call) allowsNext(first *call) bool {
	select {
	case <-c.next:
		return true
	case <-c.ended:
		return c.err == nil
	case <-first.ended:
		return false
	}
}

// result waits until Handle has returned, and returns its error.
func (c *call) result() error {
	<-c.ended
	return c.err
}

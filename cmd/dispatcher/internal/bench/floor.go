// Package bench measures the dispatcher against a floor: the shortest code that stores the same
// facts durably and does the same intake and the same submits, without routing, limits and ranking.
//
// The floor has a schema and statements of its own and several batches in flight, so that only the
// machine limits it, and neither a setting nor the ledger does. It must not be used for real
// sending, because any error ends it.
package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

const (
	// floorBatch is the most messages or receipts in a transaction of the floor.
	floorBatch = 500
	// floorBatches is how many batches are in flight, each on a connection. On a fast disk two are
	// enough, on a slow one more are faster; see docs/benchmark.md.
	floorBatches = 8
	// floorSendTimeout bounds the submits of a batch.
	floorSendTimeout = 2 * time.Minute
)

// Floor sends jobs over the channels in turn and stores their outcomes.
type Floor struct {
	pool     *pgxpool.Pool
	names    []string
	channels []provider.Channel // set by Use
	fail     context.CancelCauseFunc
	slots    chan struct{} // batches in flight
	work     chan submit
	senders  sync.WaitGroup
	settling sync.WaitGroup
	receipts receiptQueue
}

type submit struct {
	ctx     context.Context //nolint:containedctx // Of its batch; a value that is handed on.
	channel provider.Channel
	message provider.Submission
	result  *provider.Result
	done    *sync.WaitGroup
}

// NewFloor starts as many senders as submits may be in flight. fail is called with an error that
// ends the floor. Use must be called before Handle, and Close at the end.
func NewFloor(pool *pgxpool.Pool, fail context.CancelCauseFunc) *Floor {
	f := &Floor{
		pool:     pool,
		fail:     fail,
		slots:    make(chan struct{}, floorBatches),
		work:     make(chan submit, floorBatches*floorBatch),
		receipts: receiptQueue{wake: make(chan struct{}, 1)},
	}
	for range floorBatches * floorBatch {
		f.senders.Go(func() {
			for s := range f.work {
				*s.result = s.channel.Send(s.ctx, s.message)
				s.done.Done()
			}
		})
	}
	return f
}

// Use sets the channels, and creates their rows of counters.
func (f *Floor) Use(ctx context.Context, names []string, channels []provider.Channel) error {
	f.names, f.channels = names, channels
	_, err := f.pool.Exec(ctx, `insert into floor.channels (channel) select unnest($1::text[])`,
		names)
	return err
}

// Handle stores the jobs in batches, each on a connection of its own, and returns when all are
// durable. It calls next when all are in flight. Sending and settling go on in the background.
func (f *Floor) Handle(ctx context.Context, jobs []decide.Job, next func()) error {
	var stored sync.WaitGroup
	defer stored.Wait()
	for batch := range slices.Chunk(jobs, floorBatch) {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		stored.Add(1)
		f.settling.Go(func() {
			defer func() { <-f.slots }()
			f.carry(context.WithoutCancel(ctx), batch, stored.Done)
		})
	}
	next()
	return nil
}

// carry processes a batch from claim to settlement.
func (f *Floor) carry(ctx context.Context, jobs []decide.Job, stored func()) {
	r := f.rows(jobs)
	err := f.store(ctx, r)
	stored()
	if err == nil {
		f.send(ctx, jobs, r)
		err = f.settle(ctx, r)
	}
	if err != nil {
		f.fail(err)
	}
}

// send submits the batch and waits for every answer.
func (f *Floor) send(ctx context.Context, jobs []decide.Job, r *rows) {
	ctx, cancel := context.WithTimeout(ctx, floorSendTimeout)
	defer cancel()
	var answers sync.WaitGroup
	answers.Add(len(jobs))
	for i := range jobs {
		m := &jobs[i].Message
		f.work <- submit{
			ctx: ctx, channel: f.channels[i%len(f.channels)], result: &r.results[i], done: &answers,
			message: provider.Submission{
				ID: m.ID, Attempt: 1, To: m.To, From: m.From, Text: m.Text,
			},
		}
	}
	answers.Wait()
}

// Close waits for the batches in flight and ends the senders. Handle must not be called any more.
func (f *Floor) Close() {
	f.settling.Wait()
	close(f.work)
	f.senders.Wait()
}

// notAccepted is the error when a carrier does not accept a message.
func notAccepted(r *provider.Result) error {
	return fmt.Errorf("floor: a carrier answered %s: %w", r.Outcome, r.Err)
}

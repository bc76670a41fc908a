// Package bench measures the dispatcher against a floor, which does the same intake, the same
// inserts and updates and the same submits, but no routing, no limits and no ranking.
//
// The floor is the shortest code that writes the same rows. It is not fit for real sending, because
// an error ends it.
package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider"
)

// Floor sends jobs over the channels in turn.
type Floor struct {
	pool     *pgxpool.Pool
	channels []provider.Channel
	names    []string
	slots    chan struct{} // one batch in flight, as large as the dispatcher's limit
	work     chan submit
	senders  sync.WaitGroup
	settling sync.WaitGroup

	mu  sync.Mutex
	err error // guarded by mu: the first error
}

type submit struct {
	channel int
	message provider.Submission
	result  *provider.Result
	done    *sync.WaitGroup
}

// NewFloor starts as many senders as submits may be in flight.
func NewFloor(
	pool *pgxpool.Pool, names []string, channels []provider.Channel, unsettled int,
) *Floor {
	f := &Floor{
		pool:     pool,
		channels: channels,
		names:    names,
		slots:    make(chan struct{}, 1),
		work:     make(chan submit, unsettled),
	}
	for range unsettled {
		f.senders.Go(func() {
			for s := range f.work {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				*s.result = f.channels[s.channel].Send(ctx, s.message)
				cancel()
				s.done.Done()
			}
		})
	}
	return f
}

// Handle stores a batch and starts to send it. One batch is in flight at a time, which is the
// dispatcher's limit too; the next one is fetched and decoded meanwhile.
func (f *Floor) Handle(ctx context.Context, jobs []decide.Job) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	rows, err := f.store(ctx, jobs)
	if err != nil {
		<-f.slots
		return err
	}
	ctx = context.WithoutCancel(ctx) // the caller's may end with this call
	f.settling.Go(func() {
		defer func() { <-f.slots }()
		f.send(jobs, rows)
		if err := f.settle(ctx, rows); err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.err == nil {
				f.err = err
			}
		}
	})
	return f.Err()
}

// rows are a batch as columns, the form of its parameters.
type rows struct {
	seq                []int64
	id, channel        []string
	topic, lane        []string
	partition          []int32
	offset             []int64
	envelope, event    [][]byte
	expires            []time.Time
	results            []provider.Result
	outcome, reference []string
	code, state, empty []string
	segments           []int16
	price              []int64
}

func (f *Floor) columns(jobs []decide.Job) *rows {
	r := &rows{results: make([]provider.Result, len(jobs))}
	for i := range jobs {
		j := &jobs[i]
		r.id, r.channel = append(r.id, j.Message.ID), append(r.channel, f.names[i%len(f.names)])
		r.topic, r.lane = append(r.topic, j.Origin.Topic), append(r.lane, j.Lane)
		r.partition, r.offset = append(r.partition, j.Origin.Partition), append(r.offset,
			j.Origin.Offset)
		r.envelope, r.expires = append(r.envelope, j.Raw), append(r.expires,
			j.Produced.Add(time.Hour))
	}
	r.events("sending")
	return r
}

// events are the status events of the batch.
func (r *rows) events(state string) {
	r.event = r.event[:0]
	now := time.Now()
	for i := range r.id {
		r.event = append(r.event, envelope.AppendStatus(make([]byte, 0, 256), envelope.Status{
			ID: r.id[i], State: state, At: now, Lane: r.lane[i], Route: "floor",
			Channel: r.channel[i], Attempt: 1, Segments: 1,
		}))
	}
}

// The statements write the same columns of the same tables as the ledger's.
const (
	storeMessages = `
		insert into dispatcher.messages (id, lane, topic, kafka_partition, kafka_offset, envelope,
		  digest, state, expires_at, attempts, route, routing_version, draw, draw_size, draw_key_id,
		  first_choice, segments, alphabet)
		select n.id, n.lane, n.topic, n.p, n.o, n.envelope, 1, 'sending', n.expires, 1, 'floor', 1,
		  0, 100, '00000000', n.channel, 1, 'gsm7'
		from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::bytea[],
		  $7::timestamptz[], $8::text[])
		  as n(id, lane, topic, p, o, envelope, expires, channel)
		on conflict (id) do nothing returning seq`
	storeAttempts = `
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments,
		  price_micros, currency, claimed_at, instance)
		select n.seq, 1, n.channel, 'first_choice', 1, 30000, 'EUR', now(), 0
		from unnest($1::bigint[], $2::text[]) as n(seq, channel)`
	storeEvents = `insert into dispatcher.outbox (kind, keys, "values") values ('status', ` +
		`$1, $2)`
	settleAttempts = `
		update dispatcher.attempts a set outcome = n.outcome, provider_code = n.code,
		  provider_reference = n.reference, segments = n.segments, price_micros = n.price,
		  settled_at = now(), answers = a.answers + 1
		from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[])
		  as n(seq, outcome, code, reference, segments, price)
		where a.message_seq = n.seq and a.attempt = 1`
	settleMessages = `
		update dispatcher.messages m
		set state = n.state, reason = nullif(n.reason, ''), pinned = nullif(n.pinned, '')
		from unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
		  as n(seq, state, reason, pinned)
		where m.seq = n.seq`
)

// store writes messages, attempts and events in one transaction of two round trips.
func (f *Floor) store(ctx context.Context, jobs []decide.Job) (*rows, error) {
	r := f.columns(jobs)
	tx, err := f.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("floor: begin: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // Nothing to undo after a commit.
	inserted, err := tx.Query(ctx, storeMessages, r.id, r.lane, r.topic, r.partition, r.offset,
		r.envelope, r.expires, r.channel)
	if err != nil {
		return nil, fmt.Errorf("floor: store messages: %w", err)
	}
	if r.seq, err = pgx.CollectRows(inserted, pgx.RowTo[int64]); err != nil ||
		len(r.seq) != len(jobs) {
		return nil, fmt.Errorf("floor: %d of %d messages stored: %w", len(r.seq), len(jobs), err)
	}
	batch := &pgx.Batch{}
	batch.Queue(storeAttempts, r.seq, r.channel)
	batch.Queue(storeEvents, r.id, r.event)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("floor: store attempts: %w", err)
	}
	return r, tx.Commit(ctx)
}

// send submits the batch and waits for every answer.
func (f *Floor) send(jobs []decide.Job, r *rows) {
	var answers sync.WaitGroup
	answers.Add(len(jobs))
	for i := range jobs {
		m := &jobs[i].Message
		f.work <- submit{
			channel: i % len(f.channels), result: &r.results[i], done: &answers,
			message: provider.Submission{
				ID: m.ID, Attempt: 1, To: m.To, From: m.From,
				Text: m.Text,
			},
		}
	}
	answers.Wait()
}

// settle writes the outcomes in one round trip.
func (f *Floor) settle(ctx context.Context, r *rows) error {
	for i := range r.results {
		if r.results[i].Outcome != provider.Accepted {
			return fmt.Errorf("floor: a carrier answered %s", r.results[i].Outcome)
		}
		r.outcome, r.reference = append(r.outcome, "accepted"), append(r.reference,
			r.results[i].Reference)
		r.code, r.state, r.empty = append(r.code, r.results[i].Code), append(r.state,
			"accepted"), append(r.empty, "")
		r.segments, r.price = append(r.segments, 1), append(r.price, 30_000)
	}
	r.events("accepted")
	batch := &pgx.Batch{}
	batch.Queue(settleAttempts, r.seq, r.outcome, r.code, r.reference, r.segments, r.price)
	batch.Queue(settleMessages, r.seq, r.state, r.empty, r.empty)
	batch.Queue(storeEvents, r.id, r.event)
	if err := f.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("floor: settle: %w", err)
	}
	return nil
}

// Err is the first error of a batch, if any.
func (f *Floor) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Close waits for the batches in flight and ends the senders. Handle must not be called any more.
func (f *Floor) Close() error {
	f.settling.Wait()
	close(f.work)
	f.senders.Wait()
	return f.Err()
}

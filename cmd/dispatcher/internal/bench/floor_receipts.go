package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider"
)

const (
	// floorGather is how long the first receipt of a batch waits for others.
	floorGather = 5 * time.Millisecond
	// floorEarly is how long a receipt waits for its outcome to be settled.
	floorEarly = 10 * time.Second
)

// receiptQueue holds receipts that are not stored yet.
type receiptQueue struct {
	wake chan struct{} // capacity 1: receipts are waiting
	mu   sync.Mutex
	list []receipt // guarded by mu
}

type receipt struct {
	channel string
	provider.Receipt
	answer func(taken bool)
}

// Receive takes a receipt of a channel. It does not block; answer is called once the receipt is
// durable.
func (f *Floor) Receive(channel string, r provider.Receipt, answer func(taken bool)) {
	f.receipts.add(receipt{channel, r, answer})
}

func (q *receiptQueue) add(list ...receipt) {
	q.mu.Lock()
	q.list = append(q.list, list...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns a batch, the oldest first.
func (q *receiptQueue) take() []receipt {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.list), floorBatch)
	batch := slices.Clone(q.list[:n])
	q.list = slices.Delete(q.list, 0, n)
	return batch
}

func (q *receiptQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// StoreReceipts stores receipts until ctx ends or storing fails.
func (f *Floor) StoreReceipts(ctx context.Context) {
	for ctx.Err() == nil {
		switch n := f.receipts.waiting(); {
		case n == 0:
			select {
			case <-ctx.Done():
			case <-f.receipts.wake:
			}
			continue
		case n < floorBatch:
			time.Sleep(floorGather)
		}
		if err := f.storeBatch(ctx, f.receipts.take()); err != nil {
			f.fail(err)
			return
		}
	}
}

// indexOutcomes is for findOutcomes.
const indexOutcomes = `create index on floor.outcomes (channel, reference);`

// The statements of receipts. The lateral joins force one index scan for each receipt.
const (
	findOutcomes = `
		select n.nr::int, o.seq, m.id, m.lane
		from unnest($1::text[], $2::text[]) with ordinality as n(channel, reference, nr)
		cross join lateral (select seq from floor.outcomes
		  where channel = n.channel and reference = n.reference limit 1) o
		cross join lateral (select id, lane from floor.messages where seq = o.seq limit 1) m`
	insertReceipts = `
		insert into floor.receipts (seq, attempt, part, state, code, received_at)
		select n.seq, 1, 0, n.state, n.code, n.at
		from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[])
		  as n(seq, state, code, at)
		on conflict do nothing`
)

// receiptRows are receipts as columns.
type receiptRows struct {
	seq             []int64
	id, state, code []string
	at              []time.Time
	event           [][]byte
}

// storeBatch stores a batch in two round trips, and answers the receipts whose outcome it found.
// The others came before their messages were settled and go back to the queue.
func (f *Floor) storeBatch(ctx context.Context, batch []receipt) error {
	found, err := f.match(ctx, batch)
	if err != nil {
		return err
	}
	r, early := &receiptRows{}, []receipt(nil)
	for i := range batch {
		switch m := &found[i]; {
		case m.seq > 0:
			r.add(&batch[i], m)
		case time.Since(batch[i].At) > floorEarly:
			return errors.New("floor: a receipt is about no message")
		default:
			early = append(early, batch[i])
		}
	}
	if len(r.seq) > 0 {
		rows := &pgx.Batch{}
		rows.Queue(insertReceipts, r.seq, r.state, r.code, r.at)
		rows.Queue(insertEvents, r.id, r.event)
		if err := f.pool.SendBatch(ctx, rows).Close(); err != nil {
			return fmt.Errorf("floor: store receipts: %w", err)
		}
	}
	for i := range batch {
		if found[i].seq > 0 {
			batch[i].answer(true)
		}
	}
	if early != nil {
		f.receipts.add(early...)
	}
	return nil
}

// matched is the message that a receipt is about.
type matched struct {
	seq      int64 // 0 for none
	id, lane string
}

// match looks receipts up by channel and reference.
func (f *Floor) match(ctx context.Context, batch []receipt) ([]matched, error) {
	channels, references := make([]string, len(batch)), make([]string, len(batch))
	for i := range batch {
		channels[i], references[i] = batch[i].channel, batch[i].Reference
	}
	rows, err := f.pool.Query(ctx, findOutcomes, channels, references)
	if err != nil {
		return nil, fmt.Errorf("floor: look up receipts: %w", err)
	}
	found := make([]matched, len(batch))
	var nr int
	var m matched
	_, err = pgx.ForEachRow(rows, []any{&nr, &m.seq, &m.id, &m.lane}, func() error {
		found[nr-1] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("floor: look up receipts: %w", err)
	}
	return found, nil
}

func (r *receiptRows) add(of *receipt, m *matched) {
	state := of.State.String()
	r.seq, r.id, r.state = append(r.seq, m.seq), append(r.id, m.id), append(r.state, state)
	r.code, r.at = append(r.code, of.Code), append(r.at, of.At)
	r.event = append(r.event, envelope.AppendStatus(make([]byte, 0, 256), envelope.Status{
		ID: m.id, State: state, At: of.At, Lane: m.lane, Route: "floor", Channel: of.channel,
		Attempt: 1, Code: of.Code, Reference: of.Reference, Segments: 1,
	}))
}

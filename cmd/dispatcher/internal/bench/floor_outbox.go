package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/ledger"
)

// floorOutbox gives the floor's status events to the dispatcher's publisher. It uses nothing of the
// ledger but the type Notice.
type floorOutbox struct {
	pool      *pgxpool.Pool
	published []int64 // sent and not yet removed; owned by the publisher
}

var _ kafka.Outbox = (*floorOutbox)(nil)

const (
	removeEvents = `delete from floor.outbox where seq = any($1)`
	selectEvents = `select seq, created_at, keys, "values" from floor.outbox order by seq limit $1`
)

// Publish deletes what the last call has sent, reads up to limit events and sends them.
func (o *floorOutbox) Publish(
	ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error,
) (int, error) {
	var seqs []int64
	var notices []ledger.Notice
	batch := &pgx.Batch{}
	batch.Queue(removeEvents, append([]int64{}, o.published...))
	batch.Queue(selectEvents, max(limit/floorBatch, 1)).Query(func(rows pgx.Rows) error {
		var seq int64
		var at time.Time
		var keys []string
		var values [][]byte
		_, err := pgx.ForEachRow(rows, []any{&seq, &at, &keys, &values}, func() error {
			seqs = append(seqs, seq)
			for i := range keys {
				notices = append(notices, ledger.Notice{
					Kind: ledger.Status, Key: keys[i], Value: values[i], Seq: seq, At: at,
				})
			}
			return nil
		})
		return err
	})
	if err := o.pool.SendBatch(ctx, batch).Close(); err != nil {
		return 0, fmt.Errorf("floor: read outbox: %w", err)
	}
	o.published = nil
	if len(notices) == 0 {
		return 0, nil
	}
	if err := send(ctx, notices); err != nil {
		return 0, err
	}
	o.published = seqs
	return len(notices), nil
}

// PublishInbound has nothing to publish: bench has no messages of subscribers.
func (o *floorOutbox) PublishInbound(
	context.Context, int, func(context.Context, []ledger.Notice) error,
) (int, error) {
	return 0, nil
}

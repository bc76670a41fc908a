package ledger

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
)

// Fleet is what the live instances know of each other: the shared state that policies go by.
type Fleet struct {
	// At is the database's clock when it was read.
	At time.Time
	// Members are the instances that are alive, by id.
	Members []Member
}

// Member is one live instance.
type Member struct {
	ID     int64
	Region string
	// Counts is what it granted per channel in its last whole minute, in messages, as it last said.
	Counts map[string]int64
}

// Gather writes down what this instance granted per channel in the last whole minute, and reads
// what all said that have sent a heart-beat within deadAfter, in one round trip.
func (l *Ledger) Gather(ctx context.Context, counts map[string]int64, deadAfter time.Duration) (Fleet, error) {
	id := l.instance.Load()
	if id == 0 {
		return Fleet{}, wrap("gather", ErrNotRegistered)
	}
	own := maps.Clone(counts)
	if own == nil {
		own = map[string]int64{} // null would stand for an earlier release
	}
	batch := &pgx.Batch{}
	batch.Queue(`update dispatcher.instances set counts = $2::jsonb where id = $1`, id, encodeTallies(own))
	var f Fleet
	batch.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&f.At) })
	batch.Queue(`
		select id, region, coalesce(counts::text, '{}') from dispatcher.instances
		where left_at is null and last_seen >= clock_timestamp() - $1::interval order by id`, deadAfter).
		Query(func(rows pgx.Rows) (err error) {
			f.Members, err = pgx.CollectRows(rows, scanMember)
			return err
		})
	if err := l.hot.SendBatch(ctx, batch).Close(); err != nil {
		return Fleet{}, wrap("gather", err)
	}
	f.At = f.At.UTC()
	return f, nil
}

func scanMember(row pgx.CollectableRow) (Member, error) {
	var m Member
	var counts string
	if err := row.Scan(&m.ID, &m.Region, &counts); err != nil {
		return m, err
	}
	return m, json.Unmarshal([]byte(counts), &m.Counts)
}

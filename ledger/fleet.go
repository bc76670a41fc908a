package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// LiveInstances is what the live instances know of each other: the shared state that policies go by.
type LiveInstances struct {
	// At is the database's clock when it was read.
	At time.Time
	// Members are the instances that are alive, by id.
	Members []Member
}

// Member is one live instance.
type Member struct {
	ID     int64
	Region string
	// Counts is what it granted per channel in its last whole minute, as it last said.
	Counts map[string]Grants
}

// Grants is what was granted on a channel, in each unit that a limit may have.
type Grants struct {
	Messages int64 `json:"messages"`
	Segments int64 `json:"segments"`
	Micros   int64 `json:"micros"`
}

// Plus is the sum of both.
func (g Grants) Plus(o Grants) Grants {
	return Grants{g.Messages + o.Messages, g.Segments + o.Segments, g.Micros + o.Micros}
}

// Gather writes down what this instance granted per channel in the last whole minute, and reads
// what all said that have sent a heart-beat within deadAfter, in one round trip.
func (s *Instances) Gather(ctx context.Context, counts map[string]Grants, deadAfter time.Duration) (LiveInstances, error) {
	id := s.instance.Load()
	if id == 0 {
		return LiveInstances{}, wrap("gather", ErrNotRegistered)
	}
	if counts == nil {
		counts = map[string]Grants{} // null would stand for an earlier release
	}
	own, err := json.Marshal(counts)
	if err != nil {
		return LiveInstances{}, wrap("gather", err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`update dispatcher.instances set counts = $2::jsonb where id = $1`, id, string(own))
	var f LiveInstances
	batch.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&f.At) })
	batch.Queue(`
		select id, region, coalesce(counts::text, '{}') from dispatcher.instances
		where left_at is null and last_seen >= clock_timestamp() - $1::interval order by id`, deadAfter).
		Query(func(rows pgx.Rows) (err error) {
			f.Members, err = pgx.CollectRows(rows, scanMember)
			return err
		})
	if err := s.hot.SendBatch(ctx, batch).Close(); err != nil {
		return LiveInstances{}, wrap("gather", err)
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

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Unusable is a record that could not be used, without number and text.
type Unusable struct {
	ID           string // empty when it has none that can be used
	Lane, Tenant string
	Reason       string // a bounded word
	Detail       string // a sentence for its producer
	Topic        string
	Partition    int32
	Offset       int64
	ReceivedAt   time.Time
}

// Unusable lists the newest records that could not be used, limit at most. An id of more than 64
// characters stands for a position, see decide.
func (s *Reports) Unusable(ctx context.Context, limit int) ([]Unusable, error) {
	return rows(ctx, s.db, pgx.RowToStructByPos[Unusable], `
		select case when length(id) <= 64 then id else '' end, lane, tenant, coalesce(reason, ''), detail, topic,
		  kafka_partition, kafka_offset, received_at
		from dispatcher.messages where detail is not null
		order by seq desc limit $1`, limit)
}

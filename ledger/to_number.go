package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// FoundMessage is a message to a number, without the number.
type FoundMessage struct {
	Seq        int64     `json:"seq"`
	ID         string    `json:"id"`
	Lane       string    `json:"lane"`
	Tenant     string    `json:"tenant"`
	State      string    `json:"state"`
	ReceivedAt time.Time `json:"received_at"`
}

// ToNumber is a page of the messages to a number in the last days, newest first. hashes are the
// keyed hashes of the number, one for each key that may have been in use. before is the seq of the
// last message of the page before, 0 for the first page.
func (s *Messages) ToNumber(
	ctx context.Context, hashes []int64, days int, before int64, limit int,
) ([]FoundMessage, error) {
	from := DayAt(time.Now()) - Day(days)
	found, err := rows(ctx, s.db, pgx.RowToStructByPos[FoundMessage], `
		select seq, id, lane, tenant, state, received_at from dispatcher.message_states
		where number_hmac = any($1) and seq >= $2 and ($3::bigint = 0 or seq < $3)
		order by seq desc limit $4`, hashes, from.first(), before, limit)
	return found, wrap("find messages to a number", err)
}

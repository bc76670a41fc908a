package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Timely counts the messages of one channel that were delivered in time, over all instances and
// routes.
type Timely struct {
	Channel string
	// Accepted counts the attempts that the provider accepted, Delivered those of them that reached
	// the handset in time.
	Accepted, Delivered int64
}

// recipientsFault is the condition that attempt a was not delivered for a reason that says nothing
// about its channel: nobody has the number, it takes no SMS, the handset was off, or its owner
// opted out.
const recipientsFault = `(a.receipt_state is not distinct from 'undelivered' and
	coalesce(a.receipt_cause, '') in ('unknown_number', 'not_mobile', 'absent', 'opted_out'))`

// Timely counts, for each channel, the attempts that its provider accepted in a window that ended
// within ago, by the database's clock, and how many of them were delivered at most within after the
// answer. So every receipt had that time to come. Attempts that were not delivered because of their
// recipient are left out, and so are those that only a receipt proved to have been accepted, and
// channels of which no receipt came and none is expected for the latest attempt. Rows are ordered
// by channel. late is as in Reports.Faults, and the costs are the same, for within, window and late
// together.
func (s *Receipts) Timely(
	ctx context.Context, within, window, late time.Duration,
) ([]Timely, error) {
	out, err := atEdge(ctx, s.db, pgx.RowToStructByPos[Timely], `
		select channel, accepted, delivered from (
		  select a.channel, count(*) as accepted, max(a.message_seq) as last,
		    bool_or(a.receipt_state is not null) as told,
		    count(*) filter (where a.delivered_at <= a.settled_at + $1::interval) as delivered
		  from dispatcher.attempts a
		  where a.claimed_at >= now() - $1::interval - $2::interval - $3::interval
		    and a.settled_at >= now() - $1::interval - $2::interval
		    and a.settled_at < now() - $1::interval
		    and a.outcome = 'accepted' and a.proved is not true and not `+recipientsFault+`
		  group by a.channel) t
		where told or exists (select from dispatcher.receipts r where r.message_seq = t.last)
		order by channel`, within, window, late)
	return out, wrap("count what was delivered in time", err)
}

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// ChoiceRow counts the messages whose draw picked one channel under one routing version.
type ChoiceRow struct {
	Version     int64
	Route       string
	Channel     string
	FirstChoice int64
	// Rejected, Failed and Unknown are those of them that ended without any channel being known to
	// have taken them, Open those that have not ended: waiting, scheduled, or under way.
	Rejected, Failed, Unknown, Open int64
}

// Choices splits the first choices of one business day, as Daily cuts it, by routing
// version: the weights of a day whose routing was changed are those of its versions, each
// for the messages chosen under it. Rows are sorted by version, route and channel.
func (s *Reports) Choices(ctx context.Context, day time.Time, zone *time.Location) ([]ChoiceRow, error) {
	from, to := admission.Day.Start(day, zone), admission.Day.End(day, zone)
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[ChoiceRow], `
		select routing_version, route, first_choice, count(*),
		  count(*) filter (where state = 'rejected'), count(*) filter (where state = 'failed'),
		  count(*) filter (where state = 'unknown'),
		  count(*) filter (where state in ('scheduled', 'waiting', 'retry', 'sending'))
		from dispatcher.messages
		where received_at >= $1 and received_at < $2 and first_choice is not null
		group by 1, 2, 3 order by 1, 2, 3`, from, to)
	return out, wrap("report choices", err)
}

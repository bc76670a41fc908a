package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Fault is what one channel did within a window, over all instances and routes.
type Fault struct {
	Channel string
	// Attempts were settled within the window, Errors of them as the channel's fault.
	Attempts, Errors int64
	// LastErrorAt is when the last error was settled; zero without one.
	LastErrorAt time.Time
}

// isError is the condition that attempt a ended through its channel's fault: no answer came, or the
// provider was not there or did not want it. What this side held back or lost says nothing about
// the channel: the process was stopping, the submit's turn came too late, the message expired, the
// channel cannot write such a message, an instance died. Nor does what the provider did not want
// for the message's own fault: see Settlement.Unfit.
const isError = `(a.outcome in ('refused', 'unknown') and a.unfit is not true
	and coalesce(a.provider_code, '') not in ('stopping', 'stale', 'late', 'expired', 'uncomposed', 'instance_lost'))`

// isUnsent is the condition that this side refused attempt a before anything of it left.
const isUnsent = `(a.outcome = 'refused' and coalesce(a.provider_code, '') in ('stopping', 'stale', 'late', 'expired'))`

// Faults counts, for each channel with an answer within the window by the database's clock, the
// attempts and the errors among them. Rows are sorted by channel. An answer that was booked more
// than late after the claim of its attempt is not counted: late is what the caller gives submits,
// and some time to book what came of them.
//
// It may be asked every few seconds, however many attempts there are: it reads only those claimed
// within the window and late before it, the right edge of the index on claimed_at, whose pages were
// written just now and are in memory. That costs a quarter of a second per million attempts claimed
// in both together, so a window of hours is not meant to be asked for as often as one of minutes.
// There is no index on settled_at, because with one no settlement would be a heap-only update.
func (s *Reports) Faults(ctx context.Context, window, late time.Duration) ([]Fault, error) {
	faults, err := atEdge(ctx, s.db, scanFault, `
		select a.channel, count(*), count(*) filter (where `+isError+`), max(a.settled_at) filter (where `+isError+`)
		from dispatcher.attempts a
		where a.claimed_at >= now() - $1::interval - $2::interval
		  and a.settled_at >= now() - $1::interval
		group by a.channel order by a.channel`, window, late)
	return faults, wrap("count faults", err)
}

func scanFault(row pgx.CollectableRow) (Fault, error) {
	var f Fault
	var last pgtype.Timestamptz
	err := row.Scan(&f.Channel, &f.Attempts, &f.Errors, &last)
	f.LastErrorAt = moment(last)
	return f, err
}

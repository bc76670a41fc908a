package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Carried is what one channel did for one route since some instant.
type Carried struct {
	Channel string
	// FirstChoice counts the messages received since then whose first choice it was.
	FirstChoice int64
	// Attempts counts those claimed since then, and those claimed before that were answered since
	// then. Accepted and Errors are what became of them so far; an error is what Faults counts.
	Attempts, Accepted, Errors int64
	// InForce counts those of Accepted that were claimed since then and whose messages were planned
	// under the version that was asked about: it is their shares that its weights tell.
	InForce int64
}

// carried fences the range of seq off with an offset, so that it is read by the primary key.
const carried = `
	with counted as (
	  select r.first_choice as channel, 1 as first_choice, 0 as attempts, 0 as accepted,
	    0 as errors, 0 as in_force
	  from (select route, first_choice, received_at from dispatcher.messages
	    where seq > $3 offset 0) r
	  where r.route = $1 and r.received_at >= $2 and r.first_choice is not null
	  union all
	  select a.channel, 0, 1, case when a.outcome = 'accepted' then 1
	    else 0 end, case when ` + isError + ` then 1 else 0 end,
	    case when a.outcome = 'accepted' and a.claimed_at >= $2 and m.routing_version = $4 then 1
	      else 0 end
	  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
	  where a.claimed_at >= $2::timestamptz - $5::interval
	    and (a.claimed_at >= $2 or a.settled_at >= $2) and m.route = $1
	)
	select channel, sum(first_choice), sum(attempts), sum(accepted), sum(errors), sum(in_force)
	from counted group by channel order by channel`

// Carried counts what the channels of a route did since an instant, by the database's clock;
// version decides Carried.InForce. Rows are sorted by channel; one that did nothing has none. Of
// the attempts claimed before, it counts those that were answered since then, unless the answer was
// booked more than late after the claim, as in Faults: whoever asks about shorter times than
// submits may take would see no timeout otherwise.
//
// It may be asked every few seconds, however large the ledger is: it reads the messages received
// since then and the attempts claimed since then and late before it, the former from the right edge
// of an index, the latter from the newest block ranges, and nothing before. It costs one to three
// seconds per million messages since then, and a quarter of a second per million attempts before,
// so that is meant to lie minutes back.
func (s *Reports) Carried(
	ctx context.Context, route string, since time.Time, late time.Duration, version int64,
) ([]Carried, error) {
	low, _, err := s.seek(ctx, since)
	if err != nil {
		return nil, err
	}
	out, err := atEdge(ctx, s.db, pgx.RowToStructByPos[Carried], carried, route, since, low,
		version, late)
	return out, wrap("count what was carried", err)
}

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
	and coalesce(a.provider_code, '')
	  not in ('stopping', 'stale', 'late', 'expired', 'uncomposed', 'instance_lost'))`

// isUnsent is the condition that this side refused attempt a before anything of it left.
const isUnsent = `(a.outcome = 'refused'
	and coalesce(a.provider_code, '') in ('stopping', 'stale', 'late', 'expired'))`

// Faults counts, for each channel with an answer within the window by the database's clock, the
// attempts and the errors among them. Rows are sorted by channel. An answer that was booked more
// than late after the claim of its attempt is not counted: late is what the caller gives submits,
// and some time to book what came of them.
//
// It may be asked every few seconds, however many attempts there are: it reads only those claimed
// within the window and late before it, and what else has no summary yet in the index on
// claimed_at: pages that were written just now and are in memory. That costs a quarter of a second
// per million attempts claimed in both together, so a window of hours is not meant to be asked for
// as often as one of minutes. There is no index on settled_at, because with one no settlement would
// be a heap-only update.
func (s *Reports) Faults(ctx context.Context, window, late time.Duration) ([]Fault, error) {
	faults, err := atEdge(ctx, s.db, scanFault, `
		select a.channel, count(*), count(*) filter (where `+isError+`),
		  max(a.settled_at) filter (where `+isError+`)
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

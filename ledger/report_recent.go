package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Carried is what one channel did for one route since some instant.
type Carried struct {
	Route, Channel string
	// FirstChoice counts the messages received since then whose first choice it was.
	FirstChoice int64
	// Attempts counts the attempts that were claimed since then, and earlier ones that were answered
	// since then. Accepted and Errors are their outcomes so far; an error is what Faults counts.
	Attempts, Accepted, Errors int64
	// InForce counts those of Accepted that were claimed since then, whose messages were planned under
	// the given version, and that are not further attempts. Their shares can be compared with its
	// weights.
	InForce int64
}

// carried has an "offset 0" in its subquery, so that the range of seq is read by the primary key.
const carried = `
	with counted as (
	  select r.route, r.first_choice as channel, 1 as first_choice, 0 as attempts, 0 as accepted,
	    0 as errors, 0 as in_force
	  from (select route, first_choice, received_at from dispatcher.messages
	    where seq > $3 offset 0) r
	  where ($1 = '' or r.route = $1) and r.route is not null and r.received_at >= $2
	    and r.first_choice is not null
	  union all
	  select m.route, a.channel, 0, 1, 0, 0, 0 from dispatcher.open_attempts a
	  cross join lateral (select route from dispatcher.messages n where n.seq = a.message_seq
	    offset 0) m
	  where a.claimed_at >= $2 and ($1 = '' or m.route = $1) and m.route is not null
	  union all
	  select m.route, a.channel, 0, 1, case when a.outcome = 'accepted' then 1
	    else 0 end, case when ` + isError + ` then 1 else 0 end,
	    case when a.outcome = 'accepted' and a.claimed_at >= $2 and m.routing_version = $4
	      and a.reason <> 'no_receipt' then 1 else 0 end
	  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
	  where a.claimed_at >= $2::timestamptz - $5::interval
	    and (a.claimed_at >= $2 or a.settled_at >= $2)
	    and ($1 = '' or m.route = $1) and m.route is not null
	)
	select route, channel, sum(first_choice), sum(attempts), sum(accepted), sum(errors),
	  sum(in_force)
	from counted group by 1, 2 order by 1, 2`

// Carried counts what the channels of a route, or of all routes if it is empty, did since an
// instant, by the database's clock. version is the one for Carried.InForce. Rows are ordered by
// route and channel; a channel that did nothing has none. Attempts that were claimed before that
// instant are counted if they were answered after it: without them, a caller that asks about less
// time than a submit may take would never see a timeout. An answer that was recorded more than late
// after the claim is not counted, as in Faults.
//
// It may be called every few seconds, however large the ledger is. It reads the messages received
// since then, from the right edge of an index, and the attempts claimed since then and late before
// it, from the newest block ranges. It costs one to three seconds per million messages since then,
// and a quarter of a second per million attempts before, so since should be minutes ago.
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
	// Attempts counts those settled within the window, Errors those of them that are the channel's
	// fault.
	Attempts, Errors int64
}

// isError is the condition that attempt a failed through its channel's fault: no answer came, or
// the provider was not reachable or refused it. Attempts that this side did not send say nothing
// about the channel: the process was stopping, the attempt missed its release time, the message
// expired, the channel cannot encode it, or an instance died. Nor do refusals for the message's own
// fault, see Settlement.Unfit.
const isError = `(a.outcome in ('refused', 'unknown') and a.unfit is not true
	and coalesce(a.provider_code, '')
	  not in ('stopping', 'stale', 'late', 'expired', 'uncomposed', 'instance_lost'))`

// isUnsent is the condition that this side refused attempt a before any of it was sent.
const isUnsent = `(a.outcome = 'refused'
	and coalesce(a.provider_code, '') in ('stopping', 'stale', 'late', 'expired'))`

// Faults counts the attempts and errors of each channel that had an answer within the window, by
// the database's clock. Rows are ordered by channel. An answer that was recorded more than late
// after the claim of its attempt is not counted: late is the timeout of submits, plus some time to
// record outcomes.
//
// It may be called every few seconds, however many attempts there are. It reads only those claimed
// within the window and late before it, and block ranges that have no summary yet in the index on
// claimed_at: these were written just now and are in memory. That costs a quarter of a second per
// million attempts in both, so a window of hours should not be asked for as often as one of
// minutes. There is no index on settled_at, because with one no settlement would be a heap-only
// update.
func (s *Reports) Faults(ctx context.Context, window, late time.Duration) ([]Fault, error) {
	faults, err := atEdge(ctx, s.db, pgx.RowToStructByPos[Fault], `
		select a.channel, count(*), count(*) filter (where `+isError+`)
		from dispatcher.attempts a
		where a.claimed_at >= now() - $1::interval - $2::interval
		  and a.settled_at >= now() - $1::interval
		group by a.channel order by a.channel`, window, late)
	return faults, wrap("count faults", err)
}

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// CarriedRow counts the messages that one channel carried for one route: those of which it
// accepted an attempt that was claimed on the day. A message counts once for each channel that
// accepted it, and belongs to the version that it was planned under.
type CarriedRow struct {
	Version     int64
	Route       string
	FirstChoice string
	Channel     string
	// Cause is why the first choice did not carry these messages; empty where it did. It is the
	// reason for which it was passed over when a message first went elsewhere or, where it had been
	// tried before, what came of that: refused, throttled, unknown, or breaker_open.
	Cause    string
	Messages int64
}

// carriedOn walks the attempts of the day by the index on claimed_at, as Daily does. A message that
// a channel accepted in several attempts, because its parts went one after the other, counts with
// the first of them. Only what another channel than the first choice carried is looked up again by
// the primary key: g is the attempt with which the message left its first choice, b what had come
// of that before.
//
// Where the first choice was not tried at all, its reason stands with g: a ranking lists the draw's
// first choice in front, its fields between spaces, the reason last (decide.AppendRanking).
const carriedOn = `
	with accepted as (
	  select m.routing_version, m.route, m.first_choice, a.channel, a.message_seq
	  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
	  where a.claimed_at >= $1 and a.claimed_at < $2 and a.outcome = 'accepted'
	    and m.route is not null and m.first_choice is not null and m.routing_version is not null
	    and (a.attempt = 1 or not exists (select from dispatcher.attempts e
	      where e.message_seq = a.message_seq
	      and e.attempt < a.attempt and e.channel = a.channel and e.outcome = 'accepted'))
	), explained as (
	  select c.routing_version, c.route, c.first_choice, c.channel,
	    case
	      when c.channel = c.first_choice then ''
	      when b.outcome = 'accepted' then 'unknown' -- it was found out after the message had been sent once more
	      when b.outcome = 'refused' and b.provider_code = 'breaker_open' then 'breaker_open'
	      else coalesce(b.outcome, substring(g.ranking ->> 'line' from '^[^,]* ([^ ,]+)'), g.reason, '')
	    end as cause
	  from accepted c
	  left join lateral (
	    select e.attempt, e.ranking, e.reason from dispatcher.attempts e
	    where c.channel <> c.first_choice and e.message_seq = c.message_seq
	      and e.channel <> c.first_choice
	    order by e.attempt limit 1) g on true
	  left join lateral (
	    select a.outcome, a.provider_code from dispatcher.attempts a
	    where a.message_seq = c.message_seq and a.channel = c.first_choice and a.attempt < g.attempt and not ` + isUnsent + `
	    order by a.attempt desc limit 1) b on true
	)
	select routing_version, route, first_choice, channel, cause, count(*)
	from explained group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`

// CarriedOn counts what the channels carried on one business day, as Daily cuts it. Rows are sorted
// by version, route, first choice, channel and cause.
func (s *Reports) CarriedOn(ctx context.Context, day time.Time, zone *time.Location) ([]CarriedRow, error) {
	from, to := admission.Day.Start(day, zone), admission.Day.End(day, zone)
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[CarriedRow], carriedOn, from, to)
	return out, wrap("report what was carried", err)
}

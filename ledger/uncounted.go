package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Uncounted is a window of a limit that granted more attempts than are on record.
type Uncounted struct {
	Channel       string // empty for a limit over all channels
	Scope         string
	WindowSeconds int
	WindowStart   time.Time
	Granted       int64
	OnRecord      int64
}

// uncounted compares the windows that began from @from to @to with the attempts on record. Every
// attempt counts, whatever its outcome: in the second of its leaves_at, and in the longer
// windows in which it was claimed. Left out are
//   - windows in which their limit began or ended, which have not counted everything;
//   - limits in segments or money, and limits of a prefix: their counts cannot be derived from
//     rows;
//   - windows of a day, unless one is exactly @from to @to, and sliding limits of other lengths;
//   - periods whose rows may have been dropped. A message is at most @margin older than its
//     attempts. So none were dropped if the rows go back by more than that, or if no closed day
//     with attempts is older than they are.
const uncounted = `
	with kept as (
	  select min(received_at) as first from facts.stored_messages
	  where seq <= (select min(seq) from facts.stored_messages) + 1000
	), windows as materialized (
	  select channel, scope, window_seconds, window_start, granted from audit.limit_windows, kept
	  where unit = 'messages' and since <= window_start and until is null and granted > 0
	    and (scope = 'channel' or scope like 'tenant:%')
	    and window_start >= @from and window_start < @to
	    and (window_seconds in (1, 60, 3600) or window_seconds = 86400 and window_start = @from)
	    and (kept.first < @from::timestamptz - @margin::interval
	      or not exists (select from audit.closings c
        join audit.attempt_figures f using (day, revision) where c.to_at < kept.first))
	), lengths as (
	  select distinct window_seconds from windows
	), claimed as (
	  select w.window_seconds, a.channel, a.tenant, count(*) as n,
	    case w.window_seconds when 86400 then @from::timestamptz else
	      to_timestamp(div(extract(epoch from case when w.window_seconds = 1
	        then coalesce(a.leaves_at, a.claimed_at) else a.claimed_at end), w.window_seconds)
	        * w.window_seconds) end as window_start
	  from lengths w
	  cross join (
	    select a.channel, a.leaves_at, a.claimed_at, m.tenant from facts.stored_attempts a
	    join facts.stored_messages m on m.seq = a.message_seq
	    union all
	    select a.channel, a.leaves_at, a.claimed_at, m.tenant from facts.open_attempts a
	    cross join lateral (select tenant from facts.stored_messages s where s.seq = a.message_seq
	      offset 0) m
	  ) a
	  where a.claimed_at >= @from::timestamptz - interval '1 minute'
	    and a.claimed_at < @to::timestamptz + interval '1 hour'
	    and (w.window_seconds < 86400 or a.claimed_at >= @from and a.claimed_at < @to)
	  group by w.window_seconds, a.channel, a.tenant, window_start
	)
	select w.channel, w.scope, w.window_seconds, w.window_start, w.granted,
	  coalesce(sum(c.n), 0)::bigint as on_record
	from windows w left join claimed c
	  on c.window_seconds = w.window_seconds and c.window_start = w.window_start
	  and (w.channel = '' or c.channel = w.channel)
	  and (w.scope = 'channel' or c.tenant = substr(w.scope, 8))
	group by 1, 2, 3, 4, 5
	having w.granted > coalesce(sum(c.n), 0)
	order by w.window_start, w.window_seconds, w.channel, w.scope`

// uncountedMargin is how much older than its attempts a message may be without a false difference:
// one that was scheduled for longer may have been dropped. See @margin.
const uncountedMargin = 32 * 24 * time.Hour

// Uncounted lists the windows of limits in [from, to) that granted more attempts than are on
// record: rows were deleted. It reads everything in one snapshot, and only views that finance may
// read.
func (s *Limits) Uncounted(ctx context.Context, from, to time.Time) ([]Uncounted, error) {
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[Uncounted], uncounted, pgx.NamedArgs{
		"from": from, "to": to, "margin": uncountedMargin,
	})
	return out, wrap("compare limits with attempts", err)
}

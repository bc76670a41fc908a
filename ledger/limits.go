package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// Limits reads and changes the counters of channels and limits, present and past.
type Limits struct {
	*db
	routing *Routing
}

// Present is the shared state of the channels at one moment, for people to look at. It is read
// without locks, so no decision may depend on it.
type Present struct {
	// Now is the database's clock.
	Now time.Time
	// Channels are the channels of the current routing, by name. Counters are as stored: Gate.Roll
	// rolls them to Now. They lack what only the routing document has: sliding, burst and reserve.
	Channels []ChannelState
	// Scoped are all limits that are narrower than a channel or apply over all channels, ordered by
	// channel and text of the scope. Each has at least one counter.
	Scoped []ScopeState
	// Waiting counts the waiting messages by what they wait for and why.
	Waiting []Waiters
}

// Waiters counts the messages that wait for the same thing for the same reason.
type Waiters struct {
	On, Reason string // as in Wait
	Messages   int64
	Next       time.Time // when the first of them is due
}

// Present reads the counters of all channels and scopes, and counts the waiting messages.
func (s *Limits) Present(ctx context.Context) (Present, error) {
	var p Present
	names, scopes, err := s.whatIs(ctx, &p)
	if err != nil {
		return Present{}, wrap("read channels", err)
	}
	for _, ref := range scopes {
		p.Scoped = append(p.Scoped, ScopeState{ScopeRef: ref})
	}
	batch := &pgx.Batch{}
	var row channelRow
	batch.Queue(`
		select channel, active_max, active, last_assigned, ease_rate, ease_since, ease_until, 0,
		  now()
		from facts.channels where channel = any($1) order by channel`, names).
		Query(func(r pgx.Rows) error {
			p.Channels, _, err = collectChannels(r, names, &row)
			return err
		})
	batch.Queue(`
		select l.channel, l.scope, l.window_seconds, l.unit, coalesce(l.currency, ''), l.configured_max,
		  l.max, l.window_start, l.granted, l.next_at, coalesce(l.pace, 0), coalesce(l.taken::text, '')
		from facts.limits l
		order by l.channel, l.scope, l.window_seconds, l.unit`).
		Query(func(r pgx.Rows) error { return collectLimits(r, p.Channels, p.Scoped) })
	batch.Queue(`
		select coalesce(waits_for, ''), coalesce(reason, ''), count(*), min(next_at)
		  from facts.due
		where state = 'waiting' group by 1, 2 order by 1, 2`).
		Query(func(r pgx.Rows) error {
			p.Waiting, err = pgx.CollectRows(r, pgx.RowToStructByPos[Waiters])
			return err
		})
	err = s.reports.SendBatch(ctx, batch).Close()
	// A limit may have gone since the scopes were listed.
	p.Scoped = slices.DeleteFunc(p.Scoped, func(s ScopeState) bool { return len(s.Counters) == 0 })
	return p, wrap("read channels", err)
}

// whatIs reads the clock and the names of the channels and scopes.
func (s *Limits) whatIs(
	ctx context.Context, p *Present,
) (names []string, scopes []ScopeRef, err error) {
	err = s.reports.QueryRow(ctx, `
		select now(), coalesce((select array_agg(channel order by channel) from facts.channels
		where removed_at is null), '{}')`).
		Scan(&p.Now, &names)
	if err != nil {
		return nil, nil, err
	}
	p.Now = p.Now.UTC()
	scopes, err = rows(ctx, s.db, scanScope, `
		select distinct channel, scope from facts.limits where scope <> 'channel'
		order by channel, scope`)
	return names, scopes, err
}

func scanScope(r pgx.CollectableRow) (ref ScopeRef, err error) {
	var text string
	if err := r.Scan(&ref.Channel, &text); err != nil {
		return ref, err
	}
	ref.Scope, err = admission.ParseScope(text)
	return ref, err
}

// dropBatch is how many rows one transaction drops.
const dropBatch = 5000

// minuteFactor is how many times longer windows of a minute are kept than those of a second.
const minuteFactor = 10

// dropWindows goes up the index by age, starting where the last batch ended, so that it does not
// scan deleted entries again. It skips rows that are locked: a change of the routing takes the last
// windows of limits out of the history. The trigger limit_history_kept refuses to delete younger
// ones.
const dropWindows = `
	with gone as (
	  delete from dispatcher.limit_history where ctid = any(array(
	    select ctid from dispatcher.limit_history
	    where window_seconds = $1 and window_start >= $2 and window_start < now() - $3::interval
	    order by window_start limit $4 for update skip locked))
	  returning window_start
	)
	select count(*), coalesce(max(window_start), $2) from gone`

// DropWindows drops old windows from the history of limits (audit.limit_windows). Windows of a
// second are kept for the duration seconds, windows of a minute for ten times that, all others for
// the duration longer. The window of a prepaid budget has no end: it is kept in case the budget
// comes back. DropWindows works in batches of a few milliseconds and locks no row that a claim or a
// settlement uses. It returns how many windows it dropped, also with an error.
func (s *Limits) DropWindows(
	ctx context.Context, seconds, longer time.Duration,
) (dropped int64, err error) {
	lengths, err := rows(ctx, s.db, pgx.RowTo[int], distinctLengths)
	if err != nil {
		return 0, wrap("drop windows", err)
	}
	for _, length := range lengths {
		age := longer
		switch length {
		case admission.Second.Seconds():
			age = seconds
		case admission.Minute.Seconds():
			age = minuteFactor * seconds
		case admission.Prepaid.Seconds():
			continue
		}
		n, err := s.dropOlder(ctx, length, age)
		dropped += n
		if err != nil {
			return dropped, wrap("drop windows", err)
		}
	}
	return dropped, nil
}

// distinctLengths reads the distinct window lengths by skipping through the index by age.
const distinctLengths = `
	with recursive l(n) as (
	  select min(window_seconds) from dispatcher.limit_history
	  union all
	  select (select min(window_seconds) from dispatcher.limit_history where window_seconds > l.n)
	    from l where l.n is not null
	)
	select n from l where n is not null`

// dropOlder drops the windows of one length that are older than age.
func (s *Limits) dropOlder(
	ctx context.Context, length int, age time.Duration,
) (dropped int64, err error) {
	from := time.Unix(0, 0)
	for n := int64(dropBatch); n == dropBatch; dropped += n {
		batch := &pgx.Batch{}
		batch.Queue("begin")
		batch.Queue(edgeSettings)
		batch.Queue(dropWindows, length, from, age, dropBatch).QueryRow(func(row pgx.Row) error {
			return row.Scan(&n, &from)
		})
		batch.Queue("commit")
		if err := s.reports.SendBatch(ctx, batch).Close(); err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReasonPaused is the reason of a waiting message that an operator or a guard has paused.
const ReasonPaused = "paused"

// ReasonQuiet is the reason of a waiting message whose route sends nothing at this time of the day.
const ReasonQuiet = "quiet_hours"

// Waiting counts, per lane, the messages that wait for a channel or for their next try. Scheduled,
// paused and accepted messages, and those held by quiet hours, are not counted.
func (s *Claims) Waiting(ctx context.Context) (map[string]int64, error) {
	r, err := s.hot.Query(ctx,
		`select lane, count(*) from dispatcher.due
		where state not in ('scheduled', 'accepted') and reason is distinct from 'paused'
		  and reason is distinct from 'quiet_hours' group by lane`)
	if err != nil {
		return nil, wrap("count waiting messages", err)
	}
	counts, err := collectCounts(r)
	return counts, wrap("count waiting messages", err)
}

// WaitingFor counts the waiting messages by Decision.WaitsFor, for the given values.
func (s *Claims) WaitingFor(ctx context.Context, on []string) (map[string]int64, error) {
	r, err := s.hot.Query(ctx, `
		select waits_for, count(*) from dispatcher.due
		where waits_for = any($1) and state = 'waiting'
		group by waits_for`, on)
	if err != nil {
		return nil, wrap("count waiting messages", err)
	}
	counts, err := collectCounts(r)
	return counts, wrap("count waiting messages", err)
}

// Due counts the rows that are due, up to limit and without the Message.Seq in except. It takes no
// lock, so another instance may claim the rows before the caller does.
func (s *Claims) Due(ctx context.Context, limit int, except ...int64) (int, error) {
	var n int
	err := s.hot.QueryRow(ctx, `
		select count(*) from (select from dispatcher.due where next_at <= now()
		  and seq <> all($2::bigint[]) limit $1) due`,
		limit, append([]int64{}, except...)).Scan(&n)
	return n, wrap("count due messages", err)
}

// collectCounts reads a count for each word.
func collectCounts(rows pgx.Rows) (map[string]int64, error) {
	counts := map[string]int64{}
	var word string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&word, &n}, func() error {
		counts[word] = n
		return nil
	})
	return counts, err
}

const (
	// wakeBatch is how many messages one transaction wakes. It is small, so that no other transaction
	// waits long for the rows.
	wakeBatch = 500
	// wakeTimeout is how long an applier may take to wake all messages. After that another instance
	// treats it as dead and wakes them.
	wakeTimeout = 30 * time.Second
)

// selectWaiting lists the messages that may be sent sooner under another routing: they wait, or
// were accepted and wait for a limit of a further channel. Other accepted messages wait for a
// receipt. The list is read before the first one is woken, so that a message which is decided again
// and goes on waiting is not woken twice.
const selectWaiting = `
	select seq from dispatcher.due
	where next_at > now() and (state = 'waiting' or state = 'accepted' and waits_for is not null)
	order by seq`

// wakeSome wakes those of the list that still wait. It skips locked rows: a claim is deciding about
// them, under this version or a later one.
const wakeSome = `
	select dispatcher.wake(array(
	  select seq from dispatcher.due
	  where seq = any($1) and next_at > now()
	    and (state = 'waiting' or state = 'accepted' and waits_for is not null)
	  order by seq for update skip locked))`

// markWaking is part of a transaction after which wake is called for the version. If wake does not
// finish, Instances.Forget of any instance wakes the rest.
const markWaking = `update dispatcher.routing_versions set waking = true where version = $1`

// wake makes waiting messages due now, after a version, a top-up or the restart of a window was
// committed. They may be sendable then, long before their next_at. It locks no channel and only a
// few rows at a time, so that claims go on.
func (s *Routing) wake(ctx context.Context, version int64) error {
	seqs, err := rows(ctx, s.db, pgx.RowTo[int64], selectWaiting)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(seqs, wakeBatch) {
		if _, err := s.reports.Exec(ctx, wakeSome, some); err != nil {
			return err
		}
	}
	_, err = s.reports.Exec(ctx,
		`update dispatcher.routing_versions set waking = false where waking and version <= $1`,
		version)
	return err
}

// wakeForOthers wakes messages for appliers that died before they had woken all.
func (s *Routing) wakeForOthers(ctx context.Context) error {
	left, err := rows(ctx, s.db, pgx.RowTo[int64], `
		select version from dispatcher.routing_versions
		where waking and created_at < clock_timestamp() - $1::interval order by version desc
		  limit 1`, wakeTimeout)
	if err != nil || len(left) == 0 {
		return err
	}
	return s.wake(ctx, left[0])
}

// wakeFor wakes the $2 messages with the earliest next_at, for each value of waits_for in $1.
const wakeFor = `
	select dispatcher.wake(array(
	  select d.seq from unnest($1::text[]) as n(text), lateral (
	    select seq from dispatcher.due
	    where waits_for = n.text and next_at > now() and state = 'waiting' order by next_at
	      limit $2 for update skip locked) d))`

// WakeFor makes waiting messages due now: up to n for each of the given values of
// Decision.WaitsFor, those with the earliest next_at first. It skips locked rows and locks nothing
// else. It is for a channel or limit that can take messages again.
func (s *Claims) WakeFor(ctx context.Context, on []string, n int) error {
	if len(on) == 0 || n <= 0 {
		return nil
	}
	_, err := s.hot.Exec(ctx, wakeFor, on, n)
	return wrap("wake waiting messages", err)
}

package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// DaysState is the state of the daily partitions.
type DaysState struct {
	// Now is the database's clock.
	Now time.Time
	// Count is how many days have partitions, from Oldest to Latest. Latest is two days after Now,
	// unless no instance has made partitions.
	Count          int
	Oldest, Latest Day
	// OldestPayloads is the oldest day whose payloads have not been dropped.
	OldestPayloads Day
	// LatePayloads is how many payloads of older days are still kept, because their messages had not
	// ended long enough ago when they were last checked.
	LatePayloads int64
	// Turned is when the tables of ids were last switched.
	Turned time.Time
	// Skipped are days that are old enough to be dropped but have messages that have not ended, or
	// ended in the last half of the retention.
	Skipped []LivingDay
	// LeastKept is the minimum retention of facts that the owner of the schema has set, see
	// GrantRoles.
	LeastKept time.Duration
	// Locks is the size of the server's lock table, for all sessions together.
	Locks int
}

// LocksPerDay is about how many locks a query takes for each day that it may read: one for each
// partition of the day, and one for each of their indexes.
const LocksPerDay = 8

// readDays reads the state of the days. least_kept always has one row, because a migration makes
// it.
const readDays = `
	select clock_timestamp(), count(*), coalesce(min(day), 0), coalesce(max(day), 0),
	  coalesce(min(day) filter (where payloads), max(day), 0),
	  coalesce(sum(kept) filter (where not payloads), 0)::bigint,
	  (select since from dispatcher.id_turns),
	  (select extract(epoch from facts)::bigint from dispatcher.least_kept),
	  current_setting('max_locks_per_transaction')::integer
	    * (current_setting('max_connections')::integer
	      + current_setting('max_prepared_transactions')::integer)
	from dispatcher.days where not dropping`

// State reads the state of the daily partitions. It takes about a millisecond.
func (s *Days) State(ctx context.Context) (state DaysState, err error) {
	var turned pgtype.Timestamptz
	var leastKept int64
	err = s.reports.QueryRow(ctx, readDays).Scan(&state.Now, &state.Count, &state.Oldest,
		&state.Latest, &state.OldestPayloads, &state.LatePayloads, &turned, &leastKept,
		&state.Locks)
	if err != nil {
		return state, wrap("look at the days", err)
	}
	state.Now, state.Turned = state.Now.UTC(), moment(turned)
	state.LeastKept = time.Duration(leastKept) * time.Second
	state.Skipped, err = rows(ctx, s.db, pgx.RowToStructByPos[LivingDay],
		`select day, living from dispatcher.days where living > 0 and not dropping order by day`)
	return state, wrap("look at the days", err)
}

// Sizes returns the bytes of the ledger on disk, with indexes, by kind: messages, payloads,
// attempts, receipts, ids, or other.
func (s *Days) Sizes(ctx context.Context) (map[string]int64, error) {
	type size struct {
		Table string
		Bytes int64
	}
	found, err := rows(ctx, s.db, pgx.RowToStructByPos[size], `
		select case when relname ~ '^(messages|payloads|attempts)_[0-9]{8}$'
		    then split_part(relname, '_', 1)
		  when relname ~ '^ids_[01]$' then 'ids'
		  when relname ~ '^(receipts|past_receipts_[0-9]{8})$' then 'receipts'
		  else 'other' end, coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
		from pg_class where relnamespace = 'dispatcher'::regnamespace and relkind = 'r'
		group by 1`)
	sizes := make(map[string]int64, len(found))
	for _, one := range found {
		sizes[one.Table] = one.Bytes
	}
	return sizes, wrap("look at the sizes of tables", err)
}

// String says for how many of its messages the day is kept.
func (d LivingDay) String() string { return fmt.Sprintf("%s: %d", d.Day, d.Living) }

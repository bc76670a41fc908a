package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// unended is true when message m of a day still needs its payload: it has not ended, or ended less
// than $1 ago, or is ambiguous, or was ambiguous less than $1 ago. An accepted message has ended
// unless a receipt is awaited or one of its rows of receipts is due again.
const unended = `(coalesce(
	  coalesce(m.finished_at, case when m.state in ('sending', 'accepted')
	    and not exists (select from dispatcher.receipts r
	      where r.message_seq = m.seq and r.due_at is not null)
	    then (select max(coalesce(a.delivered_at, a.settled_at)) from dispatcher.attempts a
	      where a.message_seq = m.seq
	      having bool_and(a.outcome is not null) and bool_or(a.outcome = 'accepted')) end)
	    > now() - $1::interval, true)
	or m.state = 'unknown' and exists (select from dispatcher.ambiguous b
	  where b.message_seq = m.seq and (b.closed_at is null or b.closed_at > now() - $1::interval)))`

// keptPayloads is how many payloads dropPayloadsOf copies at most, because other sessions wait for
// the table meanwhile. When more messages of the day have not ended, the payloads of all others are
// deleted row by row.
const keptPayloads = 20_000

// dropPayloads drops the payloads of days that are old enough, except those of messages that have
// not ended. It truncates the partition and copies these few back into it, so that statements can
// still name the partition and every payload is found in one place.
func (k *keeper) dropPayloads(ctx context.Context) error {
	days, err := k.days(ctx, `
		select day from dispatcher.days where payloads and not dropping
		  and to_timestamp((day + 1)::bigint * 86400) <= clock_timestamp() - $1::interval
		order by day`, k.r.Payloads)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := k.dropPayloadsOf(ctx, day); err != nil {
			return fmt.Errorf("of %s: %w", day, err)
		}
		k.done.Payloads = append(k.done.Payloads, day)
	}
	return nil
}

// findKept copies the payloads that are kept. It runs without a lock on the table.
var findKept = ofDay(`
	insert into kept_payloads
	select p.* from dispatcher.messages m
	join dispatcher.payloads p on p.seq = m.seq where ` + unended)

// findRevived adds, under the lock, the payloads of messages that have become due since findKept
// ran: a message that had ended as unknown may be sent again.
var findRevived = ofDay(`
	insert into kept_payloads
	select p.* from dispatcher.payloads p
	where p.seq in (
	  select seq from dispatcher.due where seq >= $1 and seq < $2
	  union all
	  select message_seq from dispatcher.ambiguous where message_seq >= $1 and message_seq < $2
	    and (closed_at is null or closed_at > now() - $3::interval))
	on conflict do nothing`)

// forgetErased leaves out, under the lock, the payloads that Erase has deleted since findKept ran.
var forgetErased = ofDay(`
	delete from kept_payloads k
	where not exists (select from dispatcher.payloads p where p.seq = k.seq)`)

var (
	lockPayloads  = ofDay(`lock table dispatcher.payloads in access exclusive mode`)
	emptyPayloads = ofDay(`truncate dispatcher.payloads`)
	putBack       = ofDay(`insert into dispatcher.payloads select * from kept_payloads`)
)

func (k *keeper) dropPayloadsOf(ctx context.Context, day Day) error {
	if _, err := k.conn.Exec(ctx, `drop table if exists pg_temp.kept_payloads;
		create temp table kept_payloads (like dispatcher.payloads including indexes)`); err != nil {
		return err
	}
	found, err := k.conn.Exec(ctx, findKept.on(day), k.r.Payloads)
	if err != nil {
		return err
	}
	if found.RowsAffected() > keptPayloads {
		if _, err := k.conn.Exec(ctx, `update dispatcher.days set payloads = false, kept = $2,
			looked_at = null where day = $1`, day, found.RowsAffected()); err != nil {
			return err
		}
		return k.dropLateOf(ctx, day)
	}
	return k.underLock(ctx, lockPayloads.on(day), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, forgetErased.on(day))
		if err == nil {
			_, err = tx.Exec(ctx, findRevived.on(day), day.first(), (day + 1).first(), k.r.Payloads)
		}
		if err == nil {
			_, err = tx.Exec(ctx, emptyPayloads.on(day)+";"+putBack.on(day))
		}
		if err == nil {
			_, err = tx.Exec(ctx, `update dispatcher.days set payloads = false,
				kept = (select count(*) from kept_payloads), looked_at = now()
				where day = $1`, day)
		}
		return err
	})
}

// lookInterval is how often Keep checks whether messages that have outlived their day have ended.
const lookInterval = time.Hour

// dropLate deletes payloads that dropPayloads has kept, of messages that have ended since.
func (k *keeper) dropLate(ctx context.Context) error {
	days, err := k.days(ctx, `
		select day from dispatcher.days where not payloads and kept > 0 and not dropping
		  and coalesce(looked_at < clock_timestamp() - $1::interval, true) order by day`,
		lookInterval)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := k.dropLateOf(ctx, day); err != nil {
			return fmt.Errorf("of %s: %w", day, err)
		}
	}
	return nil
}

// dropChunk is how many rows one statement reads or deletes. That takes milliseconds.
const dropChunk = 5000

// deleteLate reads the next $3 payloads after $2 by number, and deletes those that are not needed.
var deleteLate = ofDay(`
	with next as (
	  select seq from dispatcher.payloads where seq > $2 order by seq limit $3
	), gone as (
	  delete from dispatcher.payloads p using next n, dispatcher.messages m
	  where p.seq = n.seq and m.seq = n.seq and not ` + unended + `
	  returning p.seq
	)
	select coalesce(max(seq), 0), count(*), (select count(*) from gone) from next`)

func (k *keeper) dropLateOf(ctx context.Context, day Day) error {
	if _, err := k.conn.Exec(ctx, cleanPayloads, day); err != nil {
		return err
	}
	var looked, gone, left int64
	for from := day.first() - 1; ; {
		err := k.conn.QueryRow(ctx, deleteLate.on(day), k.r.Payloads, from, dropChunk).
			Scan(&from, &looked, &gone)
		if err != nil {
			return err
		}
		k.done.Late += gone
		left += looked - gone
		if looked < dropChunk {
			break
		}
	}
	_, err := k.conn.Exec(ctx, `update dispatcher.days set kept = $2, looked_at = clock_timestamp()
		where day = $1`, day, left)
	return err
}

// dropFacts drops the days that are old enough, except those with messages that living counts and
// those that the owner of the schema keeps for longer.
func (k *keeper) dropFacts(ctx context.Context) error {
	begun, err := k.days(ctx, `select day from dispatcher.days where dropping order by day`)
	if err != nil {
		return err
	}
	for _, day := range begun {
		if err := k.drop(ctx, day); err != nil {
			return fmt.Errorf("of %s: %w", day, err)
		}
	}
	days, err := k.days(ctx, `
		select day from dispatcher.days, dispatcher.least_kept l where not dropping
		  and to_timestamp((day + 1)::bigint * 86400)
		    <= clock_timestamp() - greatest($1::interval, l.facts)
		order by day`, k.r.Facts)
	if err != nil {
		return err
	}
	for _, day := range days {
		living, err := k.living(ctx, day)
		if err == nil && living == 0 {
			err = k.drop(ctx, day)
		}
		if err != nil {
			return fmt.Errorf("of %s: %w", day, err)
		}
		if living > 0 {
			k.done.Skipped = append(k.done.Skipped, LivingDay{day, living})
		}
	}
	return nil
}

var countUnended = ofDay(`select count(*) from dispatcher.messages m where ` + unended)

// living counts the messages of a day that have not ended, or ended less than half of k.r.Facts
// ago: until then the business day on which a message was sent is closed again after corrections.
// It marks the day as being dropped when there are none, and counts at most once in lookInterval.
// As dropLate looks at a day no more often, living does its work for a day that stays.
func (k *keeper) living(ctx context.Context, day Day) (n int64, err error) {
	var fresh, late bool
	err = k.conn.QueryRow(ctx, `
		select living, living > 0 and coalesce(looked_at > clock_timestamp() - $2::interval, false),
		  not payloads and kept > 0
		from dispatcher.days where day = $1`, day, lookInterval).Scan(&n, &fresh, &late)
	if err != nil || fresh {
		return n, err
	}
	if err := k.conn.QueryRow(ctx, countUnended.on(day), k.r.Facts/2).Scan(&n); err != nil {
		return 0, err
	}
	_, err = k.conn.Exec(ctx, `
		update dispatcher.days set living = $2, dropping = $2::bigint = 0,
		  looked_at = case when $2::bigint = 0 then looked_at else clock_timestamp() end
		where day = $1`, day, n)
	if err == nil && n > 0 && late {
		err = k.dropLateOf(ctx, day)
	}
	return n, err
}

// drop drops a day that is marked as being dropped. A step may have run before, in a call that
// failed. Rows of other tables that refer to the day's messages are deleted first, and again at the
// end, in case one was written meanwhile.
func (k *keeper) drop(ctx context.Context, day Day) error {
	if err := k.sweep(ctx, day); err != nil {
		return err
	}
	for _, table := range []string{"payloads", "attempts", "past_receipts", "past_ids", "messages"} {
		if err := k.dropPartition(ctx, table, day); err != nil {
			return err
		}
	}
	if err := k.sweep(ctx, day); err != nil {
		return err
	}
	if _, err := k.conn.Exec(ctx, `select dispatcher.forget_day($1)`, day); err != nil {
		return err
	}
	k.done.Facts = append(k.done.Facts, day)
	return nil
}

// sweeps delete, in batches of dropChunk, the rows that refer to messages of a day in tables that
// have no daily partitions, and return how many. The first three are history, which only a function
// of the owner deletes.
var sweeps = []string{
	`select dispatcher.drop_references('receipts', $1)`,
	`select dispatcher.drop_references('ambiguous', $1)`,
	`select dispatcher.drop_references('reused_references', $1)`,
	`with gone as (
		delete from dispatcher.held where ctid = any(array(select ctid from dispatcher.held
		where message_seq >= dispatcher.first_of($1) and message_seq < dispatcher.first_of($1 + 1)
		limit 5000 for update skip locked)) returning 1)
	select count(*) from gone`,
	`with gone as (
		delete from dispatcher.due where ctid = any(array(select ctid from dispatcher.due
		where seq >= dispatcher.first_of($1) and seq < dispatcher.first_of($1 + 1)
		limit 5000 for update skip locked)) returning 1)
	select count(*) from gone`,
}

func (k *keeper) sweep(ctx context.Context, day Day) error {
	for _, sql := range sweeps {
		for n := int64(1); n > 0; {
			if err := k.conn.QueryRow(ctx, sql, day).Scan(&n); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropPartition drops the partition of a day. That locks the whole partitioned table for a moment,
// and other sessions queue behind it, so it waits for readers only briefly: see underLock.
func (k *keeper) dropPartition(ctx context.Context, table string, day Day) error {
	var exists bool
	err := k.conn.QueryRow(ctx, `select to_regclass($1) is not null`,
		"dispatcher."+table+"_"+day.suffix()).Scan(&exists)
	if err != nil || !exists {
		return err
	}
	return k.underLock(ctx, "select", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select dispatcher.drop_day($1, $2)`, table, day)
		return err
	})
}

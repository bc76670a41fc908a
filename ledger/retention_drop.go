package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// endedAt is when message m of a day ended, null while it lives. One that was accepted has ended
// unless a receipt is awaited, or something is to be looked at again.
const endedAt = `coalesce(m.finished_at, case when m.state in ('sending', 'accepted')
	and not exists (select from dispatcher.receipts r
	  where r.message_seq = m.seq and r.due_at is not null)
	then (select max(coalesce(a.delivered_at, a.settled_at)) from dispatcher.attempts a
	  where a.message_seq = m.seq
	  having bool_and(a.outcome is not null) and bool_or(a.outcome = 'accepted')) end)`

// unended is the condition that message m of a day still needs its payload: it has not ended, or
// not for $1, or it is not yet known whether a provider took it.
const unended = `(coalesce(` + endedAt + ` > now() - $1::interval, true)
	or m.state = 'unknown' and exists (select from dispatcher.ambiguous b
	  where b.message_seq = m.seq and (b.closed_at is null or b.closed_at > now() - $1::interval)))`

// isLiving is the condition that message m of a day has not ended, or that it is not yet known
// whether a provider took it.
const isLiving = `(` + endedAt + ` is null or m.state = 'unknown' and exists (
	  select from dispatcher.ambiguous b where b.message_seq = m.seq and b.closed_at is null))`

// over are the days whose end is older than $1.
const over = `not dropping and
	to_timestamp((day + 1)::bigint * 86400) <= clock_timestamp() - $1::interval`

// keptPayloads is how many payloads are put back at most while others wait for the table. If more
// messages of a day have not ended, the others' payloads are deleted.
const keptPayloads = 20_000

// dropPayloads drops the payloads of days that are old enough, but not those of messages that have
// not ended. The partition is emptied and stays: statements name it, and those few payloads are put
// back into it, so that whoever reads one looks in one place.
func (k *keeper) dropPayloads(ctx context.Context) error {
	days, err := k.days(ctx,
		`select day from dispatcher.days where payloads and `+over+` order by day`, k.r.Payloads)
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

// findKept finds what is to be kept, without a lock.
var findKept = ofDay(`
	insert into kept_payloads
	select p.* from dispatcher.messages m
	join dispatcher.payloads p on p.seq = m.seq where ` + unended)

// findRevived finds, under the lock, the messages that have come to life since: a message that has
// ended as unknown is tried again, or is about to be.
var findRevived = ofDay(`
	insert into kept_payloads
	select p.* from dispatcher.payloads p
	where p.seq in (
	  select seq from dispatcher.due where seq >= $1 and seq < $2
	  union all
	  select message_seq from dispatcher.ambiguous where message_seq >= $1 and message_seq < $2
	    and (closed_at is null or closed_at > now() - $3::interval))
	on conflict do nothing`)

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
		_, err := tx.Exec(ctx, findRevived.on(day), day.first(), (day + 1).first(), k.r.Payloads)
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

// lookInterval is how often it is looked whether messages that have outlived their day have ended.
const lookInterval = time.Hour

// dropLate drops payloads that were kept, of messages that have ended since.
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

// dropChunk is how many rows one statement looks at or deletes: it takes milliseconds.
const dropChunk = 5000

// deleteLate looks at the next payloads after $2 in the order of their numbers.
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

// dropFacts drops the days that are old enough, but those that have messages which have not ended.
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
	days, err := k.days(ctx, `select day from dispatcher.days where `+over+` order by day`, k.r.Facts)
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

// countLiving counts the messages of a day that live.
var countLiving = ofDay(`select count(*) from dispatcher.messages m where ` + isLiving)

// living counts the messages of a day that have not ended, and says that the day is dropped if
// there are none. It looks at most once in lookInterval.
func (k *keeper) living(ctx context.Context, day Day) (n int64, err error) {
	var fresh bool
	err = k.conn.QueryRow(ctx, `
		select living, living > 0 and coalesce(looked_at > clock_timestamp() - $2::interval, false)
		from dispatcher.days where day = $1`, day, lookInterval).Scan(&n, &fresh)
	if err != nil || fresh {
		return n, err
	}
	if err := k.conn.QueryRow(ctx, countLiving.on(day)).Scan(&n); err != nil {
		return 0, err
	}
	_, err = k.conn.Exec(ctx, `
		update dispatcher.days set living = $2, dropping = $2::bigint = 0,
		  looked_at = case when $2::bigint = 0 then looked_at else clock_timestamp() end
		where day = $1`, day, n)
	return n, err
}

// drop drops a day that is marked as being dropped. Each step may have been made before: what
// refers to the day's messages goes first, and once more at the end, in case something was written
// meanwhile.
func (k *keeper) drop(ctx context.Context, day Day) error {
	if err := k.sweep(ctx, day); err != nil {
		return err
	}
	for _, table := range []string{"payloads", "attempts", "past_ids", "messages"} {
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

// sweeps delete what refers to the messages of a day in tables that have no days, some rows at a
// time.
var sweeps = []string{
	`delete from dispatcher.receipts where ctid = any(array(select ctid from dispatcher.receipts
		where message_seq >= $1 and message_seq < $2 limit $3 for update skip locked))`,
	`delete from dispatcher.ambiguous where ctid = any(array(select ctid from dispatcher.ambiguous
		where message_seq >= $1 and message_seq < $2 limit $3 for update skip locked))`,
	`delete from dispatcher.held where ctid = any(array(select ctid from dispatcher.held
		where message_seq >= $1 and message_seq < $2 limit $3 for update skip locked))`,
	`delete from dispatcher.due where ctid = any(array(select ctid from dispatcher.due
		where seq >= $1 and seq < $2 limit $3 for update skip locked))`,
}

func (k *keeper) sweep(ctx context.Context, day Day) error {
	for _, sql := range sweeps {
		for n := int64(dropChunk); n == dropChunk; {
			gone, err := k.conn.Exec(ctx, sql, day.first(), (day + 1).first(), dropChunk)
			if err != nil {
				return err
			}
			n = gone.RowsAffected()
		}
	}
	return nil
}

// dropPartition drops a table of a day. That locks all days of the table for a moment, so it waits
// for whoever reads them no longer than others may wait behind it.
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

package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ReasonCancelled is the reason of a failed message that an operator cancelled.
const ReasonCancelled = "cancelled"

// Cancellation ends a message that has not been sent.
type Cancellation struct {
	Seq int64
	// State and Attempts are those that the caller read and composed Notice for.
	State          State
	Attempts       int
	Author, Reason string
	Via            Via
	Notice         Notice
}

// cancelNames are the parameters of cancelMessage.
var cancelNames = []string{
	"seq", "state", "attempts", "author", "why", "via", "notice_key", "notice_value",
}

// cancelMessage ends a locked message if it is as the caller read it, and no attempt of it was or
// may have been taken. A claim that locked the message first has made it sending by now; a later
// claim does not find it due any more.
var cancelMessage = ofDay(named(cancelNames, `
	with ended as (
	  update dispatcher.messages m set state = 'failed', reason = 'cancelled', next_at = null,
	    finished_at = now()
	  where m.seq = @seq and m.state = @state and m.attempts = @attempts::smallint
	    and m.state in ('scheduled', 'waiting', 'retry') and m.same_key is null
	    and m.parts_cut is null and m.parts_left is null
	    and not exists (select from dispatcher.attempts a where a.message_seq = @seq
	      and coalesce(a.outcome, 'unknown') in ('unknown', 'accepted'))
	  returning m.id
	), told as (
	  insert into dispatcher.outbox (kind, keys, "values")
	  select 'status', array[@notice_key::text], array[@notice_value::bytea] from ended
	), noted as (
	  insert into dispatcher.operator_actions (author, reason, action, subject, via)
	  select @author, @why, 'cancel', id, @via from ended
	)
	select exists (select from ended)`))

// Cancel ends a message in one transaction, and reports whether it did. A message that has changed
// since the caller read it is left as it is, and so is one of which an attempt was or may have been
// taken. Cancel waits for a claim or a settlement that has the message locked.
func (s *Messages) Cancel(ctx context.Context, c *Cancellation) (ended bool, err error) {
	day, batch := DayOf(c.Seq), &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(lockMessage.on(day), c.Seq)
	batch.Queue(cancelMessage.on(day), c.Seq, string(c.State), c.Attempts, storable(c.Author),
		storable(c.Reason), string(c.Via), c.Notice.Key, c.Notice.Value).QueryRow(func(row pgx.Row) error {
		return row.Scan(&ended)
	})
	batch.Queue("commit")
	err = s.hot.SendBatch(ctx, batch).Close() // before what it reads is returned
	return ended && err == nil, wrap("cancel a message", err)
}

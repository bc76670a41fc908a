package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Misfits of a receipt.
const (
	// MisfitChannel: it is about an attempt that is not there, or that another channel has.
	MisfitChannel = "channel"
	// MisfitReference: no answer to a submit of its message named its reference.
	MisfitReference = "reference"
	// MisfitTime: it came before the first attempt of its message on its channel.
	MisfitTime = "time"
	// MisfitState: an attempt has a final receipt, and none of its message is on record.
	MisfitState = "state"
	// MisfitDelivered: an attempt was delivered at a time at which no receipt of its message came.
	MisfitDelivered = "delivered_at"
)

// MisfitReceipt is a receipt that contradicts what was submitted, or what an attempt says of its
// receipts.
type MisfitReceipt struct {
	ID      string // of the message
	Attempt int
	What    string // one of the misfits
	// Stored is the reference for MisfitReference, the state for MisfitState, the channel for
	// MisfitChannel, else a time.
	Stored string
}

// misfitReceipts compares the receipts and the attempts of messages received from @from to @to,
// whose numbers lie between @low and @high.
//
// A provider that gives an id anew takes the receipts of the older message away: then nothing is
// said of what is missing there.
const misfitReceipts = `
	with day as materialized (
	  select seq, id from facts.stored_messages
	  where seq > @low and seq < @high and received_at >= @from and received_at < @to
	), came as materialized (
	  select d.id, r.message_seq, r.attempt, r.part, r.channel,
	    split_part(r.reference, ' ', 1) as reference, r.state, r.received_at
	  from day d join facts.receipts r on r.message_seq = d.seq
	), tried as materialized (
	  select d.id, a.message_seq, a.attempt, a.channel, a.outcome, a.provider_reference, a.claimed_at,
	    a.receipt_state, a.delivered_at
	  from day d join facts.attempts a on a.message_seq = d.seq
	  where a.message_seq > @low and a.message_seq < @high
	), kept as (
	  select t.* from tried t
	  where t.receipt_state in ('delivered', 'undelivered') and not exists (
	    select from unnest(string_to_array(t.provider_reference, ' ')) ref
	    join facts.receipts r on r.channel = t.channel and r.reference = ref
	    where r.message_seq <> t.message_seq)
	)
	select c.id, c.attempt, 'channel', c.channel from came c
	where not exists (select from tried t where t.message_seq = c.message_seq
	  and t.attempt = c.attempt and t.channel = c.channel)
	union all
	select c.id, c.attempt, 'reference', c.reference from came c
	where c.part is not null and c.reference <> ''
	  and not exists (select from tried t where t.message_seq = c.message_seq
	    and t.channel = c.channel and c.reference = any(string_to_array(t.provider_reference, ' ')))
	union all
	select c.id, c.attempt, 'time',
	  to_char(c.received_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') from came c
	where c.received_at < (select min(t.claimed_at) from tried t
	  where t.message_seq = c.message_seq and t.channel = c.channel)
	union all
	select k.id, k.attempt, 'state', k.receipt_state from kept k
	where not exists (select from came c where c.message_seq = k.message_seq
	  and c.state in ('delivered', 'undelivered'))
	union all
	select k.id, k.attempt, 'delivered_at',
	  to_char(k.delivered_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') from kept k
	where k.receipt_state = 'delivered' and exists (select from came c
	    where c.message_seq = k.message_seq and c.state in ('delivered', 'undelivered'))
	  and not exists (select from came c where c.message_seq = k.message_seq
	    and c.received_at = k.delivered_at)
	order by 1, 2, 3`

// Misfits lists what receipts of the messages received from an instant to another contradict. All
// is read as of one moment, and by views alone, as finance may.
func (s *Receipts) Misfits(ctx context.Context, from, to time.Time) ([]MisfitReceipt, error) {
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, wrap("compare receipts with attempts", err)
	}
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[MisfitReceipt], misfitReceipts, pgx.NamedArgs{
		"from": from, "to": to, "low": low, "high": high,
	})
	return out, wrap("compare receipts with attempts", err)
}

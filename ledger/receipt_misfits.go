package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Misfits of a receipt.
const (
	// MisfitChannel: the attempt does not exist, or belongs to another channel.
	MisfitChannel = "channel"
	// MisfitReference: no answer to a submit of the message named this reference.
	MisfitReference = "reference"
	// MisfitTime: the receipt came before the first attempt of the message on its channel.
	MisfitTime = "time"
	// MisfitState: an attempt has a final receipt state, but its message has no final receipt on
	// record.
	MisfitState = "state"
	// MisfitDelivered: no receipt of the message came at the time at which the attempt was delivered.
	MisfitDelivered = "delivered_at"
)

// MisfitReceipt is a receipt that contradicts what was submitted, or an attempt that contradicts
// its receipts.
type MisfitReceipt struct {
	ID      string // of the message
	Attempt int
	What    string // one of the misfits
	// Stored is what contradicts: the reference for MisfitReference, the state for MisfitState, the
	// channel for MisfitChannel, else a time.
	Stored string
}

// misfitReceipts compares the receipts and the attempts of messages received from @from to @to,
// whose numbers lie between @low and @high.
//
// A provider may use an id again; the row of receipts then goes to the other message. So
// MisfitState and MisfitDelivered leave out messages that lost one.
const misfitReceipts = `
	with day as materialized (
	  select seq, id from facts.stored_messages
	  where seq > @low and seq < @high and received_at >= @from and received_at < @to
	), came as materialized (
	  select d.id, r.message_seq, r.attempt, r.part, r.channel,
	    split_part(r.reference, ' ', 1) as reference, r.state, r.received_at
	  from day d join facts.receipts r on r.message_seq = d.seq
	  where r.message_seq > @low and r.message_seq < @high
	), tried as materialized (
	  select d.id, a.message_seq, a.attempt, a.channel, a.outcome, a.provider_reference, a.claimed_at,
	    a.receipt_state, a.delivered_at
	  from day d join facts.stored_attempts a on a.message_seq = d.seq
	  where a.message_seq > @low and a.message_seq < @high
	), kept as (
	  select t.* from tried t
	  where t.receipt_state in ('delivered', 'undelivered') and not exists (
	    select from facts.reused_references u where u.seq = t.message_seq offset 0)
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
	join (select message_seq, channel, min(claimed_at) as at from tried group by 1, 2) f
	  using (message_seq, channel)
	where c.received_at < f.at
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

// misfitPiece is how many messages one statement compares. It bounds the cost under any query plan:
// at worst the square of this per piece.
const misfitPiece = 500

// lastOfPiece is the number of the last message of the next piece; null when there is none.
const lastOfPiece = `
	select max(seq) from (select seq from facts.stored_messages
	  where seq > $1 and seq < $2 order by seq limit $3) piece`

// Misfits lists the misfits of messages received in [from, to), by message. It reads only views
// that finance may read.
func (s *Receipts) Misfits(ctx context.Context, from, to time.Time) ([]MisfitReceipt, error) {
	const what = "compare receipts with attempts"
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, wrap(what, err)
	}
	var all []MisfitReceipt
	for {
		var last *int64
		if err := s.reports.QueryRow(ctx, lastOfPiece, low, high, misfitPiece).Scan(&last); err != nil {
			return nil, wrap(what, err)
		}
		if last == nil {
			break
		}
		some, err := rows(ctx, s.db, pgx.RowToStructByPos[MisfitReceipt], misfitReceipts,
			pgx.NamedArgs{"from": from, "to": to, "low": low, "high": *last + 1})
		if err != nil {
			return nil, wrap(what, err)
		}
		all, low = append(all, some...), *last
	}
	slices.SortStableFunc(all, func(a, b MisfitReceipt) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

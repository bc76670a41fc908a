package ledger

import (
	"context"
	"time"
)

// disorder is more than messages can be out of order: seq is drawn and received_at, the
// start of the transaction, is fixed within one statement, which statement_timeout bounds.
const disorder = time.Minute

// seekSeq searches the primary key of messages for an instant, by halves: some 25 probes
// of one row in a ledger of 100 million messages. Messages up to low were received before
// $1, those from high on at $1 or later, give or take disorder.
//
// Why not the index on received_at: it is a block range index, which summarises new pages
// only when the table is vacuumed, and until then reads all of them for every question.
// Why not an index of its own: each claim would pay for it.
const seekSeq = `
	with recursive search(low, high) as (
	  select 0::bigint, coalesce(max(seq), 0) + 1 from dispatcher.messages
	  union all
	  select case when p.received_at < $1 then s.mid else s.low end,
	    case when p.received_at < $1 then s.high else s.mid end
	  from (select low, high, low + (high - low) / 2 as mid from search where high - low > 1) s,
	    lateral (select received_at from dispatcher.messages where seq >= s.mid
	      order by seq limit 1) p
	)
	select low, high from search order by high - low limit 1`

// seek returns seqs such that all messages up to low were received before at, and all from
// high on at it or later.
func (d *db) seek(ctx context.Context, at time.Time) (low, high int64, err error) {
	var from, to, ignored int64
	if err := d.reports.QueryRow(ctx, seekSeq, at.Add(-disorder)).Scan(&from, &ignored); err != nil {
		return 0, 0, wrap("look for an instant", err)
	}
	err = d.reports.QueryRow(ctx, seekSeq, at.Add(disorder)).Scan(&ignored, &to)
	return from, to, wrap("look for an instant", err)
}

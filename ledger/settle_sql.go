package ledger

import _ "embed"

// settle stores any settlements. For accepted first attempts that need nothing more there is
// settlePlain.
var (
	//go:embed settle.sql
	settleText string

	settle = ofDay(named(settleNames, settleText))
)

// settlePlain does for plain settlements what settle does, with less work. The rows of the messages
// stay as they are. When one of the attempts already has an outcome, settlePlain fails on purpose:
// it inserts null keys, see isSettledBefore. Then nothing is stored, and the batch is sent again as
// settle, which handles late answers and repetitions. Both are rare. The values are null too in
// that case, because PostgreSQL's log quotes the row.
//
// The number of the attempts is always 1. It is a parameter like the others: with a constant
// PostgreSQL may choose to read the whole index of the day, because that is cheaper while the day
// is nearly empty.
var settlePlain = ofDay(named(plainNames, `
	with done as (
	  update dispatcher.attempts a set outcome = 'accepted',
	    provider_code = nullif(coalesce(g.code, (@codes::text[])[1]), ''),
	    provider_reference = nullif(g.reference, ''),
	    segments = coalesce(g.segments, (@segments::smallint[])[1]),
	    price_micros = coalesce(g.price_micros, (@prices::bigint[])[1]),
	    settled_at = now(), answers = 1
	  from unnest(@seqs::bigint[], @attempts::smallint[], @codes::text[], @references::text[],
	    @segments::smallint[], @prices::bigint[])
	    as g(seq, attempt, code, reference, segments, price_micros)
	  where a.message_seq = g.seq and a.attempt = coalesce(g.attempt, (@attempts::smallint[])[1])
	    and a.outcome is null
	  returning a.channel, a.freed
	), freed as (
	  insert into dispatcher.freed_slots as f (channel, slots)
	  select channel, n.slots
	  from (select channel, count(*) as slots from done where not freed group by channel) n
	  join dispatcher.channels using (channel) order by channel
	  on conflict (channel) do update set slots = f.slots + excluded.slots
	)
	insert into dispatcher.outbox (kind, keys, "values")
	select 'status', case when all_done then @notice_keys::text[] end,
	  case when all_done then @notice_values::bytea[] end
	from (select count(*) = cardinality(@seqs::bigint[]) as all_done from done) d
	where not all_done or cardinality(@notice_keys) > 0`))

// plainNames are the parameters from plainArrays.
var plainNames = []string{
	"seqs", "attempts", "codes", "references", "segments", "prices", "notice_keys",
	"notice_values",
}

// settleNames are the parameters from settlementArrays.
var settleNames = []string{
	// One element for each settlement.
	"seqs", "attempts", "outcomes", "codes", "references", "segments", "prices", "states",
	"reasons", "next_ats", "tried", "pinned", "parts_left", "parts_cut", "possible_duplicates",
	"plain", "holds", "slows", "unfit", "denied_parts", "repeats",
	// receipts_telling says that the number of receipts has to be stored: it differs from the number
	// of parts that the settlement names, or no answer came and Settlement.Await is needed later.
	"receipts_expected", "receipts_telling", "receipts_within", "cut_short",
	// One element for each refund.
	"refund_nrs", "refund_channels", "refund_scopes", "refund_windows", "refund_micros",
	"refund_lanes", "refund_pools",
	// The notices of the settlements, and whether each has one, see noticeArrays.
	"notice_keys", "notice_values", "all_told",
}

// corrected follows settle when a settlement says something about receipts. It is for attempts that
// were settled before with the same outcome and less information, by an instance that took this one
// for dead, or by a receipt with our key. It is a separate statement, because it has to see what
// the transactions that settle waited for have committed. All attempts are locked by then. What
// settle has written stays as it is.
var corrected = ofDay(`
	update dispatcher.attempts a
	set receipts_owed = g.expected, receipts_within = g.within, cut_short = g.cut
	from (
	  select seq, attempt, outcome, expected, telling,
	    nullif(within, 0) * interval '1 microsecond' as within, nullif(cut, false) as cut
	  from unnest($1::bigint[], $2::smallint[], $3::text[], $4::smallint[], $5::boolean[],
	      $6::bigint[], $7::boolean[])
	    as u(seq, attempt, outcome, expected, telling, within, cut)
	) g
	where a.message_seq = g.seq and a.attempt = g.attempt and a.outcome = g.outcome
	  and g.expected > 0 and (a.receipts_owed is not null or g.telling)
	  and (a.receipts_owed, a.receipts_within, a.cut_short)
	    is distinct from (g.expected, g.within, g.cut)`)

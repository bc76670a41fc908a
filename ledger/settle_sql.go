package ledger

import _ "embed"

// settle stores any settlements. For accepted first attempts that need nothing more there is
// insertSettled.
var (
	//go:embed settle.sql
	settleText string

	settle = ofDay(named(settleNames, settleText))
)

// insertSettled stores plain settlements: it inserts the first attempts of this process that were
// accepted. The rows of the messages stay as they are. When one of the attempts has a row, or its
// claim is not in open_claims, it fails, and nothing of the batch is stored; see isStored. A claim
// is missing when others have stored its attempts, or on a server that took over without it.
var insertSettled = ofDay(named(settledNames, `
	insert into dispatcher.attempts (message_seq, attempt, leaves_at, price_micros, segments,
	  channel, reason, currency, ranking, instance, claimed_at, settled_at, answers, outcome,
	  provider_reference, provider_code)
	select case when (select count(*) = cardinality(@claims::bigint[])
	    from unnest(@claims::bigint[], @claimed::timestamptz[]) as n(claim, at)
	    join dispatcher.open_claims c on c.first_seq = n.claim and c.claimed_at = n.at
	      and c.instance = @instance) then u.seq end,
	  1, u.leaves_at, coalesce(u.price, (@prices::bigint[])[1]),
	  coalesce(u.segments, (@segments::smallint[])[1]),
	  coalesce(u.channel, (@channels::text[])[1]), coalesce(u.reason, (@reasons::text[])[1]),
	  coalesce(u.currency, (@currencies::text[])[1]), nullif(u.ranking, '')::jsonb,
	  @instance::bigint, coalesce(u.claimed_at, (@claimed_ats::timestamptz[])[1]), now(), 1,
	  'accepted', nullif(u.reference, ''), nullif(coalesce(u.code, (@codes::text[])[1]), '')
	from unnest(@seqs::bigint[], @leaves_ats::timestamptz[], @prices::bigint[],
	  @segments::smallint[], @channels::text[], @reasons::text[], @currencies::text[],
	  @rankings::text[], @claimed_ats::timestamptz[], @references::text[], @codes::text[])
	  as u(seq, leaves_at, price, segments, channel, reason, currency, ranking, claimed_at,
	    reference, code)`))

// settledNames are the parameters from settledArrays.
var settledNames = []string{
	"seqs", "leaves_ats", "prices", "segments", "channels", "reasons", "currencies", "rankings",
	"instance", "claimed_ats", "references", "codes",
	// One element for each claim.
	"claims", "claimed",
}

// selectStored reads which of some messages have a row of an attempt.
var selectStored = ofDay(`select message_seq from dispatcher.attempts where message_seq = any($1)`)

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

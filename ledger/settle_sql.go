package ledger

import (
	_ "embed"
	"regexp"
)

// A batch of settlements is one of two statements: settle, or settleMore when one of them needs
// more. settle.sql says how both are written as one text. Both take the parameters of settleNames
// in that order; settle takes only the first settleCount.
var (
	//go:embed settle.sql
	settleText string

	settle     = ofDay(named(settleNames[:settleCount], onlyMore.ReplaceAllString(settleText, "")))
	settleMore = ofDay(named(settleNames, settleText))
)

var onlyMore = regexp.MustCompile(`(?ms)^ *-- begin more\n.*?^ *-- end more\n`)

// settleCount is how many parameters settle has.
const settleCount = 19

var settleNames = []string{
	// One element for each settlement, see settlementArrays.
	"seqs", "attempts", "outcomes", "codes", "references", "segments", "prices", "states",
	"reasons",
	"next_ats", "tried", "pinned", "parts_left", "parts_cut", "possible_duplicates", "plain",
	// Their notices, and whether each has one, see noticeArrays.
	"notice_keys", "notice_values", "all_told",
	// One element for each settlement, or for each refund, see moreArrays.
	"holds", "slows",
	"refund_nrs", "refund_channels", "refund_scopes", "refund_windows", "refund_micros",
	// receipts_telling says that the number of receipts has to be stored: it differs from the number
	// of parts that the settlement names, or no answer came and Settlement.Await is needed later.
	"receipts_expected", "receipts_telling", "receipts_within", "cut_short",
	"unfit", "refund_lanes", "refund_pools", "denied_parts", "repeats",
}

// corrected follows settleMore when a settlement says something about receipts. It is for attempts
// that were settled before with the same outcome and less information, by an instance that took
// this one for dead or by a receipt with our key. It is a separate statement, because it has to see
// what the transactions that settleMore waited for have committed. All attempts are locked by then.
// What settleMore has written stays as it is.
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

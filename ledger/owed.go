package ledger

import (
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// owed writes down how many receipts tell all about attempts, after their settlement and only of those whose outcome is
// what it says. Nearly all have as many as their settlement named parts, and nothing is written about them; where something else was
// written when nobody answered, the late answer corrects it.
const owed = `
	update dispatcher.attempts a set receipts_owed = g.owed, receipts_within = g.within * interval '1 microsecond', cut_short = nullif(g.cut, false)
	from unnest($1::bigint[], $2::smallint[], $3::text[], $4::smallint[], $5::smallint[], $6::bigint[], $7::boolean[])
	  as g(seq, attempt, outcome, owed, named, within, cut)
	where a.message_seq = g.seq and a.attempt = g.attempt and a.outcome = g.outcome
	  and (a.receipts_owed is not null or g.owed <> g.named or g.cut)`

// owedArrays are the parameters of owed; nil when no settlement says how many receipts are owed.
func owedArrays(order []*Settlement) []any {
	var seq []int64
	var attempt, owed, named []int16
	var outcome []string
	var within []pgtype.Int8 // microseconds; null when none are expected
	var cut []bool
	for _, s := range order {
		if s.Receipts <= 0 {
			continue
		}
		known := names(s.Reference)
		slices.Sort(known)
		seq, attempt, outcome = append(seq, s.Seq), append(attempt, int16(s.Attempt)), append(outcome, s.Outcome.String()) //nolint:gosec // The column is a smallint.
		owed, named = append(owed, int16(s.Receipts)), append(named, int16(len(slices.Compact(known))))                    //nolint:gosec // Segments of a message.
		within = append(within, pgtype.Int8{Int64: max(s.Await, 0).Microseconds(), Valid: s.Await > 0})
		cut = append(cut, s.CutShort)
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, outcome, owed, named, within, cut}
}

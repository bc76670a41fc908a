package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Numbers of finance rows in Seq begin with these. No closing has such a number: it would be that
// of a day 46 000 years from now.
const (
	topUpSeq          = 1 << 56
	reconciliationSeq = 1 << 57
)

// FinanceKind is a kind of finance rows: those that finance or operators put in by hand
// and that are never changed.
type FinanceKind struct {
	Name string
	// Parts are the views of schema audit that have its parts, by index.
	Parts []string
}

// The kinds of finance rows.
var (
	TopUpKind          = &FinanceKind{"top-up", []string{"top_ups"}}
	ReconciliationKind = &FinanceKind{"reconciliation", []string{
		"reconciliations", "reconciliation_totals", "reconciliation_differences",
	}}
)

// FinanceOf reads a Seq that is a finance row: -(2^56 + id) of a top-up, -(2^57 + id) of a signed
// reconciliation. It returns nil for any other Seq.
func FinanceOf(seq int64) (kind *FinanceKind, id int64) {
	switch {
	case seq > -topUpSeq:
		return nil, 0
	case seq > -reconciliationSeq:
		return TopUpKind, -seq - topUpSeq
	default:
		return ReconciliationKind, -seq - reconciliationSeq
	}
}

// Finance calls each with the finance rows made since an instant, in their order. They are read in
// one snapshot.
func (s *Seals) Finance(ctx context.Context, from time.Time, each func(*Evidence) error) error {
	return wrap("read evidence of finance rows", finance(ctx, s.reports, from, nil, each))
}

// finance reads those made in [from, to); without to, all since from.
func finance(
	ctx context.Context, q querier, from time.Time, to *time.Time, each func(*Evidence) error,
) error {
	r, err := q.Query(ctx, `
		select seq, at, intake, coalesce(totals, ''), coalesce(differences, '')
		from facts.finance_evidence
		where at >= $1 and ($2::timestamptz is null or at < $2) order by at, seq desc`, from, to)
	if err != nil {
		return err
	}
	var e Evidence
	var parts [3][]byte
	_, err = pgx.ForEachRow(r, []any{&e.Seq, &e.ReceivedAt, &parts[0], &parts[1], &parts[2]},
		func() error {
			e.Parts = Parts{}
			for i := range parts {
				copy(e.Parts[i][:], parts[i])
			}
			return each(&e)
		})
	return err
}

package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// topUpSeq is where the numbers of finance rows in Seq begin. No closing has such a number: it
// would be that of a day 46 000 years from now.
const topUpSeq = 1 << 56

// FinanceKind is a kind of rows that are only added: what finance signed off or paid for, what
// operators and guards did, and the beginnings and ends of opt-outs.
type FinanceKind struct {
	Name string
	// Parts are the views of schema audit that have its parts, by index.
	Parts []string
	begin int64 // Seq is -(begin + id)
}

// The kinds of finance rows.
var (
	TopUpKind          = &FinanceKind{"top-up", []string{"top_ups"}, topUpSeq}
	ReconciliationKind = &FinanceKind{"reconciliation", []string{
		"reconciliations", "reconciliation_totals", "reconciliation_differences",
	}, 1 << 57}

	// An opt-out is two rows here: its beginning and its end.
	OptOutKind    = &FinanceKind{"opt-out", []string{"opt_outs"}, 1<<58 + 5<<54}
	OptOutEndKind = &FinanceKind{"end of opt-out", []string{"opt_outs"}, 1<<58 + 6<<54}

	financeKinds = []*FinanceKind{
		TopUpKind, ReconciliationKind,
		{"operator action", []string{"operator_actions"}, 1 << 58},
		{"ramp move", []string{"ramp_moves"}, 1<<58 + 1<<54},
		{"restart of a limit", []string{"limit_restarts"}, 1<<58 + 2<<54},
		{"trip of a guard", []string{"guard_trips"}, 1<<58 + 3<<54},
		{"erasure", []string{"erasures"}, 1<<58 + 4<<54},
		OptOutKind, OptOutEndKind,
	}
)

// FinanceOf reads a Seq that is a finance row. It returns nil for any other Seq.
func FinanceOf(seq int64) (kind *FinanceKind, id int64) {
	if seq <= -windowSeq {
		return nil, 0
	}
	for _, k := range slices.Backward(financeKinds) {
		if seq <= -k.begin {
			return k, -seq - k.begin
		}
	}
	return nil, 0
}

// Finance calls each with the finance rows made since an instant, in their order. They are read in
// one snapshot.
func (s *Seals) Finance(ctx context.Context, from time.Time, each func(*Evidence) error) error {
	return wrap("read evidence of finance rows", finance(ctx, s.reports, from, nil, each))
}

// selectFinance reads the finance rows made since $1 and, unless it is null, before $2.
const selectFinance = `
	select seq, at, intake, coalesce(totals, ''), coalesce(differences, '')
	from facts.finance_evidence
	where at >= $1 and ($2::timestamptz is null or at < $2) order by at, seq desc`

// finance reads those made in [from, to); without to, all since from.
func finance(
	ctx context.Context, q querier, from time.Time, to *time.Time, each func(*Evidence) error,
) error {
	r, err := q.Query(ctx, selectFinance, from, to)
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

// mostFinance is how many finance rows one seal has at most, unless more were made at one instant.
// A long list of opt-outs may be imported at once.
const mostFinance = 100_000

// lastFinance is the time of the first finance row, since $1 and before $2, after $3 others.
const lastFinance = `
	select at from facts.finance_evidence where at >= $1 and at < $2 order by at offset $3 limit 1`

// atMost ends a seal earlier if it would have more finance rows than mostFinance.
func atMost(ctx context.Context, q querier, next *Seal) error {
	var to time.Time
	err := q.QueryRow(ctx, lastFinance, next.FinanceFrom, next.To, mostFinance).Scan(&to)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && to.After(next.From) && to.After(*next.FinanceFrom) {
		next.To = to.UTC()
	}
	return err
}

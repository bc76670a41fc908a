package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WrongSum are stored sums that are not those of their figures.
type WrongSum struct {
	Revision int
	Sums     string // the view of schema audit
	Split    string // which of its rows
	Figures  string // the view with the figures
}

// WrongSums lists the sums of a closed day, such as 2026-11-21, that are not those of its figures:
// somebody changed either. It reads only views that finance may read.
func (s *Sealed) WrongSums(ctx context.Context, day string) ([]WrongSum, error) {
	out, err := queried(ctx, s.reports, pgx.RowToStructByPos[WrongSum], `
		select revision, sums, split, replace(sums, 'sums', 'figures')
		from facts.wrong_sums where day = $1::date order by revision, sums, split`, day)
	return out, wrap("compare sums with figures", err)
}

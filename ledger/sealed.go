package ledger

import (
	"context"
	"time"
)

// Sealed reads what else audits need beside Seals: where the next seal begins, windows of limits,
// definitions, and references that a provider used again.
type Sealed struct{ *db }

// EachLookAtDefinitions calls each with the seals that have definitions, in their order.
func (s *Sealed) EachLookAtDefinitions(ctx context.Context, each func(*Seal) error) error {
	return (&Seals{s.db}).each(ctx, each, `select `+sealColumns+` from audit.seals
		where definitions is not null order by number`)
}

// Reused reports whether another message has receipts under a reference of the message with number
// seq, because the provider used it again. What came for seq is then gone.
func (s *Sealed) Reused(ctx context.Context, seq int64) (yes bool, err error) {
	err = s.reports.QueryRow(ctx,
		`select exists (select from facts.reused_references where seq = $1)`, seq).Scan(&yes)
	return yes, wrap("look for references that were used again", err)
}

// NextLook returns the instant from which the next seal covers messages, among those that begin at
// an instant or later; zero when there is none.
func (s *Sealed) NextLook(ctx context.Context, from time.Time) (next time.Time, err error) {
	var found *time.Time
	err = s.reports.QueryRow(ctx,
		`select min(from_at) from audit.seals where from_at >= $1 and not closings`, from).Scan(&found)
	if found != nil {
		next = *found
	}
	return next, wrap("look for the next seal", err)
}

package ledger

import (
	"context"
	"time"
)

// Sealed reads the rest of what audits compare with the log: windows of limits, definitions,
// payloads, sums, and references that a provider used again.
type Sealed struct{ *db }

// EachWithDefinitions calls each with the seals that have definitions, in their order.
func (s *Sealed) EachWithDefinitions(ctx context.Context, each func(*Seal) error) error {
	return (&Seals{s.db}).each(ctx, each, `select `+sealColumns+` from audit.seals
		where definitions is not null order by number`)
}

// Reused reports whether the provider used a reference of message seq again for another message.
// The receipts of seq under it are then overwritten.
func (s *Sealed) Reused(ctx context.Context, seq int64) (yes bool, err error) {
	err = s.reports.QueryRow(ctx,
		`select exists (select from facts.reused_references where seq = $1)`, seq).Scan(&yes)
	return yes, wrap("look for references that were used again", err)
}

// NextFrom returns the earliest From, at an instant or later, of a seal of messages; zero when
// there is none.
func (s *Sealed) NextFrom(ctx context.Context, from time.Time) (next time.Time, err error) {
	var found *time.Time
	err = s.reports.QueryRow(ctx,
		`select min(from_at) from audit.seals where from_at >= $1 and not closings`, from).Scan(&found)
	if found != nil {
		next = *found
	}
	return next, wrap("look for the next seal", err)
}

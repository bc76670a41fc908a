package ledger

import "context"

// Sealed reads what else audits need beside Seals: windows of limits, definitions, and references
// that a provider used again.
type Sealed struct{ *db }

// EachLookAtDefinitions calls each with the seals that have definitions, in their order.
func (s *Sealed) EachLookAtDefinitions(ctx context.Context, each func(*Seal) error) error {
	return (&Seals{s.db}).each(ctx, each, `select `+sealColumns+` from audit.seals
		where definitions is not null order by number`)
}

// Reused reports whether a later message has receipts under a reference of the message with number
// seq, because the provider used it again. Receipts of the earlier message are then gone.
func (s *Sealed) Reused(ctx context.Context, seq int64) (yes bool, err error) {
	err = s.reports.QueryRow(ctx,
		`select exists (select from facts.reused_references where seq = $1)`, seq).Scan(&yes)
	return yes, wrap("look for references that were used again", err)
}

package app

import "context"

// warnOfDurability says what a crash of the database would cost: guarantees rest on commits that stay.
func (a *App) warnOfDurability(ctx context.Context) error {
	d, err := a.ledger.Durability(ctx)
	if err != nil {
		return err
	}
	for _, w := range d.Weaknesses() {
		a.log.Warn().Str("setting", w.Setting).Str("value", w.Value).Msg("commits of PostgreSQL may be lost: " + w.Cost)
	}
	return nil
}

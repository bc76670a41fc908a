package pipeline

import (
	"context"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// recoverLost closes attempts that lost instances left without an outcome. They may have been sent,
// so their outcome is Unknown.
func (d *Dispatcher) recoverLost(ctx context.Context) error {
	open, err := d.cfg.Ledger.Settlements.Abandoned(
		ctx, d.cfg.DeadAfter, d.cfg.SendTimeout+recoveryMargin, d.slots.size(),
	)
	if err != nil {
		return fmt.Errorf("look for lost attempts: %w", err)
	}
	if len(open) == 0 {
		return d.cfg.Ledger.Instances.Forget(ctx, d.cfg.DeadAfter)
	}
	lost := make([]*decide.Attempt, len(open))
	for i := range open {
		lost[i] = d.recorded(&open[i].Message, &open[i].Attempt, open[i].ClaimedAt, open[i].KeyID)
	}
	if err := d.lookForReceipts(ctx, lost...); err != nil {
		return err
	}
	now := d.now()
	settlements := make([]ledger.Settlement, len(lost))
	for i, a := range lost {
		settlements[i] = decide.SettleLost(a, now)
	}
	if err := d.cfg.Ledger.Settlements.Settle(ctx, settlements); err != nil {
		return fmt.Errorf("close lost attempts: %w", err)
	}
	d.cfg.Metrics.lost.Add(float64(len(open)))
	d.wake()
	return nil
}

// recorded is an attempt of the ledger that no worker holds, with its provider's capabilities;
// claimed is when it was claimed, by the database's clock. An unknown provider is assumed to send a
// receipt per part, so that the receipt of one part does not count for all.
//
// keyID is the id of the draw key that its submission key was made with. If this process does not
// have that key, the submission is neither repeated nor looked up.
func (d *Dispatcher) recorded(
	m *ledger.Message, a *ledger.Attempt, claimed time.Time, keyID string,
) *decide.Attempt {
	lane := d.routing.Load().Lane(m.Lane)
	attempt := decide.RecordedAttempt(m, a, &lane)
	can, known := d.capabilities(a.Channel)
	can.PartReceipts = can.PartReceipts || !known
	key, known := d.keys.KeyUnder(keyID, attempt.Seq, a.Number)
	account := ""
	if known {
		account = d.accountAt(a.Channel, claimed)
	}
	attempt.Inform(can, account, claimed, d.reach())
	attempt.Await = d.awaits(a.Channel)
	if !attempt.Repeats() {
		attempt.Submission.Key = key
	}
	return attempt
}

package ledger

// ConfirmIdentity is what happens at each interval.
func (l *Ledger) ConfirmIdentity() { l.confirmIdentity() }

package ledger

import "fmt"

// ConfirmIdentity is what happens at each interval.
func (l *Ledger) ConfirmIdentity() { l.confirmIdentity() }

// Held is how many connections for claims and settlements are in use.
func (l *Ledger) Held() int { return int(l.hot.Stat().AcquiredConns()) }

// LocksOfJoining are the statements by which a booking of a part keeps others from its group.
func LocksOfJoining(in Inbound) []string {
	g := in.group()
	return []string{
		fmt.Sprintf(`select pg_advisory_xact_lock_shared(%d)`, joining),
		fmt.Sprintf(`select pg_advisory_xact_lock(%d, %d)`, joiningGroup, g.lock()),
	}
}

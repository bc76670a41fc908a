package admission

import "time"

// Gate is the shared admission state of one channel.
type Gate struct {
	// Counters are the locked counters of the channel's limits, of all scopes.
	Counters []Counter
	Active   Active
	Ease     Ease
}

// Roll moves every counter into the window that contains now.
func (g *Gate) Roll(now time.Time, zone *time.Location) {
	for i := range g.Counters {
		g.Counters[i].Roll(now, zone)
	}
}

// Accounts are the channel's counters with its rate, without a policy.
func (g *Gate) Accounts(now time.Time) []Account {
	accounts, rate := make([]Account, len(g.Counters)), g.Ease.RateAt(now)
	for i := range g.Counters {
		accounts[i] = Account{Counter: &g.Counters[i], Rate: rate}
	}
	return accounts
}

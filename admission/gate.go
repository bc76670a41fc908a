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

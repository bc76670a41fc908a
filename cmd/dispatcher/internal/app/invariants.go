package app

import (
	"time"

	"dispatcher/config"
)

// leastGrace is how long repairs may take at least.
const leastGrace = 5 * time.Minute

// Grace is how long the repair of what a dead instance left behind may take: it counts as dead
// after a time, its submits are waited for, and recovery looks every few seconds.
func Grace(s *config.Settings) time.Duration {
	return max(leastGrace, 2*(s.DeadAfter+s.SendTimeout))
}

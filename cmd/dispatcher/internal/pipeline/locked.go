package pipeline

import (
	"context"
	"fmt"
	"time"
)

const (
	// lockedAfter is how long a claim may take before somebody is looked for who holds it up.
	lockedAfter = 3 * time.Second
	// lockedTimeout bounds that look.
	lockedTimeout = 5 * time.Second
)

// watchLocks reports sessions that hold up a claim which takes too long: those that have locked the
// row of a channel and are none of a dispatcher's. It returns what ends the watch.
func (d *Dispatcher) watchLocks(ctx context.Context) (end func() bool) {
	return time.AfterFunc(lockedAfter, func() {
		ctx, cancel := context.WithTimeout(ctx, lockedTimeout)
		defer cancel()
		locks, err := d.cfg.Ledger.ChannelLocks(ctx)
		if err != nil {
			return // the claim will say what is wrong with the database
		}
		for _, lock := range locks {
			d.trouble("channel lock", fmt.Errorf("the row of channel %s is locked by another session of the database, and nothing can be sent meanwhile: "+
				"end its transaction, or the session with: select pg_terminate_backend(%d)", lock.Channel, lock.PID))
		}
	}).Stop
}

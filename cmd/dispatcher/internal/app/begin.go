package app

import (
	"context"
	"fmt"
	"time"
)

// othersInterval is how often a process that pauses looks whether others still work.
const othersInterval = time.Second

// pauseAfterCrashes lets this process take messages: at once, or, when the processes before it
// crashed one after the other, after a pause. A process in a crash loop would otherwise join the
// consumer groups each time, take partitions and attempts from processes that work, and leave
// them behind. Without others that work there is no pause.
func (a *App) pauseAfterCrashes(ctx context.Context) error {
	if pause := a.identity.Pause; pause > 0 {
		over := time.After(pause)
		told := false
		for a.othersWork(ctx) {
			if !told {
				told = true
				a.log.Warn().Int("crashes", a.identity.EarlyEnds).Stringer("pause", pause).
					Msg("the processes before this one ended within seconds, without an orderly stop; taking no messages for now, while others do")
			}
			select {
			case <-over:
				close(a.begin)
				return nil
			case <-time.After(othersInterval):
			case <-ctx.Done():
				return nil
			}
		}
		if err := a.ledger.BeginWork(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("other processes do not see that this one takes messages")
		}
	}
	close(a.begin)
	return nil
}

// othersWork counts a database that does not answer as others that work: without it nothing could be sent anyway.
func (a *App) othersWork(ctx context.Context) bool {
	work, err := a.ledger.OthersWork(ctx, a.opts.Settings.DeadAfter)
	return work || err != nil
}

// mayBegin waits until this process may take messages; false means that ctx has ended.
func (a *App) mayBegin(ctx context.Context) bool {
	select {
	case <-a.begin:
		return true
	case <-ctx.Done():
		return false
	}
}

// memberName is the group instance id of this process: its successor after a crash has the same.
func (a *App) memberName() string { return fmt.Sprintf("dispatcher-%d", a.identity.Number) }

package app

import (
	"context"
	"time"

	"dispatcher/ledger"
)

// watch reloads whenever a routing is applied. The claim's own version check is what
// guarantees that none is missed; this makes a change quick on an idle process.
func (r *reloader) watch(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := r.ledger.WatchRouting(ctx, func() error {
			err := r.reload(ctx)
			if ctx.Err() != nil || ledger.Unavailable(err) {
				return err
			}
			pause = firstPause
			if err == nil {
				r.unusable.Store(nil)
				return nil
			}
			r.unusable.Store(&err)
			r.log.Error().Err(err).Msg("the new routing cannot be used here; this instance sends nothing until it can")
			return nil
		})
		if ctx.Err() != nil {
			break
		}
		r.report("routing watch", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// mendEvery is how often what could not be used is tried again.
const mendEvery = 10 * time.Second

// mend tries again what could not be used, until it can: a missing file appears without a new
// version of the routing.
func (r *reloader) mend(ctx context.Context) {
	ticker := time.NewTicker(mendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !r.toMend() {
			continue
		}
		if err := r.reload(ctx); err != nil && ctx.Err() == nil {
			r.report("routing", err)
		}
	}
}

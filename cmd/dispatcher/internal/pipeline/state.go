package pipeline

import (
	"context"
	"dispatcher/cmd/dispatcher/internal/decide"
	"fmt"
	"time"
)

// Intervals of what concerns all processes together.
const (
	releaseInterval = time.Second
	windowInterval  = time.Minute
	presentInterval = 5 * time.Second
	// longerRetention is how long past windows of an hour and of a day are kept: a year can be
	// compared with the one before.
	longerRetention = 400 * 24 * time.Hour
)

// gather tells the others what this process granted in the last whole minute, and learns what they
// did. The policies divide slots by it.
func (d *Dispatcher) gather(ctx context.Context) error {
	got, err := d.cfg.Ledger.Gather(ctx, d.minutes.last(d.now()), d.cfg.DeadAfter)
	if err != nil {
		return fmt.Errorf("gather the state of all instances: %w", err)
	}
	all := &decide.Instances{}
	for i := range got.Members {
		all.Join(got.Members[i].Region, got.Members[i].Counts)
	}
	d.instances.Store(all)
	return nil
}

// release gives back the active slots that nobody holds any more: those of dead instances, and
// those that were held for a receipt or a retry which did not come.
func (d *Dispatcher) release(ctx context.Context) error {
	freed, err := d.cfg.Ledger.ReleaseSlots(ctx, d.cfg.DeadAfter)
	d.cfg.Metrics.released.Add(float64(freed))
	if err != nil {
		return fmt.Errorf("release slots: %w", err)
	}
	d.Freed(int(freed))
	return nil
}

// dropWindows forgets windows of limits that are over for long.
func (d *Dispatcher) dropWindows(ctx context.Context) error {
	if _, err := d.cfg.Ledger.DropWindows(ctx, d.cfg.WindowRetention, longerRetention); err != nil {
		return fmt.Errorf("drop past windows: %w", err)
	}
	return nil
}

// present looks at limits and channels for the metrics.
func (d *Dispatcher) present(ctx context.Context) error {
	p, err := d.cfg.Ledger.Present(ctx)
	if err != nil {
		return fmt.Errorf("look at the limits: %w", err)
	}
	d.cfg.Metrics.limits.latest.Store(gaugeStateOf(&p, d.routing.Load(), d.instances.Load(), d.cfg.Region))
	return nil
}

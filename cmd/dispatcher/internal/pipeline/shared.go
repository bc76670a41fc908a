package pipeline

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// Intervals of work that concerns all processes together.
const (
	releaseInterval = time.Second
	windowInterval  = time.Minute
	presentInterval = 5 * time.Second
	// longerRetention is how long past windows of an hour and of a day are kept, so that a year can be
	// compared with the year before.
	longerRetention = 400 * 24 * time.Hour
)

// gather stores what this process granted in the last whole minute, and reads what the others
// granted; the policies divide slots by that. It also stores the state of this process for
// "dispatcher status".
func (d *Dispatcher) gather(ctx context.Context) error {
	got, err := d.cfg.Ledger.Instances.Gather(
		ctx, d.minutes.last(d.now()), d.state(), d.cfg.DeadAfter,
	)
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

// state is the state of this process.
func (d *Dispatcher) state() *ledger.InstanceState {
	routing := d.routing.Load()
	s := &ledger.InstanceState{
		Version:  routing.Version,
		Channels: make(map[string]ledger.InstanceChannel, len(routing.Channels)),
		Lanes:    make(map[string]ledger.InstanceLane, len(routing.Lanes)),
	}
	reasons, portions, now := d.unready(routing), routing.Portions(), time.Now()
	d.mu.RLock()
	for i := range routing.Channels {
		name := routing.Channels[i].Name
		c := ledger.InstanceChannel{Why: reasons[i]}
		if l := d.loads[name]; l != nil {
			c.Unanswered, c.Answers = l.inFlight.Load(), l.times.recent(now)
		}
		if w := d.workers[name]; w != nil {
			f := w.inFlight(now)
			f.portion = portions[i]
			c.Silent = f.fails(f.share(d.cfg.MaxUnsettled))
		}
		s.Channels[name] = c
	}
	for lane := range routing.Lanes {
		s.Lanes[lane] = ledger.InstanceLane{Paused: d.full[lane]}
	}
	d.mu.RUnlock()
	if d.cfg.Describe != nil {
		d.cfg.Describe(s, d.now())
	}
	return s
}

// release gives back the active slots that nobody holds any more: those of dead instances, and
// those that were held for a receipt or a retry which did not come.
func (d *Dispatcher) release(ctx context.Context) error {
	freed, err := d.cfg.Ledger.Settlements.ReleaseSlots(ctx, d.cfg.DeadAfter)
	d.cfg.Metrics.released.Add(float64(freed))
	if err != nil {
		return fmt.Errorf("release slots: %w", err)
	}
	d.Freed(int(freed))
	return nil
}

// dropWindows deletes windows of limits that ended longer ago than their retention.
func (d *Dispatcher) dropWindows(ctx context.Context) error {
	_, err := d.cfg.Ledger.Limits.DropWindows(ctx, d.cfg.WindowRetention, longerRetention)
	if err != nil {
		return fmt.Errorf("drop past windows: %w", err)
	}
	return d.dropIdleTenants(ctx)
}

// dropIdleTenants deletes the limits that were made for tenants that no longer send anything.
func (d *Dispatcher) dropIdleTenants(ctx context.Context) error {
	r := d.routing.Load()
	channels := make([]ledger.ChannelSpec, len(r.Channels))
	for i := range r.Channels {
		channels[i] = ledger.ChannelSpec{Name: r.Channels[i].Name, Limits: r.Channels[i].Limits}
	}
	_, err := d.cfg.Ledger.Limits.DropIdleTenants(ctx, r.Version, channels, r.Limits)
	return err
}

// present reads limits, channels and queues for the metrics.
func (d *Dispatcher) present(ctx context.Context) error {
	p, err := d.cfg.Ledger.Limits.Present(ctx)
	if err != nil {
		return fmt.Errorf("read the limits: %w", err)
	}
	d.cfg.Metrics.limits.latest.Store(
		gaugeStateOf(&p, d.routing.Load(), d.instances.Load(), d.cfg.Region),
	)
	queues, err := d.cfg.Ledger.Claims.Queues(ctx)
	if err != nil {
		return fmt.Errorf("count the queues: %w", err)
	}
	d.cfg.Metrics.queues.latest.Store(queueStateOf(queues, d.routing.Load().Lanes, p.Now))
	return nil
}

// minutes counts what this process granted, per channel and minute of the database's clock.
type minutes struct {
	mu      sync.Mutex
	at      time.Time                // guarded by mu; the minute that is counted now
	current map[string]ledger.Grants // guarded by mu
	before  map[string]ledger.Grants // guarded by mu; of the minute before at
}

// add counts what a claim granted. If the clock steps back, it goes on counting in the later
// minute.
func (m *minutes) add(now time.Time, channel string, granted ledger.Grants) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(now)
	m.current[channel] = m.current[channel].Plus(granted)
}

// last is what was granted in the last whole minute, by channel. The caller may keep it.
func (m *minutes) last(now time.Time) map[string]ledger.Grants {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(now)
	return maps.Clone(m.before)
}

// roll moves on to the minute that contains now.
func (m *minutes) roll(now time.Time) {
	at := admission.Minute.Start(now, time.UTC)
	if m.current != nil && !at.After(m.at) {
		return
	}
	m.before = map[string]ledger.Grants{}
	if m.current != nil && at.Sub(m.at) == time.Minute {
		m.before = m.current
	}
	m.at, m.current = at, map[string]ledger.Grants{}
}

const (
	// lockedAfter is how long a claim may take before a search for sessions that block it begins.
	lockedAfter = 3 * time.Second
	// lockedTimeout bounds that search.
	lockedTimeout = 5 * time.Second
	// frozenAfter is longer than any claim of a process that runs.
	frozenAfter = claimTimeout + 5*time.Second
)

// watchLocks reports sessions that block a slow claim: those that have locked the row of a channel
// and do not belong to a dispatcher. It ends those of frozen dispatchers. It returns a function
// that ends the watch.
func (d *Dispatcher) watchLocks(ctx context.Context) (end func() bool) {
	return time.AfterFunc(lockedAfter, func() {
		ctx, cancel := context.WithTimeout(ctx, lockedTimeout)
		defer cancel()
		if n, err := d.cfg.Ledger.EndFrozen(ctx, frozenAfter); err == nil && n > 0 {
			d.trouble("frozen session", fmt.Errorf("%d sessions of frozen processes held locks, and "+
				"were ended", n))
		}
		locks, err := d.cfg.Ledger.ChannelLocks(ctx)
		if err != nil {
			return // the claim itself will report the database
		}
		for _, lock := range locks {
			d.trouble("channel lock", fmt.Errorf("the row of channel %s is locked by another session of "+
				"the database, and nothing can be sent meanwhile: end its transaction, or the session "+
				"with: select pg_terminate_backend(%d)", lock.Channel, lock.PID))
		}
	}).Stop
}

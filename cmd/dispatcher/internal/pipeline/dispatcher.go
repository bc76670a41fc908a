// Package pipeline takes messages from a decoded Kafka record to a settled attempt.
//
//	Handle   plan, ask scoring functions, claim, hand over to the channel's worker
//	due      the same for rows that come due: waiting, scheduled, to be tried again
//	worker   waits for the release time and sends
//	settler  settles answers in batches
//	Run      the loops: due rows, heartbeat, recovery of what a lost instance left open
//
// All decisions are made in package decide. The pipeline does what blocks, retries or runs in the
// background, and bounds what this process has in flight. It knows neither Kafka nor SQL nor HTTP.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// Defaults of Config.
const (
	DefaultStateInterval   = 2 * time.Second
	DefaultWindowRetention = 7 * 24 * time.Hour
)

// Config is what a Dispatcher needs. All fields are required except Scorer, Region and those whose
// comment names a default or a meaning of nil.
type Config struct {
	Ledger *ledger.Ledger
	// Keys are the keys of the key file: the first makes new draws, the others serve messages that
	// were drawn under them.
	Keys []selector.Key
	// Scorer asks the scoring functions of routes; nil makes each count as unreachable.
	Scorer Scorer
	// Reload fetches the current routing and hands it to Dispatcher.Apply. It is called when a
	// claim finds that the routing has changed.
	Reload func(ctx context.Context) error
	// MaxUnsettled bounds the attempts claimed and not settled, and a claim's size.
	MaxUnsettled int
	// SendTimeout bounds the time from claim to answer. After it no byte of the attempt may leave.
	SendTimeout time.Duration
	// DeadAfter is how old a heartbeat may be before the instance counts as lost. One second earlier
	// the instance itself stops sending.
	DeadAfter time.Duration
	// Region is where this process runs, as it was registered in the ledger.
	Region string
	// StateInterval is how often this process reads, for the policies, what other instances have
	// granted; 0 is DefaultStateInterval.
	StateInterval time.Duration
	// WindowRetention is how long past windows of a second are kept for auditors; 0 is
	// DefaultWindowRetention.
	WindowRetention time.Duration
	Metrics         *Metrics
	// Describe adds to the state of this process what the pipeline does not know: its breakers and
	// Kafka. now is the database's clock. Nil adds nothing.
	Describe func(s *ledger.InstanceState, now time.Time)
	// Received is called with the number of each new message that has a first choice, after its
	// claim. It must not block. Nil counts nothing.
	Received func(number string)
	// Tracer records traced messages; nil records nothing.
	Tracer *tracing.Tracer
	// Begin is closed when due rows may be picked up; nil means at once.
	Begin <-chan struct{}
	// Trouble is called for every failure that is tried again. It must not block.
	Trouble func(where string, err error)
}

// Validate reports the first field that is missing or out of range.
func (c *Config) Validate() error {
	switch {
	case c.Ledger == nil || c.Reload == nil || c.Metrics == nil || c.Trouble == nil:
		return errors.New("pipeline: Ledger, Reload, Metrics and Trouble are required")
	case len(c.Keys) == 0:
		return errors.New("pipeline: at least one draw key is required")
	case c.MaxUnsettled < 1:
		return errors.New("pipeline: MaxUnsettled must be at least 1")
	case c.SendTimeout <= 0 || c.DeadAfter <= heartbeatMargin:
		return fmt.Errorf(
			"pipeline: SendTimeout must be above 0 and DeadAfter above %s", heartbeatMargin,
		)
	case c.StateInterval < 0 || c.WindowRetention < 0:
		return errors.New("pipeline: StateInterval and WindowRetention must not be below 0")
	}
	return nil
}

// firstLaneShare sets the part of MaxUnsettled, and of each channel's share, that is kept for the
// first lane: 1/firstLaneShare.
const firstLaneShare = 20

// Dispatcher runs the pipeline of one process.
type Dispatcher struct {
	cfg            Config
	slots          *slots
	firstLaneSlots *slots // only for small batches of the first lane
	open           *openAttempts
	settler        *settler
	keys           *References   // make the keys of submissions
	nudge          chan struct{} // wakes the due loop
	backlog        atomic.Bool   // whether rows are known to wait

	routing         atomic.Pointer[decide.Routing]
	clock           *clock
	commitLatencies commitLatencies
	// what all live processes granted; nil before the first read
	instances      atomic.Pointer[decide.Instances]
	minutes        minutes // what this process granted
	heartbeat      *heartbeat
	due            *schedule     // when the rows that this process has put off come due
	answers        scoreAnswers  // of scoring functions
	neededScopes   neededScopes  // scopes that count due rows
	wakeSet        wakeSet       // limits and channels with new free slots
	firstLaneWaits atomic.Bool   // whether rows of the first lane are known to wait
	asking         chan struct{} // one token for each claim that asks scoring functions about due rows

	handling sync.WaitGroup // calls of Handle
	deciding sync.Mutex     // held while a claim decides, so that no two of them see the same room

	mu      sync.RWMutex
	stopped bool                 // guarded by mu; true when nothing may be launched any more
	workers map[string]*worker   // guarded by mu; by channel name
	loads   map[string]*load     // guarded by mu; of every channel that this process has had, by name
	since   map[string]time.Time // guarded by mu; since when each channel has its account, by name
	full    map[string]bool      // guarded by mu; lanes that may not take more waiting messages
	closing sync.WaitGroup       // workers of removed channels on their way out

	shown map[string]bool // channels with a metric of their readiness; only countWaiting uses it
}

// New returns a Dispatcher that is ready once Apply has given it a routing.
func New(cfg Config) (*Dispatcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.StateInterval = cmp.Or(cfg.StateInterval, DefaultStateInterval)
	cfg.WindowRetention = cmp.Or(cfg.WindowRetention, DefaultWindowRetention)
	references, err := NewReferences(cfg.Keys)
	if err != nil {
		return nil, err
	}
	firstLane := cfg.MaxUnsettled / firstLaneShare
	d := &Dispatcher{
		cfg: cfg, keys: references, clock: newClock(), heartbeat: newHeartbeat(cfg.DeadAfter),
		due: newSchedule(), open: &openAttempts{},
		slots: newSlots(cfg.MaxUnsettled - firstLane), firstLaneSlots: newSlots(firstLane),
		nudge: make(chan struct{}, 1), asking: make(chan struct{}, maxAsking),
		workers: map[string]*worker{}, loads: map[string]*load{}, full: map[string]bool{},
	}
	d.settler = newSettler(d)
	return d, nil
}

// Apply makes routing the current one. channels holds a connected channel for each name that is new
// or whose connection has changed. The other channels keep their connections and their pauses.
// Channels that the routing no longer names are drained and closed in the background.
func (d *Dispatcher) Apply(routing *decide.Routing, channels map[string]provider.Channel) error {
	routing.Prepare() // before the lock: it is slow for many channels, and claims must not wait
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return errors.New("the dispatcher has been stopped")
	}
	for i := range routing.Channels {
		if name := routing.Channels[i].Name; channels[name] == nil && d.workers[name] == nil {
			return fmt.Errorf("channel %s has no connection", name)
		}
	}
	next := make(map[string]*worker, len(routing.Channels))
	for i := range routing.Channels {
		c := &routing.Channels[i]
		if channel := channels[c.Name]; channel != nil {
			next[c.Name] = newWorker(
				c, channel, &d.cfg, d.heartbeat, d.loadOf(c.Name), d.settler.add,
			)
		} else {
			next[c.Name] = d.workers[c.Name]
		}
	}
	if before := d.routing.Load(); before != nil {
		routing.KeepLanes(before)
	}
	gone := maps.Clone(d.workers)
	maps.DeleteFunc(gone, func(name string, w *worker) bool { return next[name] == w })
	d.workers = next
	d.since = d.accountsSince(routing)
	d.routing.Store(routing)
	d.cfg.Metrics.version.Set(float64(routing.Version))
	d.cfg.Metrics.begin(routing)
	for _, w := range gone {
		d.closing.Go(func() { d.retire(w) })
	}
	return nil
}

// accountsSince is since when each channel of a new routing has certainly had its account. The
// caller holds mu.
func (d *Dispatcher) accountsSince(routing *decide.Routing) map[string]time.Time {
	since := make(map[string]time.Time, len(routing.Channels))
	for i := range routing.Channels {
		name := routing.Channels[i].Name
		since[name] = routing.Since
		if before := d.routing.Load(); before != nil && before.Channel(name) >= 0 &&
			before.Channels[before.Channel(name)].Account == routing.Channels[i].Account {
			since[name] = d.since[name]
		}
	}
	return since
}

// loadOf is the load of a channel, which is kept when the connection changes. The caller holds mu.
func (d *Dispatcher) loadOf(channel string) *load {
	if d.loads[channel] == nil {
		d.loads[channel] = &load{}
	}
	return d.loads[channel]
}

// retire closes the worker of a channel that is no longer routed to.
func (d *Dispatcher) retire(w *worker) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.SendTimeout)
	defer cancel()
	if err := w.close(ctx); err != nil {
		d.cfg.Trouble("close", fmt.Errorf("channel %s: %w", w.name, err))
	}
}

// Batch is how many jobs a call of Handle should get, at most: a quarter of the slots, so that
// messages of other calls are written, sent and settled meanwhile. Handle takes more.
func (d *Dispatcher) Batch() int { return max(d.slots.size()/4, 1) }

// Paused reports whether a lane's topics must not be read now, because too many of its messages
// wait.
func (d *Dispatcher) Paused(lane string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.full[lane]
}

// Unready reports, per channel of the current routing, why this process cannot send on it now;
// empty when it can.
func (d *Dispatcher) Unready() map[string]string {
	routing := d.routing.Load()
	reasons := d.unready(routing)
	out := make(map[string]string, len(reasons))
	for i, why := range reasons {
		out[routing.Channels[i].Name] = why
	}
	return out
}

// unready has one entry per channel of routing.
func (d *Dispatcher) unready(routing *decide.Routing) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	now := time.Now()
	reasons := make([]string, len(routing.Channels))
	for i := range routing.Channels {
		reasons[i] = decide.Removed
		if w := d.workers[routing.Channels[i].Name]; w != nil {
			reasons[i] = w.unready(now)
		}
	}
	return reasons
}

// now is the database's clock as last read, plus the time that has passed since.
func (d *Dispatcher) now() time.Time { return d.clock.now() }

// launch hands claimed attempts to their workers, with release times by this process's clock. An
// attempt whose channel has been removed, or has other settings than the claim decided with, is
// settled as not sent.
func (d *Dispatcher) launch(c *claim) {
	for _, a := range c.attempts {
		a.leave, a.latest = d.clock.span(&a.Release)
		a.Submission.Deadline = d.clock.deadline(a.Expires)
	}
	spread(c.attempts, time.Now())
	d.open.committed(c.open, c.attempts)
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.stopped {
		return // too late: the attempts stay open, and another instance recovers them
	}
	byChannel := map[string][]*openAttempt{}
	for _, a := range c.attempts {
		byChannel[a.Channel] = append(byChannel[a.Channel], a)
	}
	for channel, attempts := range byChannel {
		decided := c.plan.Routing.Channels[c.plan.Routing.Channel(channel)].Account
		if w := d.workers[channel]; w != nil && d.account(channel) == decided {
			w.put(attempts...)
			continue
		}
		for _, a := range attempts {
			result := decide.NotSent(decide.CodeStopping)
			a.answer(d.settler.add, &result)
		}
	}
}

// Freed wakes messages that wait for an active slot, because slots have come free. It does not
// block.
func (d *Dispatcher) Freed(slots int) {
	r := d.routing.Load()
	if r == nil || slots <= 0 {
		return
	}
	for i := range r.Channels {
		d.wakeSet.add(r.Channels[i].Name, slots)
	}
	d.wake()
}

// wake makes the due loop run at once.
func (d *Dispatcher) wake() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// Stop waits for attempts in flight, settles as unsent what has not left, closes the channels and
// writes the last outcomes. Handle must not be called any more and Run must have ended. A Handle
// that still runs is waited for, so its context should have ended. What is still open when ctx ends
// is recovered as Unknown by another instance.
func (d *Dispatcher) Stop(ctx context.Context) error {
	handled := make(chan struct{})
	go func() { d.handling.Wait(); close(handled) }()
	select {
	case <-handled:
	case <-ctx.Done(): // a claim may still run; the ledger's Close ends it
	}
	d.mu.Lock()
	d.stopped = true
	workers := d.workers
	d.workers = map[string]*worker{}
	d.mu.Unlock()
	for _, w := range workers {
		d.closing.Go(func() { d.retire(w) })
	}
	d.closing.Wait()
	return d.settler.stop(ctx)
}

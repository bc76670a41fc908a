package pipeline

import (
	"context"
	"errors"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// claimTimeout bounds one claim, including the wait for a connection.
const claimTimeout = 15 * time.Second

// Pauses between tries of an operation that failed.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// leastOlder is how many older rows of the first lane a claim takes along with a few new ones.
const leastOlder = 4

// Handle makes the jobs durable and starts to send them. When it returns nil, every job has its row
// (sent, waiting or dead) or is a known duplicate. It blocks while the process has as much in
// flight as it may, and while PostgreSQL is away. The only error is that of ctx.
//
// A claim stores as many of the first jobs as get slots and room on their channels, at least one,
// and is tried again until it succeeds. When the last claim has decided, Handle calls next, unless
// it is nil: what comes after these jobs may then be handled while they are still being written.
func (d *Dispatcher) Handle(ctx context.Context, jobs []decide.Job, next func()) error {
	d.handling.Add(1)
	defer d.handling.Done()
	// again are later jobs with the same id. The ledger then finds them to be duplicates or conflicts.
	jobs, again := distinct(jobs)
	pause, alone := firstPause, false
	for len(jobs) > 0 {
		batch, due := jobs[:min(len(jobs), d.slots.size())], 0
		if !alone {
			due = d.dueShare(batch)
		}
		c, err := d.prepare(ctx, batch, due)
		if err == nil {
			if len(c.plan.Jobs) == len(jobs) && len(again) == 0 {
				c.next = next
			}
			err = d.claim(ctx, c)
		}
		stored := 0
		switch {
		case err == nil:
			stored = len(c.plan.Jobs)
			d.start(c)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, decide.ErrStaleRouting):
			if err = d.cfg.Reload(ctx); err == nil {
				continue
			}
		case ledger.Unstorable(err) && due > 0:
			alone = true // the faulty row may be a due one: try the jobs alone
		case ledger.Unstorable(err) && !isDead(batch):
			d.trouble("claim", err)
			if err = d.isolate(ctx, batch); err != nil {
				return err
			}
			stored = len(batch)
		}
		if err != nil {
			d.trouble("claim", err)
			if !ledger.Pause(ctx, pause) {
				return ctx.Err()
			}
			pause = min(2*pause, longestPause)
			continue
		}
		pause, alone = firstPause, false
		if jobs = jobs[stored:]; len(jobs) == 0 {
			jobs, again = distinct(again)
		}
	}
	return nil
}

// distinct separates the jobs whose id occurs earlier in the same batch.
func distinct(jobs []decide.Job) (first, again []decide.Job) {
	seen := make(map[string]struct{}, len(jobs))
	for i := range jobs {
		id := jobs[i].Message.ID
		if _, twice := seen[id]; twice && id != "" {
			if again == nil {
				first = append(make([]decide.Job, 0, len(jobs)), jobs[:i]...)
			}
			again = append(again, jobs[i])
			continue
		}
		seen[id] = struct{}{}
		if again != nil {
			first = append(first, jobs[i])
		}
	}
	if again == nil {
		return jobs, nil
	}
	return first, again
}

// isolate finds the job that the ledger cannot store by halving the batch, so that one record does
// not stop its partition. That job becomes a dead letter.
func (d *Dispatcher) isolate(ctx context.Context, jobs []decide.Job) error {
	if len(jobs) > 1 {
		half := len(jobs) / 2
		return errors.Join(d.Handle(ctx, jobs[:half], nil), d.Handle(ctx, jobs[half:], nil))
	}
	dead := jobs[0]
	dead.Message = envelope.Message{}
	dead.Problem = &envelope.Problem{
		Code: envelope.Unstorable, Detail: "the ledger refused to store it",
	}
	return d.Handle(ctx, []decide.Job{dead}, nil)
}

// isDead reports whether the jobs are one record that isolate made dead. If even its dead row
// cannot be written, the record is not the cause, and it is tried again.
func isDead(jobs []decide.Job) bool {
	return len(jobs) == 1 && jobs[0].Problem != nil && jobs[0].Problem.Code == envelope.Unstorable
}

// dueShare is how many due rows a claim takes along with new jobs, so that older messages get slots
// of a new window before new ones. A small batch of the first lane takes about as many older rows
// of its lane. Then the claim stays small and fits the slots that are kept for the first lane.
func (d *Dispatcher) dueShare(jobs []decide.Job) int {
	switch small := d.firstLane(jobs) && len(jobs) <= d.firstLaneSlots.size(); {
	case !d.backlog.Load(), small && !d.firstLaneWaits.Load():
		return 0
	case small:
		return min(max(len(jobs), leastOlder), d.firstLaneSlots.size()-len(jobs))
	}
	return min(d.slots.size()-len(jobs), d.Batch())
}

// firstLane reports whether the jobs are of the lane that goes before all others.
func (d *Dispatcher) firstLane(jobs []decide.Job) bool {
	return len(jobs) > 0 && d.routing.Load().Lane(jobs[0].Lane).Order == 0
}

// laneOf is the lane of a batch, empty for one without jobs.
func laneOf(jobs []decide.Job) string {
	if len(jobs) == 0 {
		return ""
	}
	return jobs[0].Lane
}

// claim is the state of one claim of jobs and due rows.
type claim struct {
	plan *decide.Plan // of the jobs
	due  int          // how many due rows it has slots for
	// unready is why this process cannot send on a channel, by its place in the routing.
	unready []string
	slots   *slots // where its slots come from
	held    int    // how many of them it holds
	next    func() // called when it has decided; may be nil
	request ledger.Claim

	// Set by Dispatcher.claim.
	open     *openClaim
	rooms    []decide.Room // by channel
	decided  *decide.Decided
	attempts []*openAttempt
}

// prepare plans the jobs, asks the scoring functions about them where a route has one, and waits
// for slots, also for up to due older rows.
func (d *Dispatcher) prepare(ctx context.Context, jobs []decide.Job, due int) (*claim, error) {
	routing := d.routing.Load()
	dueScopes := d.neededScopes.open(time.Now())
	c := &claim{plan: decide.NewPlan(routing, d.cfg.Keys, d.now(), jobs)}
	if err := d.askAboutJobs(ctx, c); err != nil {
		return nil, err
	}
	c.unready = d.unready(routing)
	var err error
	if c.slots, c.held, err = d.acquire(ctx, c, due); err != nil {
		return nil, err
	}
	if c.slots == d.firstLaneSlots && len(jobs) > c.slots.size() {
		due = 0 // the due rows may be of other lanes
	}
	c.due = c.plan.Share(c.held, due)
	c.request = c.plan.Request(c.due, dueScopes)
	c.request.Except = d.answers.open()
	return c, nil
}

// claim locks, decides and commits. The claim decides with the room that its channels have now, and
// its attempts count as in flight before the next claim decides. It also records the database's
// clock and how long the write took. On error it gives the slots back.
func (d *Dispatcher) claim(ctx context.Context, c *claim) (err error) {
	defer func() {
		if err != nil {
			c.unreserve()
			c.slots.release(c.held)
		}
	}()
	// The transaction must not be cut off. ctx may end for a rebalance while this process goes on, and
	// it would not know whether a running commit succeeded.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	began, lane := time.Now(), laneOf(c.plan.Jobs)
	snapshot := &decide.Snapshot{
		CommitLatency: d.commitLatencies.get(lane, began, leastLatencyOf(c.plan.Routing)),
		Worker:        admission.Worker{ID: d.cfg.Ledger.Instances.ID(), Region: d.cfg.Region},
		Instances:     d.instances.Load(), ReceiptsSince: d.heartbeat.receiptsSince(),
	}
	ctx, span := d.traceClaim(ctx, c)
	defer func() { span.End(err) }()
	defer d.watchLocks(ctx)()
	tx, err := d.cfg.Ledger.Claims.Lock(ctx, c.request)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	seen := tx.Seen()
	d.clock.read(seen.Now, began, time.Now())
	read := d.clock.here(seen.Now) // when the database read its clock
	snapshot.Answers = d.answers.known()
	d.deciding.Lock()
	snapshot.Unready = d.unready(c.plan.Routing)
	snapshot.Rooms, _ = d.rooms(c.plan.Routing)
	decided, err := decide.Batch(c.plan, seen, snapshot)
	if err == nil {
		c.rooms, c.decided, c.attempts = snapshot.Rooms, decided, opened(decided.Attempts, began)
		d.reserve(c)
	}
	d.deciding.Unlock()
	if err != nil {
		return err
	}
	if c.next != nil {
		c.next()
	}
	decisions := ledger.Decisions{Each: decided.Decisions, Notices: decided.Notices()}
	c.open = d.open.begin(seen.Now)
	if err := tx.Commit(ctx, decisions); err != nil {
		if !errors.Is(err, ledger.ErrOutcomeUnknown) {
			d.open.committed(c.open, nil)
		}
		return err
	}
	wrote := time.Now()
	if len(c.attempts) > 0 { // a claim without attempts writes less
		d.commitLatencies.took(lane, wrote.Sub(read), wrote)
	}
	d.answers.used(decided)
	d.neededScopes.note(decided.Needed, wrote)
	d.cfg.Metrics.claimed(c, time.Since(began), seen.LockWait)
	d.traceDecisions(c, span, began)
	return nil
}

// start gives the attempts of a committed claim to their workers, and gives back the slots that no
// attempt uses.
func (d *Dispatcher) start(c *claim) {
	c.slots.release(c.held - len(c.attempts))
	d.complete(c)
	d.launch(c)
	d.noteWaiting(c)
	if d.cfg.Received != nil {
		c.decided.Received(d.cfg.Received)
	}
	if len(c.plan.Jobs) > 0 && (len(c.decided.Unasked) > 0 || c.decided.Unlocked) {
		d.wake() // the due loop handles them, so that the partition does not wait
	}
}

// complete sets the slots that the attempts hold, the capabilities of their providers and the keys
// under which they are submitted. It also counts them for policies that depend on what was granted.
func (d *Dispatcher) complete(c *claim) {
	now, routing := c.decided.Now, c.plan.Routing
	for _, a := range c.attempts {
		a.slots = c.slots
		can, _ := d.capabilities(a.Channel)
		a.Inform(can, d.account(a.Channel), now, d.reach())
		if !can.Receipts {
			a.Await = 0
		}
		if !a.Repeats() {
			a.Submission.Key = d.keys.Key(a.Seq, a.Submission.Attempt)
		}
		if decide.Divides(routing.Channels[routing.Channel(a.Channel)].Policy) {
			granted := ledger.Grants{Messages: 1, Segments: int64(a.Segments), Micros: a.Price}
			d.minutes.add(now, a.Channel, granted)
		}
	}
}

// reach is how long after its claim an attempt may still leave.
func (d *Dispatcher) reach() time.Duration { return d.cfg.SendTimeout + recoveryMargin }

// acquire blocks until a claim has slots, at most one for each message that it would send. A batch
// of the first lane may also use the slots kept for it, see acquireEither. First, acquire drops the
// jobs whose channels have no room. It waits up to gatherTime for all slots that are not stuck,
// because a large claim costs less per message.
func (d *Dispatcher) acquire(
	ctx context.Context, c *claim, due int,
) (from *slots, got int, err error) {
	stuck, err := d.awaitRoom(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	n, enough := c.plan.Wanted()+due, max(d.slots.size()-stuck, 1)
	if n > 0 && d.firstLane(c.plan.Jobs) {
		return acquireEither(ctx, n, enough, d.slots, d.firstLaneSlots)
	}
	got, err = d.slots.acquire(ctx, n, enough)
	return d.slots, got, err
}

// noteWaiting records that rows wait, until the next count, and when they come due.
func (d *Dispatcher) noteWaiting(c *claim) {
	for i := range c.decided.Decisions {
		decision := &c.decided.Decisions[i]
		if decision.State == ledger.Accepted {
			d.due.add(decision.NextAt, c.decided.Now)
		}
		if decision.State == ledger.Waiting {
			d.backlog.Store(true)
			if c.decided.Tasks[i].Lane.Order == 0 {
				d.firstLaneWaits.Store(true)
			}
			d.due.add(decision.NextAt, c.decided.Now)
			d.noteFull(decision)
		}
	}
}

func (d *Dispatcher) trouble(where string, err error) {
	d.cfg.Metrics.trouble.WithLabelValues(where).Inc()
	d.cfg.Trouble(where, err)
}

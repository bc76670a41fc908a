package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// openAttempt is an attempt between its claim and its settlement: durable, counted in every limit,
// and assigned to one channel.
type openAttempt struct {
	*decide.Attempt

	claim *openClaim      // set by openAttempts.committed
	slots *slots          // it holds one of these
	load  *load           // of its channel; it counts there until it is answered
	until *sharedDeadline // set by worker.put

	// claimed is this process's clock, with its monotonic reading, before the claim began. After
	// claimed + Config.SendTimeout no byte may leave, because another instance may have declared the
	// attempt lost.
	claimed time.Time
	// leave and latest are its release time by this process's clock: the attempt may leave from leave
	// on, and before latest unless that is zero. See launch.
	leave, latest time.Time
}

// answered is an attempt together with its outcome.
type answered struct {
	attempt *openAttempt
	result  provider.Result
}

// answer hands the result to the settler. The attempt no longer counts as in flight on its channel.
func (a *openAttempt) answer(to func(answered), result *provider.Result) {
	a.load.release()
	a.until.done()
	to(answered{attempt: a, result: *result})
}

// sharedDeadline is the context under which the attempts of one claim and channel are sent. It ends
// when all of them are answered, or at their deadline. A context for each would cost a timer and
// four allocations.
type sharedDeadline struct {
	ctx  context.Context //nolint:containedctx // It is handed to the senders.
	end  context.CancelFunc
	left atomic.Int32 // attempts without an answer
}

func newSharedDeadline(at time.Time, attempts int) *sharedDeadline {
	d := &sharedDeadline{}
	d.ctx, d.end = context.WithDeadline(context.Background(), at)
	d.left.Store(int32(attempts)) //nolint:gosec // At most Config.MaxUnsettled.
	return d
}

// done counts an answer; an attempt that no worker took has no deadline.
func (d *sharedDeadline) done() {
	if d != nil && d.left.Add(-1) == 0 {
		d.end()
	}
}

// late reports whether its release time has passed.
func (a *openAttempt) late(now time.Time) bool {
	return !a.latest.IsZero() && !now.Before(a.latest)
}

// opened makes open attempts of those that a claim has decided.
func opened(attempts []decide.Attempt, claimed time.Time) []*openAttempt {
	all, out := make([]openAttempt, len(attempts)), make([]*openAttempt, len(attempts))
	for i := range attempts {
		all[i] = openAttempt{Attempt: &attempts[i], claimed: claimed}
		out[i] = &all[i]
	}
	return out
}

// openAttempts counts the attempts of this process that are claimed and not settled. Its claims
// begin before their commit: the answer to one may be missing for minutes, and recovery looks for
// the attempts of a process from its oldest claim on.
type openAttempts struct {
	mu     sync.Mutex
	claims []*openClaim // guarded by mu
	open   atomic.Int64 // changed with mu held
}

// openClaim counts what is still open of one claim: its attempts, and its commit.
type openClaim struct {
	at   time.Time // the database's clock in the claim
	open int
}

// begin registers a claim that is about to be committed.
func (o *openAttempts) begin(at time.Time) *openClaim {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &openClaim{at: at, open: 1}
	o.claims = append(o.claims, c)
	return c
}

// committed registers the attempts of a claim that was committed; none if it was rolled back.
func (o *openAttempts) committed(c *openClaim, attempts []*openAttempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.open += len(attempts) - 1
	o.open.Add(int64(len(attempts)))
	for _, a := range attempts {
		a.claim = c
	}
	o.forget()
}

// leaveOpen keeps the claim of an attempt open until this process ends. Its outcome could not be
// written, so the heartbeat must keep reporting an open attempt of that time.
func (o *openAttempts) leaveOpen(a *openAttempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.claim.open++
}

// settled removes attempts.
func (o *openAttempts) settled(batch []answered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range batch {
		a.attempt.claim.open--
	}
	o.open.Add(-int64(len(batch)))
	o.forget()
}

// forget removes the claims of which nothing is open. mu is held.
func (o *openAttempts) forget() {
	keep := o.claims[:0]
	for _, c := range o.claims {
		if c.open > 0 {
			keep = append(keep, c)
		}
	}
	clear(o.claims[len(keep):])
	o.claims = keep
}

// count is how many attempts are open.
func (o *openAttempts) count() int { return int(o.open.Load()) }

// oldest is the database's time of the oldest open claim; zero when nothing is open.
func (o *openAttempts) oldest() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	var oldest time.Time
	for _, c := range o.claims {
		if oldest.IsZero() || c.at.Before(oldest) {
			oldest = c.at
		}
	}
	return oldest
}

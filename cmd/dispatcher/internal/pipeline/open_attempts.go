package pipeline

import (
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// openAttempt is an attempt between its claim and its settlement: durable, counted in every limit,
// and assigned to one channel.
type openAttempt struct {
	*decide.Attempt

	claim *openClaim // set by openAttempts
	slots *slots     // from which it holds one
	load  *load      // of its channel; it counts there until it is answered

	// claimed is this process's clock, with its monotonic reading, before the claim began. After
	// claimed + Config.SendTimeout no byte may leave, because another instance may have declared the
	// attempt lost.
	claimed time.Time
	// leave and latest are its release time by this process's clock: it leaves not before leave, and
	// before latest unless that is zero. See launch.
	leave, latest time.Time
}

// answered is an attempt together with its outcome.
type answered struct {
	attempt *openAttempt
	result  provider.Result
}

// answer hands the result to the settler. The attempt no longer counts as in flight on its channel.
func (f *openAttempt) answer(to chan<- answered, result *provider.Result) {
	f.load.release()
	to <- answered{attempt: f, result: *result}
}

// late reports whether its release time has passed.
func (f *openAttempt) late(now time.Time) bool {
	return !f.latest.IsZero() && !now.Before(f.latest)
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

// openAttempts counts the attempts of this process that are claimed and not settled.
type openAttempts struct {
	mu     sync.Mutex
	claims []*openClaim // guarded by mu, ascending by at
	open   int          // guarded by mu
}

// openClaim counts what is still open of one claim.
type openClaim struct {
	at   time.Time // the database's clock in the claim
	open int
}

// add registers the attempts of one claim.
func (i *openAttempts) add(at time.Time, attempts []*openAttempt) {
	if len(attempts) == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	c := &openClaim{at: at, open: len(attempts)}
	i.claims = append(i.claims, c)
	i.open += len(attempts)
	for _, f := range attempts {
		f.claim = c
	}
}

// pin keeps the claim of an attempt open for good. Its outcome could not be written, so the
// heart-beat must keep reporting an open attempt of that time.
func (i *openAttempts) pin(f *openAttempt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f.claim.open++
}

// settled removes attempts.
func (i *openAttempts) settled(batch []answered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range batch {
		a.attempt.claim.open--
	}
	i.open -= len(batch)
	keep := i.claims[:0]
	for _, c := range i.claims {
		if c.open > 0 {
			keep = append(keep, c)
		}
	}
	clear(i.claims[len(keep):])
	i.claims = keep
}

// count is how many attempts are open.
func (i *openAttempts) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open
}

// oldest is the database's time of the oldest open claim; zero when nothing is open.
func (i *openAttempts) oldest() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	var oldest time.Time
	for _, c := range i.claims {
		if oldest.IsZero() || c.at.Before(oldest) {
			oldest = c.at
		}
	}
	return oldest
}

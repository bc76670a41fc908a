package smpp

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool assigns the window slots of all bound sessions. A Send takes the slots for all parts of its
// message at once, from the least loaded session that has enough, or waits. If messages started
// with fewer slots, a full window would release the remaining parts of many messages at once, long
// after the second in which the limit counted them. Waiters are served in order, so that long
// messages are not overtaken forever.
// Lock order: session.mu before pool.mu.
type pool struct {
	window int
	// probe is the pause between two messages to an unhealthy session; see slots.unhealthy.
	probe time.Duration
	spare sync.Pool // of *waiter

	mu        sync.Mutex
	sessions  []*session // bound and able to submit
	unhealthy int        // of sessions
	waiting   waitList   // for a slot of any session
	sends     int        // messages that hold or held a slot and are not done
	closed    bool
	idle      chan struct{} // closed once closed is set and sends is zero
	why       string        // the bounded word while sessions is empty
	bound     bool          // there was a session once
}

// slots is the pool's part of a session; guarded by pool.mu.
type slots struct {
	joined bool
	used   int
	limit  int // bounds used; zero stands for pool.window
	// answered is the call.order of the latest submit with a good answer.
	answered uint64
	// faults is how many later submits failed, and firstFault and lastFault are the earliest and
	// the latest of them.
	faults                uint64
	firstFault, lastFault uint64
	unhealthy             bool      // the peer refuses the submits or does not answer them
	probeAt               time.Time // when an unhealthy session gets its next message
	waiting               waitList  // parts of messages that started on this session
}

func newPool(window int) *pool {
	return &pool{
		window: window, probe: DefaultResponseTimeout, why: whyConnecting,
		idle: make(chan struct{}),
	}
}

// acquire takes n slots of one session, at most a window, for a message that must start before
// latest; zero sets no bound. On failure it returns nil and a bounded reason. After every success
// the caller calls done once.
func (p *pool) acquire(ctx context.Context, n int, latest time.Time) (*session, string) {
	p.mu.Lock()
	if why := p.unusable(); why != "" {
		p.mu.Unlock()
		return nil, why
	}
	if p.waiting.first() == nil {
		if s := p.leastLoaded(n); s != nil {
			p.start(s, n)
			p.mu.Unlock()
			return s, ""
		}
	}
	return p.wait(ctx, &p.waiting, n, latest)
}

// acquireOn takes a slot of one session for a further part of a message, which must leave before
// latest; zero sets no bound. It fails when the session has ended or ctx ends first.
func (p *pool) acquireOn(ctx context.Context, s *session, latest time.Time) (ok bool, why string) {
	p.mu.Lock()
	if !s.slots.joined {
		p.mu.Unlock()
		return false, whyUnbound
	}
	if p.fits(s, 1) {
		s.slots.used++
		p.mu.Unlock()
		return true, ""
	}
	granted, why := p.wait(ctx, &s.slots.waiting, 1, latest)
	return granted != nil, why
}

// release frees slots of s that were not used.
func (p *pool) release(s *session, n int) { p.settle(s, n, noSignal, 0) }

// settle frees slots of s and gives them to the longest waiting, parts of started messages first.
// The signal is what the end of the submit with that order says about s.
func (p *pool) settle(s *session, n int, w submitSignal, order uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.slots.used -= n
	if !s.slots.joined {
		return
	}
	if p.record(s, w, order) || p.unhealthy > 0 {
		p.grantAll() // the first waiter may be due to probe an unhealthy bind
		return
	}
	p.grant(s)
}

// start takes n slots of s for a new message; mu is held. If the message probes an unhealthy
// session, the next probe follows after a pause.
func (p *pool) start(s *session, n int) {
	if p.probing(s) {
		s.slots.probeAt = time.Now().Add(p.probe)
	}
	s.slots.used += n
	p.sends++
}

// done ends a message that acquire started.
func (p *pool) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends--
	p.checkIdle()
}

// add makes a bound session available.
func (p *pool) add(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.slots.joined, p.bound = true, true
	p.sessions = append(p.sessions, s)
	p.grant(s)
}

// remove takes a session out and refuses its waiters. It is idempotent. Slots in use are still
// released one by one.
func (p *pool) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.slots.joined {
		return
	}
	s.slots.joined = false
	if s.slots.unhealthy {
		p.unhealthy--
	}
	p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == s })
	p.why = whyUnbound
	refuse(&s.slots.waiting)
	if len(p.sessions) == 0 {
		refuse(&p.waiting)
	}
	p.grantAll() // the other sessions may take new messages now
}

// failed records that a bind could not be made, which is why there may be no session.
func (p *pool) failed(refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case refused:
		p.why = whyBindRefused
	case p.bound:
		p.why = whyUnbound
	default:
		p.why = whyConnecting
	}
}

// close starts no further messages. Those in flight continue.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	refuse(&p.waiting)
	p.checkIdle()
}

// ready reports whether a message could start, and if not, why.
func (p *pool) ready() (bool, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := p.unusable()
	return why == "", why
}

func (p *pool) unusable() string {
	switch {
	case p.closed:
		return whyClosed
	case len(p.sessions) == 0:
		return p.why
	default:
		return ""
	}
}

// leastLoaded returns nil if no session that takes new messages has n free slots. An unhealthy
// session whose probe is due goes first.
func (p *pool) leastLoaded(n int) *session {
	now := p.now()
	var best *session
	for _, s := range p.sessions {
		if !p.fits(s, n) || !p.takesNew(s, now) {
			continue
		}
		if p.probing(s) {
			return s
		}
		if best == nil || s.slots.used < best.slots.used {
			best = s
		}
	}
	return best
}

// takeSpare takes a slot that no submit needs now, of a healthy session, for another request. The
// error is errNoBind or errNoSlot. After a success the caller calls release.
func (p *pool) takeSpare() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sessions) == 0 {
		return nil, errNoBind
	}
	for _, s := range p.sessions {
		if p.waiting.first() == nil && s.slots.waiting.first() == nil && !s.slots.unhealthy &&
			p.fits(s, 1) {
			s.slots.used++
			return s, nil
		}
	}
	return nil, errNoSlot
}

func (p *pool) checkIdle() {
	if p.closed && p.sends == 0 {
		close(p.idle)
	}
}

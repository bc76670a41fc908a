package smpp

import (
	"context"
	"slices"
	"sync"
)

// pool hands out the window slots of all bound sessions: a Send takes one of the
// least loaded session, or waits in line while every window is full. Nobody waits
// while a slot is free.
//
// Lock order: session.mu before pool.mu.
type pool struct {
	window int
	spare  sync.Pool // of *waiter

	mu       sync.Mutex
	sessions []*session // bound and able to submit
	waiting  waitList   // for a slot of any session
	sends    int        // messages that hold or held a slot and are not done
	closed   bool
	idle     chan struct{} // closed once closed is set and sends is zero
	why      string        // the bounded word while sessions is empty
	bound    bool          // there was a session once
}

// slots is the part of a session that belongs to the pool; guarded by pool.mu.
type slots struct {
	joined  bool
	used    int
	waiting waitList // parts of messages that started on this session
}

func newPool(window int) *pool {
	return &pool{window: window, why: whyConnecting, idle: make(chan struct{})}
}

// acquire takes a slot of any session for a message that starts. Without one it
// returns nil and the bounded reason. Every success is followed by one leave.
func (p *pool) acquire(ctx context.Context) (*session, string) {
	p.mu.Lock()
	if why := p.unusable(); why != "" {
		p.mu.Unlock()
		return nil, why
	}
	if s := p.leastLoaded(); s != nil {
		s.slots.used++
		p.sends++
		p.mu.Unlock()
		return s, ""
	}
	return p.wait(ctx, &p.waiting)
}

// acquireOn takes a slot of one session for a further part of a message. It fails
// when the session has ended or ctx ends first.
func (p *pool) acquireOn(ctx context.Context, s *session) (ok bool, why string) {
	p.mu.Lock()
	if !s.slots.joined {
		p.mu.Unlock()
		return false, whyUnbound
	}
	if s.slots.used < p.window {
		s.slots.used++
		p.mu.Unlock()
		return true, ""
	}
	granted, why := p.wait(ctx, &s.slots.waiting)
	return granted != nil, why
}

// wait is called with mu held and releases it.
func (p *pool) wait(ctx context.Context, list *waitList) (*session, string) {
	w, ok := p.spare.Get().(*waiter)
	if !ok {
		w = &waiter{grant: make(chan *session, 1)}
	}
	defer p.spare.Put(w)
	list.push(w)
	p.mu.Unlock()
	select {
	case s := <-w.grant:
		if s != nil {
			return s, ""
		}
	case <-ctx.Done():
		p.giveUp(list, w)
		return nil, whyWindow
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.unusable(); why != "" {
		return nil, why
	}
	return nil, whyUnbound
}

// giveUp takes w out of its list, or gives back what it was granted meanwhile.
func (p *pool) giveUp(list *waitList, w *waiter) {
	p.mu.Lock()
	if w.listed {
		list.remove(w)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	s := <-w.grant
	if s == nil {
		return
	}
	p.release(s)
	if list == &p.waiting {
		p.leave()
	}
}

// release frees one slot of s, or passes it on to who waited longest. Parts of
// messages that have started go first.
func (p *pool) release(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.slots.used--
	if s.slots.joined {
		p.grant(s)
	}
}

// grant gives the free slots of s to waiters.
func (p *pool) grant(s *session) {
	for s.slots.used < p.window {
		w := s.slots.waiting.pop()
		if w == nil {
			if w = p.waiting.pop(); w == nil {
				return
			}
			p.sends++
		}
		s.slots.used++
		w.grant <- s
	}
}

// leave ends a message that acquire began.
func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends--
	p.checkIdle()
}

// join makes a bound session available.
func (p *pool) join(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.slots.joined, p.bound = true, true
	p.sessions = append(p.sessions, s)
	p.grant(s)
}

// part takes a session out and refuses whoever waits for it. It is idempotent. Slots
// in use are still released one by one.
func (p *pool) part(s *session, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.slots.joined {
		return
	}
	s.slots.joined = false
	p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == s })
	p.why = why
	refuse(&s.slots.waiting)
	if len(p.sessions) == 0 {
		refuse(&p.waiting)
	}
}

// failed notes that a bind could not be made, for the reason that is given while
// there is none.
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

// close lets no further message start. Those under way go on.
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

// ready reports whether a message could start, and why not.
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

// leastLoaded returns nil when all windows are full.
func (p *pool) leastLoaded() *session {
	var best *session
	for _, s := range p.sessions {
		if s.slots.used < p.window && (best == nil || s.slots.used < best.slots.used) {
			best = s
		}
	}
	return best
}

func (p *pool) checkIdle() {
	if p.closed && p.sends == 0 {
		close(p.idle)
	}
}

func refuse(l *waitList) {
	for w := l.pop(); w != nil; w = l.pop() {
		w.grant <- nil
	}
}

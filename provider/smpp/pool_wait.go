package smpp

import (
	"container/list"
	"context"
	"time"
)

// waiter is a Send that waits for slots. Its fields are guarded by pool.mu; the grant is a session
// with that many slots taken, or nil when none will come.
type waiter struct {
	grant chan *session // capacity 1
	slots int
	place *list.Element // in its waitList; nil once it has left the list
}

// waitList is a queue of waiters, which can also be removed from the middle. The zero value is
// empty.
type waitList struct{ list.List }

func (l *waitList) push(w *waiter) { w.place = l.PushBack(w) }

func (l *waitList) remove(w *waiter) {
	l.Remove(w.place)
	w.place = nil
}

// first returns nil when the list is empty.
func (l *waitList) first() *waiter {
	if l.Len() == 0 {
		return nil
	}
	return l.Front().Value.(*waiter)
}

// wait is called with mu held and releases it.
func (p *pool) wait(
	ctx context.Context, line *waitList, n int, latest time.Time,
) (*session, string) {
	w, ok := p.spare.Get().(*waiter)
	if !ok {
		w = &waiter{grant: make(chan *session, 1)}
	}
	defer p.spare.Put(w)
	w.slots = n
	line.push(w)
	p.mu.Unlock()
	var late <-chan time.Time
	if !latest.IsZero() {
		alarm := time.NewTimer(time.Until(latest))
		defer alarm.Stop()
		late = alarm.C
	}
	select {
	case s := <-w.grant:
		if s != nil {
			return s, ""
		}
	case <-late:
		p.giveUp(line, w)
		return nil, whyLate
	case <-ctx.Done():
		p.giveUp(line, w)
		return nil, whyWindow
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.unusable(); why != "" {
		return nil, why
	}
	return nil, whyUnbound
}

// giveUp removes w from its list, or returns the slots that it was granted meanwhile. Waiters after
// it may need fewer slots than it did.
func (p *pool) giveUp(line *waitList, w *waiter) {
	p.mu.Lock()
	if w.place != nil {
		line.remove(w)
		p.grantAll()
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	s := <-w.grant
	if s == nil {
		return
	}
	p.release(s, w.slots)
	if line == &p.waiting {
		p.done()
	}
}

// grant gives the free slots of s to waiters in order. While they are too few for the first waiter,
// they stay free.
func (p *pool) grant(s *session) {
	for {
		if w := s.slots.waiting.first(); w != nil {
			if !p.fits(s, w.slots) {
				return
			}
			s.slots.waiting.remove(w)
			s.slots.used += w.slots
			w.grant <- s
			continue
		}
		w := p.waiting.first()
		if w == nil || !p.fits(s, w.slots) || !p.takesNew(s, p.now()) {
			return
		}
		p.waiting.remove(w)
		p.start(s, w.slots)
		w.grant <- s
	}
}

func refuse(l *waitList) {
	for w := l.first(); w != nil; w = l.first() {
		l.remove(w)
		w.grant <- nil
	}
}

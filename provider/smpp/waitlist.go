package smpp

// waiter is a Send that waits for slots. Its fields are guarded by pool.mu; the grant is a session
// with that many slots taken, or nil when none will come.
type waiter struct {
	grant      chan *session // capacity 1
	slots      int
	prev, next *waiter
	listed     bool
}

// waitList is a first-in first-out list whose members can also leave from the middle.
// The zero value is empty.
type waitList struct{ first, last *waiter }

func (l *waitList) push(w *waiter) {
	w.listed, w.prev, w.next = true, l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *waitList) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.listed, w.prev, w.next = false, nil, nil
}

// pop returns nil when the list is empty.
func (l *waitList) pop() *waiter {
	w := l.first
	if w != nil {
		l.remove(w)
	}
	return w
}

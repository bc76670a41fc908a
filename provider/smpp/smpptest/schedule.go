package smpptest

import (
	"container/heap"
	"sync"
	"time"
)

// schedule passes entries on when they are due, the earliest first. The owner runs loop in a
// goroutine.
type schedule[T any] struct {
	wake chan struct{} // capacity 1
	mu   sync.Mutex
	heap dueHeap[T] // guarded by mu
}

type due[T any] struct {
	at    time.Time
	value T
}

func newSchedule[T any]() *schedule[T] {
	return &schedule[T]{wake: make(chan struct{}, 1)}
}

func (s *schedule[T]) add(at time.Time, value T) {
	s.mu.Lock()
	heap.Push(&s.heap, due[T]{at, value})
	first := s.heap[0].at.Equal(at)
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// loop calls handle with everything that is due at once, until stop is closed.
func (s *schedule[T]) loop(stop <-chan struct{}, handle func([]T)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []T
	for {
		var next time.Duration
		batch, next = s.take(batch[:0], time.Now())
		if len(batch) > 0 {
			handle(batch)
			continue
		}
		timer.Reset(next)
		select {
		case <-stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// take returns the entries due at now and how long to wait for the next.
func (s *schedule[T]) take(batch []T, now time.Time) ([]T, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.heap) > 0 {
		if left := s.heap[0].at.Sub(now); left > 0 {
			return batch, left
		}
		batch = append(batch, heap.Pop(&s.heap).(due[T]).value)
	}
	return batch, time.Hour
}

// rest empties the schedule and returns its entries.
func (s *schedule[T]) rest() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]T, len(s.heap))
	for i, d := range s.heap {
		all[i] = d.value
	}
	s.heap = nil
	return all
}

// dueHeap implements heap.Interface.
type dueHeap[T any] []due[T]

func (h dueHeap[T]) Len() int           { return len(h) }
func (h dueHeap[T]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap[T]) Push(x any)        { *h = append(*h, x.(due[T])) }

// Pop implements heap.Interface.
func (h *dueHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

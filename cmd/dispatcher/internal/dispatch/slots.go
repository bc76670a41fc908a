package dispatch

import "context"

// slots bounds what is claimed and not yet settled: the most that the death of this
// process can turn into Unknown. Those who wait are served in turn, so a large request is
// not starved by small ones.
//
// A Dispatcher has two: the larger one for everybody, and a twentieth of the bound that only small
// batches of the first lane may use beside it, so that a code does not stand behind a campaign.
type slots struct {
	turn chan struct{} // holds one token: who has it may collect from free
	free chan struct{}
}

func newSlots(n int) *slots {
	s := &slots{turn: make(chan struct{}, 1), free: make(chan struct{}, n)}
	s.turn <- struct{}{}
	s.release(n)
	return s
}

// size is the bound.
func (s *slots) size() int { return cap(s.free) }

// acquire blocks until it has n slots; n must not exceed size. On error it holds none.
func (s *slots) acquire(ctx context.Context, n int) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	for got := range n {
		select {
		case <-s.free:
		case <-ctx.Done():
			s.release(got)
			return ctx.Err()
		}
	}
	return nil
}

// try takes n slots if they are free and nobody waits for any.
func (s *slots) try(n int) bool {
	select {
	case <-s.turn:
	default:
		return false
	}
	defer func() { s.turn <- struct{}{} }()
	if len(s.free) < n {
		return false
	}
	for range n {
		<-s.free // nobody else takes any meanwhile
	}
	return true
}

// either blocks until one of the two has n slots and returns that one, a if both have. On
// error it holds none.
func either(ctx context.Context, n int, a, b *slots) (*slots, error) {
	if a.try(n) {
		return a, nil
	}
	if b.try(n) {
		return b, nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(chan *slots, 2)
	for _, s := range []*slots{a, b} {
		go func() {
			if s.acquire(waiting, n) != nil {
				s = nil
			}
			got <- s
		}()
	}
	first := <-got
	cancel()
	switch second := <-got; {
	case first == nil && second == nil:
		return nil, ctx.Err()
	case first == nil:
		return second, nil
	case second != nil:
		second.release(n)
	}
	return first, nil
}

// release gives n slots back.
func (s *slots) release(n int) {
	for range n {
		s.free <- struct{}{}
	}
}

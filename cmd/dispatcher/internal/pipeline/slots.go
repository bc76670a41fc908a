package pipeline

import (
	"context"
	"sync"
	"time"
)

// slots bounds how many attempts are claimed and not yet settled. That many can become Unknown when
// this process dies. A claim takes what is free. It never waits for all slots that it could use,
// because an attempt without an answer holds its slot until the send deadline.
//
// A Dispatcher has two: a large one for all lanes, and a twentieth of the bound that only the first
// lane may use in addition, so that an OTP does not wait behind a campaign.
type slots struct {
	turn chan struct{} // holds one token; its holder may gather slots
	most int

	mu    sync.Mutex
	free  int           // guarded by mu
	freed chan struct{} // guarded by mu; closed when slots come free, nil when nobody waits
}

func newSlots(n int) *slots {
	s := &slots{turn: make(chan struct{}, 1), most: n, free: n}
	s.turn <- struct{}{}
	return s
}

// size is the bound.
func (s *slots) size() int { return s.most }

// has reports whether n slots are free.
func (s *slots) has(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free >= n
}

// acquire blocks until a slot is free and takes up to n. If fewer than enough are free, it waits up
// to gatherTime for more. Callers are served in turn. On error it holds none.
func (s *slots) acquire(ctx context.Context, n, enough int) (got int, err error) {
	if n <= 0 {
		return 0, nil
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	var timer *time.Timer
	var gathered <-chan time.Time
	for least := min(n, enough); ; {
		got, free, freed := s.take(n, least)
		switch {
		case got > 0:
			return got, nil
		case free > 0 && timer == nil:
			timer = time.NewTimer(gatherTime)
			defer timer.Stop()
			gathered = timer.C
		}
		select {
		case <-freed:
		case <-gathered:
			least = 1
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// take takes up to n slots if at least least are free. Otherwise it returns how many are free, and
// a channel that is closed when more come free.
func (s *slots) take(n, least int) (got, free int, freed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free >= max(least, 1) {
		got = min(n, s.free)
		s.free -= got
		return got, s.free, nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return 0, s.free, s.freed
}

// acquireEither is acquire for a claim that may use the slots of a or those of b, but not of both.
//
//	n is at most the size of b   from a if n are free there, else from b if n are free there, else
//	                             at once what is free in the one that has more
//	n is larger                  from a if enough are free there; after gatherTime what is free in
//	                             the one that has more
//
// It blocks while neither has a free slot. On error it holds none.
func acquireEither(
	ctx context.Context, n, enough int, a, b *slots,
) (from *slots, got int, err error) {
	least, gather := min(n, enough), n > b.size()
	if !gather {
		least = n
	}
	var gathered <-chan time.Time
	for {
		got, freeA, freedA := a.take(n, least)
		if got > 0 {
			return a, got, nil
		}
		got, freeB, freedB := b.take(n, n)
		if got > 0 {
			return b, got, nil
		}
		switch {
		case freeA == 0 && freeB == 0:
		case !gather:
			most := a
			if freeB > freeA {
				most = b
			}
			if got, _, _ := most.take(n, 1); got > 0 {
				return most, got, nil
			}
		case gathered == nil:
			timer := time.NewTimer(gatherTime)
			defer timer.Stop()
			gathered = timer.C
		}
		select {
		case <-freedA:
		case <-freedB:
		case <-gathered:
			gather = false
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// release gives n slots back.
func (s *slots) release(n int) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

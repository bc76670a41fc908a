package pipeline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// left returns how many slots are free.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// hold takes n slots.
func (s *slots) hold(t *testing.T, n int) {
	t.Helper()
	if got, _, _ := s.take(n, n); got != n {
		t.Fatalf("%d of %d slots were free", got, n)
	}
}

// TestAClaimTakesWhatIsFree: it does not wait for the slots of attempts without answers.
func TestAClaimTakesWhatIsFree(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held, want, enough int
		got                int
		after              time.Duration
	}{
		"all are free":                    {0, 10, 8, 10, 0},
		"it wants less than are free":     {5, 3, 8, 3, 0},
		"enough are free":                 {2, 10, 8, 8, 0},
		"one attempt is not answered":     {1, 10, 8, 9, 0},
		"few are free for now":            {7, 10, 8, 3, gatherTime},
		"few are free and it wants fewer": {7, 2, 8, 2, 0},
		"it wants none":                   {10, 0, 8, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, began := newSlots(10), time.Now()
				s.hold(t, tc.held)
				got, err := s.acquire(t.Context(), tc.want, tc.enough)
				if err != nil || got != tc.got || time.Since(began) != tc.after ||
					s.left() != 10-tc.held-tc.got {
					t.Errorf("%d slots after %s, %d left: %v", got, time.Since(began),
						s.left(), err)
				}
			})
		})
	}
}

// TestAClaimGathersSlotsForAMoment: so that a settlement of few attempts does not lead to a claim
// of few.
func TestAClaimGathersSlotsForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(10)
		s.hold(t, 10)
		var settling sync.WaitGroup
		settling.Go(func() {
			time.Sleep(time.Second)
			for range 8 {
				s.release(1)
				time.Sleep(time.Millisecond)
			}
		})
		if got, err := s.acquire(t.Context(), 10, 7); err != nil || got != 7 {
			t.Errorf("%d slots: %v", got, err)
		}
		settling.Wait()
	})
}

func TestAcquireHoldsNothingAfterItsContextEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3)
		s.hold(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		for range 2 { // one gathers, the other waits for its turn
			go func() {
				_, err := s.acquire(ctx, 2, 2)
				errs <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		s.release(3)
		if s.left() != 3 || len(s.turn) != 1 {
			t.Errorf("%d left", s.left())
		}
	})
}

func TestEitherPrefersTheSharedSlotsAndKeepsThoseOfTheFirstLane(t *testing.T) {
	t.Parallel()
	shared, firstLane := newSlots(10), newSlots(3)
	for i, want := range []*slots{shared, shared, shared, firstLane, shared} {
		n := 3
		got, some, err := acquireEither(t.Context(), n, 10, shared, firstLane)
		if i == 4 {
			n = 1 // what is left
		}
		if err != nil || got != want || some != n {
			t.Fatalf("request %d: %d, %v, got the shared ones: %v", i, some, err, got == shared)
		}
	}
	if shared.left() != 0 || firstLane.left() != 0 {
		t.Errorf("%d and %d are left", shared.left(), firstLane.left())
	}
}

// TestAClaimOfTheFirstLaneTakesWhatIsFree: from the pool that has more free slots.
func TestAClaimOfTheFirstLaneTakesWhatIsFree(t *testing.T) {
	t.Parallel()
	const shared, firstLane = 0, 1
	for name, tc := range map[string]struct {
		free         [2]int // of 100 shared and 5 slots of the first lane
		want, enough int
		from, got    int
		after        time.Duration
	}{
		"all are free": {[2]int{100, 5}, 5, 100, shared, 5, 0},
		"one is left beside many of the first lane": {[2]int{1, 4}, 5, 1, firstLane, 4, 0},
		"more are left than of the first lane":      {[2]int{3, 2}, 5, 100, shared, 3, 0},
		"all of the first lane":                     {[2]int{0, 5}, 5, 100, firstLane, 5, 0},
		"a large batch":                             {[2]int{100, 5}, 50, 100, shared, 50, 0},
		"a large one takes enough":                  {[2]int{20, 5}, 50, 20, shared, 20, 0},
		"a large one gathers":                       {[2]int{20, 5}, 50, 100, shared, 20, gatherTime},
		"a large one, nothing is shared":            {[2]int{0, 5}, 50, 100, firstLane, 5, gatherTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				both, began := []*slots{newSlots(100), newSlots(5)}, time.Now()
				for i, s := range both {
					s.hold(t, s.size()-tc.free[i])
				}
				from, got, err := acquireEither(t.Context(), tc.want, tc.enough, both[shared],
					both[firstLane])
				if err != nil || from != both[tc.from] || got != tc.got ||
					time.Since(began) != tc.after {
					t.Errorf("%d slots after %s, shared: %v: %v", got, time.Since(began),
						from == both[shared], err)
				}
				tc.free[tc.from] -= tc.got
				if left := [2]int{both[shared].left(), both[firstLane].left()}; left != tc.free {
					t.Errorf("%v are left", left)
				}
			})
		})
	}
}

// While all attempts of small batches are in flight, the next small batch uses shared slots.
func TestEitherIsNotHeldUpByItsOwnSlots(t *testing.T) {
	t.Parallel()
	for _, freed := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			both := []*slots{newSlots(5), newSlots(5)}
			for _, s := range both {
				s.hold(t, 5)
			}
			got := make(chan *slots)
			go func() {
				s, _, err := acquireEither(t.Context(), 2, 5, both[0], both[1])
				if err != nil {
					t.Error(err)
				}
				got <- s
			}()
			synctest.Wait()
			select {
			case <-got:
				t.Fatal("slots were taken before their release")
			default:
			}
			both[freed].release(5)
			if s := <-got; s != both[freed] {
				t.Error("slots of the other pool were taken")
			}
			synctest.Wait()
			if both[freed].left() != 3 || both[1-freed].left() != 0 {
				t.Errorf("%d and %d are left", both[0].left(), both[1].left())
			}
		})
	}
}

func TestEitherHoldsNothingAfterItsContextEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared, firstLane := newSlots(5), newSlots(5)
		for _, s := range []*slots{shared, firstLane} {
			s.hold(t, 5)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, _, err := acquireEither(ctx, 2, 5, shared, firstLane)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if shared.left() != 0 || firstLane.left() != 0 {
			t.Errorf("%d and %d are left", shared.left(), firstLane.left())
		}
	})
}

package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// left is how many slots are free.
func (s *slots) left() int { return len(s.free) }

func TestEitherPrefersTheSharedSlotsAndKeepsTheExpressOnes(t *testing.T) {
	t.Parallel()
	shared, express := newSlots(10), newSlots(3)
	for i, want := range []*slots{shared, shared, shared, express} {
		got, err := either(t.Context(), 3, shared, express)
		if err != nil || got != want {
			t.Fatalf("request %d: %v, got the shared ones: %v", i, err, got == shared)
		}
	}
	if shared.left() != 1 || express.left() != 0 {
		t.Errorf("%d and %d are left", shared.left(), express.left())
	}
}

// While all attempts of small batches stand, the next small batch goes out over what is shared.
func TestEitherIsNotHeldUpByItsOwnSlots(t *testing.T) {
	t.Parallel()
	for _, freed := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			both := []*slots{newSlots(5), newSlots(5)}
			for _, s := range both {
				if err := s.acquire(t.Context(), 5); err != nil {
					t.Fatal(err)
				}
			}
			got := make(chan *slots)
			go func() {
				s, err := either(t.Context(), 2, both[0], both[1])
				if err != nil {
					t.Error(err)
				}
				got <- s
			}()
			synctest.Wait()
			select {
			case <-got:
				t.Fatal("slots were had that nobody has released")
			default:
			}
			both[freed].release(5)
			if s := <-got; s != both[freed] {
				t.Error("the slots of the other kind were taken")
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
		shared, express := newSlots(5), newSlots(5)
		for _, s := range []*slots{shared, express} {
			if err := s.acquire(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := either(ctx, 2, shared, express)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if shared.left() != 1 || express.left() != 1 || len(shared.turn) != 1 || len(express.turn) != 1 {
			t.Errorf("%d and %d are left", shared.left(), express.left())
		}
	})
}

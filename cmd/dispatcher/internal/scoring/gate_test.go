package scoring

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheGateLetsNoMoreThroughThanItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var inside, most atomic.Int64
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				n := 1 + i%maxConnections
				if err := g.enter(t.Context(), n); err != nil {
					t.Error(err)
				}
				defer g.leave(n)
				now := inside.Add(int64(n))
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen,
					now); seen = most.Load() {
				}
				time.Sleep(time.Millisecond) // on the fake clock
				inside.Add(int64(-n))
			})
		}
		group.Wait()
		if most.Load() > maxConnections || most.Load() < maxConnections/2 {
			t.Errorf("%d calls at once", most.Load())
		}
		if len(g.free) != maxConnections || len(g.turn) != 1 {
			t.Errorf("%d of %d are free afterwards", len(g.free), maxConnections)
		}
	})
}

// TestALargeQuestionIsNotOvertaken: small questions come all the time.
func TestALargeQuestionIsNotOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		if err := g.enter(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var order []string
		var group sync.WaitGroup
		for _, one := range []struct {
			name  string
			calls int
		}{{"large", maxConnections}, {"small", 1}} {
			group.Go(func() {
				if err := g.enter(t.Context(), one.calls); err != nil {
					t.Error(err)
				}
				// the gate separates them: large needs all places
				order = append(order, one.name)
				g.leave(one.calls)
			})
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Errorf("%v went through a gate that was not free", order)
		}
		g.leave(1)
		group.Wait()
		if len(order) != 2 || order[0] != "large" {
			t.Errorf("order %v", order)
		}
	})
}

func TestACallerThatGivesUpLeavesTheGateUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		if err := g.enter(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		// The first has the turn and all places but one; the second waits for its turn.
		for range 2 {
			group.Go(func() {
				if g.enter(ctx, maxConnections) == nil {
					t.Error("a caller that gave up entered the gate")
				}
			})
			synctest.Wait()
		}
		cancel()
		group.Wait()
		g.leave(1)
		if err := g.enter(t.Context(), maxConnections); err != nil {
			t.Error(err)
		}
	})
}

func TestGatesAreDroppedWithTheirLastCaller(t *testing.T) {
	t.Parallel()
	g, id := newGates(), identity{url: "http://x"}
	first, second := g.arrive(id), g.arrive(id)
	if first != second || g.arrive(identity{url: "http://x", token: "t"}) == first {
		t.Error("two functions share a gate")
	}
	g.depart(id)
	if g.arrive(id) != first {
		t.Error("a gate in use was dropped")
	}
	g.depart(id)
	g.depart(id)
	g.depart(identity{url: "http://x", token: "t"})
	if len(g.of) != 0 {
		t.Errorf("%d gates are kept", len(g.of))
	}
}

package smpp

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
)

// TestSlotsAreNeverLostNorDoubled lets senders acquire, wait, give up and release while sessions
// start and end.
func TestSlotsAreNeverLostNorDoubled(t *testing.T) {
	t.Parallel()
	const window, senders = 3, 40
	rounds := tier.Size(100, 400)
	p := newPool(window)
	sessions := []*session{{}, {}, {}}
	held := make([]atomic.Int64, len(sessions))
	index := map[*session]int{}
	for i, s := range sessions {
		index[s] = i
		p.add(s)
	}
	use := func(s *session, n int) {
		if all := held[index[s]].Add(int64(n)); all > window {
			t.Errorf("%d slots of a window of %d are held", all, window)
		}
		<-time.After(time.Duration(rand.N(50)) * time.Microsecond)
		held[index[s]].Add(int64(-n))
		p.release(s, n)
	}
	maybeLatest := func() (latest time.Time) {
		if rand.N(2) == 0 {
			latest = time.Now().Add(time.Duration(rand.N(1000)) * time.Microsecond)
		}
		return latest
	}
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(),
					time.Duration(rand.N(2000))*time.Microsecond)
				n := 1 + rand.N(window)
				if s, why := p.acquire(ctx, n, maybeLatest()); s != nil {
					use(s, n)
					if ok, _ := p.acquireOn(ctx, s, time.Time{}); ok {
						use(s, 1)
					}
					p.done()
				} else if why == "" {
					t.Error("refused without a reason")
				}
				cancel()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			s := sessions[rand.N(len(sessions))]
			p.remove(s)
			<-time.After(time.Duration(rand.N(100)) * time.Microsecond)
			p.add(s)
		}
	})
	wg.Wait()
	p.close()
	<-p.idle
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range sessions {
		if s.slots.used != 0 || s.slots.waiting.first() != nil {
			t.Errorf("session %d still has %d slots in use", i, s.slots.used)
		}
	}
	if p.sends != 0 || p.waiting.first() != nil {
		t.Errorf("%d messages are still in flight", p.sends)
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	p, s := newPool(1), &session{}
	p.add(s)
	if got, _ := p.acquire(t.Context(), 1, time.Time{}); got != s {
		t.Fatal("no slot")
	}
	order := make(chan int, 3)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if got, _ := p.acquire(t.Context(), 1, time.Time{}); got == s {
				order <- i
				p.release(s, 1)
				p.done()
			}
		})
		tier.Eventually(t, "the sender is in line", func() bool { return p.waits() == i+1 })
	}
	p.release(s, 1)
	p.done()
	wg.Wait()
	for want := range 3 {
		if got := <-order; got != want {
			t.Errorf("sender %d was served as number %d", got, want)
		}
	}
}

func TestWaitersAreRefusedWhenTheLastSessionEnds(t *testing.T) {
	t.Parallel()
	p, s := newPool(1), &session{}
	if _, why := p.acquire(t.Context(), 1, time.Time{}); why != "connecting" {
		t.Errorf("before the first bind: %q", why)
	}
	p.add(s)
	if got, _ := p.acquire(t.Context(), 1, time.Time{}); got != s {
		t.Fatal("no slot")
	}
	reasons := make(chan string, 2)
	go func() {
		_, why := p.acquire(t.Context(), 1, time.Time{})
		reasons <- why
	}()
	go func() {
		_, why := p.acquireOn(t.Context(), s, time.Time{})
		reasons <- why
	}()
	tier.Eventually(t, "both wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.waiting.first() != nil && s.slots.waiting.first() != nil
	})
	p.remove(s)
	for range 2 {
		if why := <-reasons; why != "unbound" {
			t.Errorf("refused with %q", why)
		}
	}
	p.failed(true)
	if ok, why := p.ready(); ok || why != "bind_refused" {
		t.Errorf("ready %v, %q", ok, why)
	}
	p.failed(false)
	if ok, why := p.ready(); ok || why != "unbound" {
		t.Errorf("ready %v, %q", ok, why)
	}
}

// TestAShortMessageDoesNotOvertakeALongOne: if the free slots are too few for the first waiter, the
// next one waits too, until the first gives up.
func TestAShortMessageDoesNotOvertakeALongOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := newPool(4), &session{}
		p.add(s)
		if got, _ := p.acquire(t.Context(), 3, time.Time{}); got != s {
			t.Fatal("no slots")
		}
		began := time.Now()
		reasons, short := make(chan string, 1), make(chan time.Duration, 2)
		go func() {
			_, why := p.acquire(t.Context(), 2, began.Add(time.Second))
			reasons <- why
		}()
		synctest.Wait()
		go func() {
			if got, _ := p.acquire(t.Context(), 1, time.Time{}); got == s {
				short <- time.Since(began)
			}
		}()
		synctest.Wait()
		if len(short) != 0 {
			t.Error("the short message overtook the long one")
		}
		if why, at := <-reasons, <-short; why != provider.Late || at != time.Second {
			t.Errorf("the long one gave up (%s), the short one got its slot after %v", why, at)
		}
		if s.slots.used != 4 {
			t.Errorf("%d slots are in use, want 4", s.slots.used)
		}
	})
}

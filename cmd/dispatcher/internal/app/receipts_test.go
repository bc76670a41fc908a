package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/provider"
)

// recordingSlots keeps what it was asked to free. It knows no attempt for a reference before its time.
type recordingSlots struct {
	began time.Time
	known map[string]time.Duration // after which a reference is known; at once unless named
	away  time.Duration            // the database is away for so long

	mu    sync.Mutex
	calls []string        // guarded by mu: "seconds channel references"
	freed map[string]bool // guarded by mu
	told  []int           // guarded by mu: how many slots were said to have come free
}

func (s *recordingSlots) tell(slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, slots)
}

func (s *recordingSlots) ReleaseByReceipt(ctx context.Context, channel string, references []string) (matched []string, err error) {
	at := time.Since(s.began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(references) > 3 {
		s.calls = append(s.calls, fmt.Sprintf("%v %s %d", at, channel, len(references)))
	} else {
		s.calls = append(s.calls, fmt.Sprintf("%v %s %v", at, channel, references))
	}
	if at < s.away {
		return nil, &net.OpError{Op: "dial", Err: errors.New("the database is away")}
	}
	for _, r := range references {
		if at >= s.known[r] {
			s.freed[r] = true
			matched = append(matched, r)
		}
	}
	return matched, ctx.Err()
}

// desk runs receipts over s until stop is called.
func desk(t *testing.T, s *recordingSlots) (r *receipts, stop func()) {
	t.Helper()
	s.began, s.freed = time.Now(), map[string]bool{}
	r = newReceipts(s, s.tell, newReceiptMetrics(prometheus.NewRegistry()), func(string, error) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	return r, stop
}

func receipt(reference string) provider.Receipt {
	return provider.Receipt{Reference: reference, State: provider.Delivered}
}

func TestReceiptsGatherForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{}
		r, stop := desk(t, s)
		r.take("a", receipt("1"))
		r.take("b", receipt("2"))
		time.Sleep(20 * time.Millisecond)
		r.take("a", provider.Receipt{Reference: "3", State: provider.Undelivered})
		r.take("a", receipt("1"))
		r.take("a", provider.Receipt{Reference: "4", State: provider.Pending})
		time.Sleep(time.Second)
		stop()
		slices.Sort(s.calls)
		if diff := cmp.Diff([]string{"50ms a [1 3]", "50ms b [2]"}, s.calls); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAFullBatchDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{}
		r, stop := desk(t, s)
		for i := range 700 {
			r.take("a", receipt(fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		stop()
		if diff := cmp.Diff([]string{"0s a 500", "50ms a 200"}, s.calls); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAReceiptMayBeQuickerThanItsSettlement: what is not known yet is looked for again, and no more once
// the last look has passed.
func TestAReceiptMayBeQuickerThanItsSettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{known: map[string]time.Duration{"early": 2 * time.Second, "strange": time.Hour}}
		r, stop := desk(t, s)
		r.take("a", receipt("early"))
		time.Sleep(time.Minute)
		r.take("a", receipt("strange"))
		time.Sleep(time.Hour)
		stop()
		want := []string{
			"50ms a [early]", "300ms a [early]", "2.3s a [early]",
			"1m0.05s a [strange]", "1m0.3s a [strange]", "1m2.3s a [strange]", "1m17.3s a [strange]",
		}
		if diff := cmp.Diff(want, s.calls); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOnlyWhatWasNotFoundIsLookedForAgain: the receipts of a batch whose attempts are known, and the later ones of the same
// message, are done with, whatever stands beside them.
func TestOnlyWhatWasNotFoundIsLookedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{known: map[string]time.Duration{"early": time.Second, "strange": time.Hour}}
		r, stop := desk(t, s)
		for _, reference := range []string{"1", "strange", "2"} {
			r.take("a", receipt(reference))
		}
		time.Sleep(500 * time.Millisecond)
		for _, reference := range []string{"2", "early", "1"} {
			r.take("a", receipt(reference))
		}
		time.Sleep(time.Minute)
		stop()
		want := []string{
			"50ms a [1 2 strange]", "300ms a [strange]", "550ms a [1 2 early]", "800ms a [early]",
			"2.3s a [early strange]", "17.3s a [strange]",
		}
		if diff := cmp.Diff(want, s.calls); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{2, 2, 1}, s.told); diff != "" {
			t.Error("slots said to have come free", diff)
		}
	})
}

// TestManyReceiptsPushNoEarlyOneOut: far more than can be kept are known at once, as the parts of a message are whose slot
// the first of them freed. Among them are some that come before their settlement.
func TestManyReceiptsPushNoEarlyOneOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{known: map[string]time.Duration{}}
		for i := range 3 * maxReceipts / 100 {
			s.known[fmt.Sprint("early-", i)] = 10 * time.Second
		}
		r, stop := desk(t, s)
		for i := range 3 * maxReceipts {
			reference := fmt.Sprint(i)
			if i%100 == 0 {
				reference = fmt.Sprint("early-", i/100)
			}
			if !r.take("a", receipt(reference)) {
				t.Fatalf("receipt %d was refused", i)
			}
			if i%receiptBatch == 0 {
				time.Sleep(25 * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		stop()
		if len(s.freed) != 3*maxReceipts {
			t.Errorf("%d slots of %d were freed", len(s.freed), 3*maxReceipts)
		}
	})
}

// TestWhatIsUnknownIsKeptAsLongAsThereIsRoom: of too many, as many as there is room for get their further looks.
func TestWhatIsUnknownIsKeptAsLongAsThereIsRoom(t *testing.T) {
	t.Parallel()
	s := &recordingSlots{}
	r := newReceipts(s, s.tell, newReceiptMetrics(prometheus.NewRegistry()), func(string, error) {})
	many := make([]string, maxReceipts-10)
	for range 2 {
		r.again(1, "a", many)
	}
	if n := len(r.queue[1]); n != maxReceipts {
		t.Errorf("%d receipts are kept, room is for %d", n, maxReceipts)
	}
}

// TestReceiptsWaitForTheDatabase: while it is away they are kept, as many as there is room for, and
// the rest is refused, so that it comes again.
func TestReceiptsWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{away: time.Minute}
		r, stop := desk(t, s)
		taken, n := 0, maxReceipts+3*receiptBatch
		for i := range n {
			if r.take("a", receipt(fmt.Sprint(i))) {
				taken++
			}
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		if taken < maxReceipts || taken >= n {
			t.Errorf("%d of %d receipts were taken, room is for %d", taken, n, maxReceipts)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(s.freed) != taken {
			t.Errorf("%d of %d slots were freed", len(s.freed), taken)
		}
		if !r.take("a", receipt("after")) {
			t.Error("a receipt was refused after the database came back")
		}
		stop()
		if !s.freed["after"] {
			t.Error("the receipt that waited at the end was not used")
		}
	})
}

// TestTheEndIsBounded ends while the database is away: nothing waits for it.
func TestTheEndIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingSlots{away: time.Hour}
		r, stop := desk(t, s)
		r.take("a", receipt("1"))
		time.Sleep(time.Minute)
		at := time.Now()
		stop()
		if took := time.Since(at); took > lastReceipts {
			t.Errorf("the end took %v", took)
		}
	})
}

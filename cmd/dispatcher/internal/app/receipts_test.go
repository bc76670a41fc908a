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
}

func (s *recordingSlots) ReleaseByReceipt(ctx context.Context, channel string, references []string) (freed int64, err error) {
	at := time.Since(s.began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(references) > 3 {
		s.calls = append(s.calls, fmt.Sprintf("%v %s %d", at, channel, len(references)))
	} else {
		s.calls = append(s.calls, fmt.Sprintf("%v %s %v", at, channel, references))
	}
	if at < s.away {
		return 0, &net.OpError{Op: "dial", Err: errors.New("the database is away")}
	}
	for _, r := range references {
		if at >= s.known[r] && !s.freed[r] {
			s.freed[r] = true
			freed++
		}
	}
	return freed, ctx.Err()
}

// desk runs receipts over s until stop is called.
func desk(t *testing.T, s *recordingSlots) (r *receipts, stop func()) {
	t.Helper()
	s.began, s.freed = time.Now(), map[string]bool{}
	r = newReceipts(s, newReceiptMetrics(prometheus.NewRegistry()), func(string, error) {})
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

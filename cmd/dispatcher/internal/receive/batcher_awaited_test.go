package receive_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// ignored ignores the answer.
func ignored(bool) {}

// answers are the answers to one receipt.
type answers struct {
	mu  sync.Mutex
	all []bool // guarded by mu
}

func (w *answers) answer(taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, taken)
}

// is reports whether there was exactly one answer, equal to taken; open whether there was none.
func (w *answers) is(taken bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) == 1 && w.all[0] == taken
}

func (w *answers) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) == 0
}

// take passes a receipt of channel a and returns its answers.
func take(d *receive.Batcher, r provider.Receipt) *answers {
	w := new(answers)
	d.Take("a", r, w.answer)
	return w
}

// counts returns how many were answered with true, with false, and not.
func counts(all []*answers) (n [3]int) {
	for _, w := range all {
		switch {
		case w.is(true):
			n[0]++
		case w.is(false):
			n[1]++
		case w.open():
			n[2]++
		}
	}
	return n
}

// TestReceiptsAreAcknowledgedQuickly: providers use few connections with small windows, so latency
// limits the throughput.
func TestReceiptsAreAcknowledgedQuickly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{}
		d, _, stop := batcher(t, b)
		defer stop()
		began := time.Now()
		taken := take(d, delivered("taken"))
		if err := d.Record(t.Context(), "a", []provider.Receipt{delivered("awaited")}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("stored after %s", took)
		}
		synctest.Wait()
		if !b.has("taken") || !b.has("awaited") || !taken.is(true) {
			t.Error("not all receipts are stored and answered")
		}
	})
}

// TestAReceiptIsAnsweredWhenItIsStored: not before.
func TestAReceiptIsAnsweredWhenItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{away: 3 * time.Second}
		d, _, stop := batcher(t, b)
		defer stop()
		var all []*answers
		for i := range 1200 {
			all = append(all, take(d, delivered(fmt.Sprint(i))))
		}
		time.Sleep(2900 * time.Millisecond)
		if diff := cmp.Diff([3]int{0, 0, 1200}, counts(all)); diff != "" {
			t.Error("while the database is away", diff)
		}
		time.Sleep(5 * time.Second)
		if n := counts(all); n[0] != b.holds() || n[2] != 0 || n[0] < 500 {
			t.Errorf("%v were answered, %d are stored", n, b.holds())
		}
	})
}

// TestReceiptsAreGivenBackWhileTheDatabaseIsAway: as many as there is room for wait five seconds,
// the others are refused at once, and all are sent again. The queue is bounded, and every
// acknowledged receipt is stored.
func TestReceiptsAreGivenBackWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const room, n = 20_000, 21_500
		b := &journalStore{away: time.Minute}
		d, registry, stop := batcher(t, b)
		var all []*answers
		for i := range n {
			all = append(all, take(d, delivered(fmt.Sprint(i))))
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		if n := counts(all); n[0] != 0 || n[2] < room || n[1] < 500 {
			t.Errorf("answered at once: %v", n)
		}
		time.Sleep(6 * time.Second)
		if diff := cmp.Diff([3]int{0, n, 0}, counts(all)); diff != "" {
			t.Error("after six seconds", diff)
		}
		if got := count(t, registry, "dispatcher_provider_receipts_total", "a",
			"refused"); got != n {
			t.Errorf("%v were counted as refused", got)
		}
		time.Sleep(time.Minute)
		again := take(d, delivered("7"))
		last := take(d, delivered("after"))
		stop()
		if !again.is(true) || !last.is(true) || !b.has("7") || !b.has("after") {
			t.Error("repeated receipts and those at the end were not stored")
		}
		if n := b.holds(); n > 502 {
			t.Errorf("%d were kept that had been given back", n)
		}
	})
}

// TestWhatIsNotStoredAtTheEndIsNotTaken: neither before the end nor after it.
func TestWhatIsNotStoredAtTheEndIsNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{away: time.Hour}
		d, _, stop := batcher(t, b)
		stored := make(chan error, 1)
		go func() { stored <- d.Record(t.Context(), "a", []provider.Receipt{delivered("x")}) }()
		synctest.Wait()
		waits := take(d, delivered("1"))
		time.Sleep(time.Second)
		stop()
		late := take(d, delivered("2"))
		if !waits.is(false) || !late.is(false) || b.holds() != 0 {
			t.Errorf("answered %v and %v", waits.all, late.all)
		}
		if err := <-stored; err == nil {
			t.Error("a callback was reported as stored")
		}
		if err := d.Record(t.Context(), "a", []provider.Receipt{delivered("y")}); err == nil {
			t.Error("a callback was accepted after the end")
		}
	})
}

// stuckStore hangs in the commit, as over a connection that broke unnoticed, until stuck is closed.
type stuckStore struct {
	journalStore
	stuck chan struct{}
}

func (b *stuckStore) Receive(
	ctx context.Context, receipts []ledger.Receipt, tell ledger.Tell,
) (ledger.Received, error) {
	select {
	case <-b.stuck:
		return b.journalStore.Receive(ctx, receipts, tell)
	case <-ctx.Done():
		return ledger.Received{}, ctx.Err()
	}
}

// TestAWriteThatHangsBlocksNoCaller: its receipts are refused, and stored in the end.
func TestAWriteThatHangsBlocksNoCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &stuckStore{stuck: make(chan struct{})}
		d, stop := stuckBatcher(t, b)
		one := take(d, delivered("1"))
		time.Sleep(6 * time.Second)
		if !one.is(false) {
			t.Errorf("answered %v", one.all)
		}
		close(b.stuck)
		stop()
		if !one.is(false) || !b.has("1") {
			t.Errorf("answered %v, stored %t", one.all, b.has("1"))
		}
	})
}

// stuckBatcher runs a batcher on b until stop is called.
func stuckBatcher(t *testing.T, b *stuckStore) (d *receive.Batcher, stop func()) {
	t.Helper()
	b.began, b.stored = time.Now(), map[string]bool{}
	d, err := receive.New(receive.Config{
		Store: b, Freed: b.freed, Trouble: func(string, error) {},
		Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	return d, func() { cancel(); <-done }
}

package receive_test

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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// journalStore keeps what it was asked to store.
type journalStore struct {
	began   time.Time
	away    time.Duration // how long the database is away
	early   bool          // all receipts come before their settlements
	refused string        // a batch with this reference is refused
	due     int           // how many messages the next sweep closes

	mu         sync.Mutex
	calls      []string        // guarded by mu: "seconds references"
	stored     map[string]bool // guarded by mu
	sweeps     []time.Duration // guarded by mu
	freedSlots []int           // guarded by mu: how many slots each report had
}

// has reports whether a receipt was stored; holds returns the number of stored receipts.
func (b *journalStore) has(reference string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored[reference]
}

func (b *journalStore) holds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.stored)
}

func (b *journalStore) freed(slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freedSlots = append(b.freedSlots, slots)
}

func (b *journalStore) Receive(
	ctx context.Context, receipts []ledger.Receipt, tell ledger.Tell,
) (got ledger.Received, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Since(b.began)
	var names []string
	for _, r := range receipts {
		names = append(names, r.Channel+"/"+r.Reference)
	}
	if len(names) > 3 {
		names = []string{fmt.Sprint(len(names))}
	}
	b.calls = append(b.calls, fmt.Sprintf("%v %v", at, names))
	if at < b.away {
		return got, &net.OpError{Op: "dial", Err: errors.New("the database is away")}
	}
	if slices.ContainsFunc(receipts, func(r ledger.Receipt) bool {
		return b.refused != "" &&
			r.Reference == b.refused
	}) {
		return got, &pgconn.PgError{Severity: "ERROR", Code: "22000"}
	}
	for _, r := range receipts {
		b.stored[r.Reference] = true
		tell(&ledger.Closing{ID: r.Reference, Channel: r.Channel, State: ledger.Delivered})
	}
	got.Matched, got.Freed = len(receipts), int64(len(receipts))
	if b.early {
		got = ledger.Received{ReceiptCounts: ledger.ReceiptCounts{Early: len(receipts)}}
	}
	return got, ctx.Err()
}

func (b *journalStore) Overdue(
	_ context.Context, _ int, tell ledger.Tell,
) (swept ledger.Swept, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweeps = append(b.sweeps, time.Since(b.began))
	for range b.due {
		tell(&ledger.Closing{State: ledger.NoReceipt})
	}
	swept.Closed, b.due = b.due, 0
	return swept, nil
}

func (b *journalStore) Drop(context.Context, time.Duration) (int64, error) { return 0, nil }

// batcher runs a batcher on b until stop is called.
func batcher(
	t *testing.T, b *journalStore,
) (d *receive.Batcher, registry *prometheus.Registry, stop func()) {
	t.Helper()
	b.began, b.stored, registry = time.Now(), map[string]bool{}, prometheus.NewRegistry()
	d, err := receive.New(receive.Config{
		Store: b, Freed: b.freed, Trouble: func(string, error) {}, Registry: registry,
		Open: func(key string) (int64, int, bool) { return 7, 1, key == "ours" },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	return d, registry, func() { cancel(); <-done }
}

func delivered(reference string) provider.Receipt {
	return provider.Receipt{Reference: reference, State: provider.Delivered}
}

// count returns the value of a counter with its labels.
func count(t *testing.T, registry *prometheus.Registry, name string, labels ...string) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestReceiptsGatherForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{}
		d, registry, stop := batcher(t, b)
		d.Take("a", delivered("1"), ignored)
		time.Sleep(3 * time.Millisecond)
		d.Take("b", provider.Receipt{Reference: "2", State: provider.Undelivered}, ignored)
		d.Take("b", provider.Receipt{Reference: "3"}, ignored)
		time.Sleep(time.Second)
		stop()
		if diff := cmp.Diff([]string{"5ms [a/1 b/2 b/3]"}, b.calls); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{3}, b.freedSlots); diff != "" {
			t.Error("slots reported as freed", diff)
		}
		for state, n := range map[string]float64{"delivered": 0, "undelivered": 1, "pending": 1} {
			if got := count(t, registry, "dispatcher_provider_receipts_total", "b",
				state); got != n {
				t.Errorf("%v %s on b", got, state)
			}
		}
		for channel, n := range map[string]float64{"a": 1, "b": 2} {
			if got := count(t, registry, "dispatcher_receive_closed_total", channel,
				"delivered"); got != n {
				t.Errorf("%v closed on %s, want %v", got, channel, n)
			}
		}
	})
}

func TestAFullBatchDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{}
		d, _, stop := batcher(t, b)
		for i := range 700 {
			d.Take("a", delivered(fmt.Sprint(i)), ignored)
		}
		time.Sleep(time.Second)
		stop()
		if diff := cmp.Diff([]string{"0s [500]", "5ms [200]"}, b.calls); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAReceiptThatNamesNothingIsCountedAndChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{}
		d, registry, stop := batcher(t, b)
		for _, key := range []string{"", "forged"} {
			if word := take(d, provider.Receipt{
				Key:   key,
				State: provider.Delivered,
			}); !word.is(true) {
				t.Error("the receipt is expected again")
			}
		}
		take(d, provider.Receipt{Key: "ours", State: provider.Delivered})
		time.Sleep(time.Second)
		stop()
		if diff := cmp.Diff([]string{"5ms [a/]"}, b.calls); diff != "" {
			t.Error(diff)
		}
		if got := count(t, registry, "dispatcher_provider_receipts_total", "a",
			"nameless"); got != 2 {
			t.Errorf("got %v receipts without a message", got)
		}
	})
}

// TestEarlyReceiptsAreRetriedSoon: the settlements of early receipts may come at any moment, and
// slots may wait.
func TestEarlyReceiptsAreRetriedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{}
		d, _, stop := batcher(t, b)
		time.Sleep(2500 * time.Millisecond)
		b.mu.Lock()
		b.early, b.due = true, 2
		b.mu.Unlock()
		for i := range 60 { // more of them do not delay it
			d.Take("a", delivered(fmt.Sprint(i)), ignored)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		stop()
		quick := 0
		for i, at := range b.sweeps {
			if i > 0 && at-b.sweeps[i-1] == 100*time.Millisecond {
				quick++
			}
		}
		if b.sweeps[0] != time.Second || b.sweeps[1] != 2*time.Second ||
			b.sweeps[2] > 2700*time.Millisecond || quick < 100 || quick > 135 {
			t.Errorf("got %d quick sweeps, the first at %v", quick, b.sweeps[:3])
		}
		if diff := cmp.Diff([]int{2}, b.freedSlots); diff != "" {
			t.Error("slots reported as freed", diff)
		}
	})
}

// TestTheEndIsBounded: the database is away, and stopping does not wait for it.
func TestTheEndIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{away: time.Hour}
		d, _, stop := batcher(t, b)
		d.Take("a", delivered("1"), ignored)
		time.Sleep(time.Minute)
		at := time.Now()
		stop()
		if took := time.Since(at); took > 2*time.Second {
			t.Errorf("stopping took %v", took)
		}
	})
}

func TestBookReturnsWhenAllIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{away: 3 * time.Second}
		d, _, stop := batcher(t, b)
		defer stop()
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() {
				if err := d.Record(t.Context(), "a", []provider.Receipt{
					delivered(fmt.Sprint(i)),
					{State: provider.Delivered},
					delivered(fmt.Sprint("x", i)),
				}); err != nil {
					t.Error(err)
				}
				if !b.has(fmt.Sprint(i)) || !b.has(fmt.Sprint("x", i)) {
					t.Error("it returned too early")
				}
			})
		}
		callers.Wait()
		if err := d.Record(t.Context(), "a",
			[]provider.Receipt{{State: provider.Delivered}}); err != nil {
			t.Error(err)
		}
	})
}

func TestBookEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{away: time.Minute}
		d, _, stop := batcher(t, b)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Record(ctx, "a", []provider.Receipt{delivered("1")}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Error(err)
		}
		many := make([]provider.Receipt, 20_001)
		for i := range many {
			many[i] = delivered(fmt.Sprint(i))
		}
		if err := d.Record(t.Context(), "a", many); err == nil {
			t.Error("no receipt was refused")
		}
		time.Sleep(2 * time.Minute)
		if !b.has("1") {
			t.Error("the receipt was acknowledged after its caller gave up")
		}
	})
}

// TestAReceiptThatCannotBeStoredHoldsUpNoOther: it is left out, and its provider is not asked to
// send it again.
func TestAReceiptThatCannotBeStoredHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalStore{refused: "bad"}
		d, _, stop := batcher(t, b)
		defer stop()
		for i := range 20 {
			d.Take("a", delivered(fmt.Sprint(i)), ignored)
		}
		if err := d.Record(t.Context(), "a", []provider.Receipt{
			delivered("bad"),
			delivered("last"),
		}); err != nil {
			t.Error(err)
		}
		if n := b.holds(); n != 21 || b.has("bad") {
			t.Errorf("%d were stored", n)
		}
	})
}

func TestADeskNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := receive.New(receive.Config{}); err == nil {
		t.Error("the store is optional")
	}
}

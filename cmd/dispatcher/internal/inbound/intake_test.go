package inbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

// scriptedStore answers calls as its script says.
type scriptedStore struct {
	// answer returns the error of the next write; nil always stores.
	answer func(in []ledger.Inbound) error

	mu       sync.Mutex
	tried    [][]string // guarded by mu: the ids of each call
	texts    []string   // guarded by mu: what was stored
	sweeps   int        // guarded by mu
	overdue  []int      // guarded by mu: how many the next sweeps abandon
	forgot   int        // guarded by mu
	waitTime time.Duration
}

func (s *scriptedStore) Record(
	_ context.Context, in []ledger.Inbound, react func(*ledger.Subscribed) ledger.Reaction,
) (ledger.InboxResult, error) {
	s.mu.Lock()
	var ids []string
	for i := range in {
		ids = append(ids, in[i].ID)
	}
	s.tried = append(s.tried, ids)
	s.mu.Unlock()
	if s.answer != nil {
		if err := s.answer(in); err != nil {
			return ledger.InboxResult{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range in {
		react(&ledger.Subscribed{
			ID: in[i].ID, Channel: in[i].Channel, From: in[i].From,
			To: in[i].To, Text: in[i].Text, Parts: 1,
		})
		s.texts = append(s.texts, in[i].Text)
	}
	return ledger.InboxResult{Whole: len(in)}, nil
}

func (s *scriptedStore) RecordIncomplete(
	_ context.Context, after time.Duration, _ int, _ func(*ledger.Subscribed) ledger.Reaction,
) (ledger.InboxResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
	s.waitTime = after
	if len(s.overdue) == 0 {
		return ledger.InboxResult{}, nil
	}
	n := s.overdue[0]
	s.overdue = s.overdue[1:]
	return ledger.InboxResult{Abandoned: n}, nil
}

func (s *scriptedStore) Forget(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot++
	return 0, nil
}

// sweepCounts returns how often parts and memory were swept, and how long parts may wait.
func (s *scriptedStore) sweepCounts() (sweeps, forgot int, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweeps, s.forgot, s.waitTime
}

// calls returns the ids that each call was given.
func (s *scriptedStore) calls() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried)
}

func (s *scriptedStore) stored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// rig is an intake with a store.
type rig struct {
	*Intake
	registry *prometheus.Registry
	run      func()
	stop     func()
}

func newRig(t *testing.T, store Store) *rig {
	t.Helper()
	r := &rig{registry: prometheus.NewRegistry()}
	d := testDirectory()
	var err error
	r.Intake, err = New(Config{
		Store: store, Directory: func() *Directory { return d },
		E164: asItIs, Registry: r.registry, Trouble: func(string, error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.run = sync.OnceFunc(func() {
		go func() { r.Run(ctx); close(done) }()
	})
	r.stop = sync.OnceFunc(func() { cancel(); r.run(); <-done })
	t.Cleanup(r.stop)
	return r
}

func text(s string) provider.Inbound {
	return provider.Inbound{From: "+447700900123", To: "+15550100", Text: s}
}

// asItIs returns the number unchanged.
func asItIs(number string) string { return number }

// errLost is the error of a database that is away.
var errLost = fmt.Errorf("book: %w", io.ErrUnexpectedEOF)

func TestAMessageIsTakenWhenItIsDurableAndNotBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		commit := make(chan struct{})
		store := &scriptedStore{answer: func([]ledger.Inbound) error { <-commit; return nil }}
		r := newRig(t, store)
		r.run()
		taken := make(chan bool, 1)
		go func() { taken <- r.Take("a", text("hello")) }()
		synctest.Wait()
		select {
		case <-taken:
			t.Error("the message was acknowledged before it was stored")
		default:
		}
		close(commit)
		if !<-taken {
			t.Error("the message was not acknowledged")
		}
		r.stop()
	})
}

func TestMessagesAreStoredTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{}
		r := newRig(t, store)
		var callers sync.WaitGroup
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			callers.Go(func() {
				if err := r.Record(t.Context(), "a",
					[]provider.Inbound{text(fmt.Sprint(i))}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // until it waits in the queue
		}
		r.run()
		callers.Wait()
		if got, n := store.stored(), len(store.calls()); !slices.Equal(got, want) || n != 1 {
			t.Errorf("%d calls of %v", n, got)
		}
		r.stop()
	})
}

func TestALongCallbackIsStoredInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{}
		r := newRig(t, store)
		r.run()
		if err := r.Record(t.Context(), "a", make([]provider.Inbound, 2*maxBatch+1)); err != nil {
			t.Fatal(err)
		}
		if n, calls := len(store.stored()), len(store.calls()); n != 2*maxBatch+1 ||
			calls != 3 {
			t.Errorf("%d messages in %d calls", n, calls)
		}
		r.stop()
	})
}

func TestMessagesAreRecordedAgainUnderTheSameIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		store := &scriptedStore{answer: func([]ledger.Inbound) error {
			if failures--; failures >= 0 {
				return errLost
			}
			return nil
		}}
		r := newRig(t, store)
		r.run()
		if !r.Take("a", text("hello")) {
			t.Error("the message was not acknowledged")
		}
		if tried := store.calls(); len(tried) != 3 || !slices.Equal(tried[0], tried[2]) {
			t.Errorf("tried %v", tried)
		}
		r.stop()
	})
}

func TestWhileTheDatabaseIsAwayNoRequestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		store := &scriptedStore{answer: func([]ledger.Inbound) error {
			if !back.Load() {
				return errLost
			}
			return nil
		}}
		r := newRig(t, store)
		r.run()
		began := time.Now()
		if r.Take("a", text("one")) {
			t.Error("the message was acknowledged while the database was away")
		}
		if took := time.Since(began); took > recordTimeout+longestPause {
			t.Errorf("refused after %v", took)
		}
		began = time.Now()
		if err := r.Record(t.Context(), "a", []provider.Inbound{text("two")}); !errors.Is(err,
			errAway) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		back.Store(true)
		time.Sleep(awayPause) // the bubble's clock
		if !r.Take("a", text("three")) {
			t.Error("the message was not acknowledged when the database was back")
		}
		if got := store.stored(); !slices.Equal(got, []string{"three"}) {
			t.Errorf("stored %v", got)
		}
		r.stop()
	})
}

func TestWhoGivesUpIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{}
		r := newRig(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- r.Record(ctx, "a", []provider.Inbound{text("one")}) }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		r.run()
		if !r.Take("a", text("two")) || !slices.Equal(store.stored(), []string{"two"}) {
			t.Errorf("stored %v", store.stored())
		}
		r.stop()
	})
}

func TestACallUnderWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		commit := make(chan struct{})
		store := &scriptedStore{answer: func([]ledger.Inbound) error { <-commit; return nil }}
		r := newRig(t, store)
		r.run()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- r.Record(ctx, "a", []provider.Inbound{text("one")}) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(commit)
		if err := <-answer; err != nil {
			t.Errorf("the provider sends again what was stored: %v", err)
		}
		r.stop()
	})
}

func TestWhatFindsNoRoomStaysWithItsProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &scriptedStore{})
		var callers sync.WaitGroup
		for range maxWaiting / maxBatch {
			callers.Go(func() {
				if err := r.Record(t.Context(), "a", make([]provider.Inbound, maxBatch)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := r.Record(t.Context(), "a", []provider.Inbound{text("more")}); !errors.Is(err,
			errFull) {
			t.Errorf("got %v", err)
		}
		r.run()
		callers.Wait()
		r.stop()
		if err := r.Record(t.Context(), "a", []provider.Inbound{text("late")}); !errors.Is(err,
			errClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestAStopBooksWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{}
		r := newRig(t, store)
		taken := make(chan bool, 1)
		go func() { taken <- r.Take("a", text("last")) }()
		synctest.Wait()
		r.stop()
		if !<-taken || !slices.Equal(store.stored(), []string{"last"}) {
			t.Errorf("stored %v", store.stored())
		}
	})
}

func TestAMessageThatCannotBeStoredKeepsBackNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{answer: func(in []ledger.Inbound) error {
			if slices.ContainsFunc(in, func(m ledger.Inbound) bool { return m.Text == "bad" }) {
				return &pgconn.PgError{Code: "22021"}
			}
			return nil
		}}
		r := newRig(t, store)
		results := map[string]chan bool{
			"one": make(chan bool, 1), "bad": make(chan bool, 1),
			"two": make(chan bool, 1),
		}
		for what, result := range results {
			go func() { result <- r.Take("a", text(what)) }()
		}
		synctest.Wait()
		r.run()
		for what, result := range results {
			if taken := <-result; taken != (what != "bad") {
				t.Errorf("%s: got acknowledged %t", what, taken)
			}
		}
		r.stop()
	})
}

func TestPartsAndMemoryAreSwept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{overdue: []int{500, 3, 0, 0, 1}}
		r := newRig(t, store)
		r.run()
		time.Sleep(partsEvery + time.Second) // the bubble's clock
		synctest.Wait()
		if sweeps, _, after := store.sweepCounts(); sweeps != 3 || after != 10*time.Minute {
			t.Errorf("%d sweeps for parts older than %v", sweeps, after)
		}
		time.Sleep(forgetEvery)
		synctest.Wait()
		if _, forgot, _ := store.sweepCounts(); forgot != 1 {
			t.Errorf("got %d sweeps of the memory", forgot)
		}
		r.stop()
	})
}

func TestMetricsShowNoNumberAndNoText(t *testing.T) {
	t.Parallel()
	r := newRig(t, &scriptedStore{})
	r.run()
	if !r.Take("a", text("stop")) || !r.Take("a", text("very secret")) {
		t.Fatal("the message was not acknowledged")
	}
	r.stop()
	r.Take("a", text("late"))
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"7700900123", "15550100", "secret"} {
		if bytes.Contains(out.Bytes(), []byte(secret)) {
			t.Errorf("metrics show %s", secret)
		}
	}
	for _, want := range []string{
		`dispatcher_inbound_arrived_total{channel="a",result="taken"} 2`,
		`dispatcher_inbound_arrived_total{channel="a",result="refused"} 1`,
		`dispatcher_inbound_messages_total{channel="a",keyword="stop"} 1`,
		`dispatcher_inbound_messages_total{channel="a",keyword="none"} 1`,
	} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
}

func TestConfigurationsThatLackAPartAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no error")
	}
}

// farStore takes four seconds for a call, as over a new connection to a database a second away.
type farStore struct{ *scriptedStore }

func (s farStore) Record(
	ctx context.Context, in []ledger.Inbound, react func(*ledger.Subscribed) ledger.Reaction,
) (ledger.InboxResult, error) {
	select {
	case <-time.After(4 * time.Second):
		return s.scriptedStore.Record(ctx, in, react)
	case <-ctx.Done():
		return ledger.InboxResult{}, ctx.Err()
	}
}

// TestACallInADatabaseThatIsFarAwayIsNotCutOff: the provider gets its answer when the call is
// done.
func TestACallInADatabaseThatIsFarAwayIsNotCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{}
		r := newRig(t, farStore{store})
		r.run()
		if !r.Take("a", text("hello")) {
			t.Error("the message was not acknowledged")
		}
		r.stop()
		if len(store.texts) != 1 {
			t.Errorf("stored: %v", store.texts)
		}
	})
}

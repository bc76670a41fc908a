package ledger_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// rig is an empty database with a registered ledger and a second connection. Tests use it one after
// the other, because new server processes and newly planned statements take most of the time of a
// small test.
type rig struct {
	url   string
	l     *ledger.Ledger
	db    *pgx.Conn
	empty func(context.Context) error
	// more are further instances that tests opened with connect. The first used are in use.
	more []*ledger.Ledger // guarded by rigs.mu
	used int              // guarded by rigs.mu
}

var rigs struct {
	mu   sync.Mutex
	free []*rig          // that no test uses at the moment; guarded by mu
	lent map[string]*rig // by their url; guarded by mu
}

// lend returns a rig for one test.
func lend(t testing.TB) *rig {
	t.Helper()
	tier.OneWindow(t, 24*time.Hour)
	r := freeRig()
	if r == nil {
		r = newRig(t)
	}
	r.borrow(t)
	t.Cleanup(func() { r.giveBack(t) })
	return r
}

func (r *rig) borrow(t testing.TB) {
	t.Helper()
	rigs.mu.Lock()
	if rigs.lent == nil {
		rigs.lent = map[string]*rig{}
	}
	rigs.lent[r.url] = r
	rigs.mu.Unlock()
	if err := r.l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// oneMore returns another registered instance over the rig that is lent under this url, or nil if
// none is.
func oneMore(t testing.TB, url string) *ledger.Ledger {
	t.Helper()
	rigs.mu.Lock()
	defer rigs.mu.Unlock()
	r := rigs.lent[url]
	if r == nil {
		return nil
	}
	if r.used == len(r.more) {
		// It outlives the test, as the rig.
		l, err := ledger.Connect(context.WithoutCancel(t.Context()), ledger.Config{
			URL: asApp(url), Region: "test", Host: "rig",
		})
		if err != nil {
			t.Fatal(err)
		}
		r.more = append(r.more, l)
	}
	l := r.more[r.used]
	r.used++
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func freeRig() *rig {
	rigs.mu.Lock()
	defer rigs.mu.Unlock()
	last := len(rigs.free) - 1
	if last < 0 {
		return nil
	}
	r := rigs.free[last]
	rigs.free = rigs.free[:last]
	return r
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{}
	r.url, r.empty = ledgertest.Lasting(t)
	// The rig outlives the test.
	ctx := context.WithoutCancel(t.Context())
	l, err := ledger.Connect(ctx, ledger.Config{
		URL: asApp(r.url), Region: "test", Host: "rig",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.l = l
	if r.db, err = pgx.Connect(ctx, r.url); err != nil {
		t.Fatal(err)
	}
	return r
}

// giveBack empties a rig for the next test; one on which that fails is closed.
func (r *rig) giveBack(t testing.TB) {
	t.Helper()
	rigs.mu.Lock()
	delete(rigs.lent, r.url)
	rigs.mu.Unlock()
	for _, l := range r.ledgers() {
		if !allGivenBack(l) {
			t.Errorf("%d claims were neither committed nor rolled back", l.Held())
			return // Close would wait for ever
		}
	}
	// t.Context has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), tier.LongestWait)
	defer cancel()
	if t.Failed() || r.reset(ctx) != nil {
		r.close(ctx)
		return
	}
	rigs.mu.Lock()
	defer rigs.mu.Unlock()
	rigs.free = append(rigs.free, r)
}

// ledgers are those that the test has used.
func (r *rig) ledgers() []*ledger.Ledger {
	return append([]*ledger.Ledger{r.l}, r.more[:r.used]...)
}

func (r *rig) reset(ctx context.Context) error {
	for _, l := range r.ledgers() {
		if l != r.l && l.Closed() {
			continue
		}
		l.LetGo()
		if err := l.Instances.Leave(ctx); err != nil {
			return err
		}
	}
	r.more = slices.DeleteFunc(r.more, (*ledger.Ledger).Closed)
	r.used = 0
	if _, err := r.db.Exec(ctx,
		`rollback; reset all; select pg_advisory_unlock_all()`); err != nil {
		return err
	}
	return r.empty(ctx)
}

func (r *rig) close(ctx context.Context) {
	_ = r.db.Close(ctx) // the test may have cut it
	r.l.Close()
	for _, l := range r.more {
		l.Close()
	}
}

// closeRigs closes those that are left at the end of all tests.
func closeRigs() {
	for r := freeRig(); r != nil; r = freeRig() {
		r.close(context.Background())
	}
}

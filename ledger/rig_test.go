package ledger_test

import (
	"context"
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
}

// rigs are those that no test uses at the moment.
var rigs struct {
	mu   sync.Mutex
	free []*rig // guarded by mu
}

// lend returns a rig for one test.
func lend(t testing.TB) *rig {
	t.Helper()
	tier.OneWindow(t, 24*time.Hour)
	r := freeRig()
	if r == nil {
		r = newRig(t)
	}
	if err := r.l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.giveBack(t) })
	return r
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
	if !allGivenBack(r.l) {
		t.Errorf("%d claims were neither committed nor rolled back", r.l.Held())
		return // Close would wait for ever
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

func (r *rig) reset(ctx context.Context) error {
	r.l.LetGo()
	if err := r.l.Instances.Leave(ctx); err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx,
		`rollback; reset all; select pg_advisory_unlock_all()`); err != nil {
		return err
	}
	return r.empty(ctx)
}

func (r *rig) close(ctx context.Context) {
	_ = r.db.Close(ctx) // the test may have cut it
	r.l.Close()
}

// closeRigs closes those that are left at the end of all tests.
func closeRigs() {
	for r := freeRig(); r != nil; r = freeRig() {
		r.close(context.Background())
	}
}

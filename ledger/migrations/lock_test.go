package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// blocked is a migration of a table that another session reads in an open transaction.
type blocked struct {
	url    string
	db     *pgx.Conn
	reader *pgx.Conn
	done   chan error
}

func newBlocked(ctx context.Context, t *testing.T) *blocked {
	t.Helper()
	b := &blocked{url: ledgertest.Fresh(t), done: make(chan error, 1)}
	b.db, b.reader = opened(t, b.url), opened(t, b.url+"&application_name=dump")
	next := fmt.Sprintf("%03d_next.sql", migrations.Latest()+1)
	files := filesBefore(t, next)
	files[next] = &fstest.MapFile{
		Data: []byte(`alter table dispatcher.channels add column next integer`),
	}
	if _, err := b.reader.Exec(t.Context(), `begin; select from dispatcher.channels`); err != nil {
		t.Fatal(err)
	}
	go func() { b.done <- migrations.MigrateFrom(ctx, b.url, files) }()
	return b
}

// waits is awaited: the migration waits for its lock, or it pauses.
func (b *blocked) waits(t *testing.T, want bool) {
	t.Helper()
	tier.Eventually(t, fmt.Sprintf("the migration waits: %v", want), func() (is bool) {
		if err := b.db.QueryRow(t.Context(), `select exists (select from pg_locks
			where relation = 'dispatcher.channels'::regclass and mode = 'AccessExclusiveLock'
			  and not granted)`).Scan(&is); err != nil {
			t.Fatal(err)
		}
		return is == want
	})
}

// TestClaimsGoOnWhileAMigrationWaits for a transaction that reads the table. It is carried out when
// that has ended.
func TestClaimsGoOnWhileAMigrationWaits(t *testing.T) {
	t.Parallel()
	b := newBlocked(t.Context(), t)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: b.url, Region: "test", Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.waits(t, true)
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{Due: 1, Channels: []string{"a"}})
	if err != nil {
		t.Fatal("a claim waits as long as the migration: ", err)
	}
	tx.Rollback()
	select {
	case err := <-b.done:
		t.Fatalf("migrated below a reader: %v", err)
	default:
	}
	if _, err := b.reader.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-b.done; err != nil {
		t.Error(err)
	}
	if v := version(t, b.url, `select next from dispatcher.channels`); v != migrations.Latest()+1 {
		t.Errorf("version %d", v)
	}
}

// TestAMigrationThatIsStoppedSaysWhatWasInItsWay, to a user who may not see what others do.
func TestAMigrationThatIsStoppedSaysWhatWasInItsWay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	b := newBlocked(ctx, t)
	for range 2 {
		b.waits(t, true)
		b.waits(t, false)
	}
	b.waits(t, true)
	stop()
	if err := <-b.done; err == nil || !strings.Contains(err.Error(),
		"_next.sql: ERROR: canceling statement due to lock timeout (SQLSTATE 55P03); meanwhile "+
			"the ledger was in use by session ") || !strings.HasSuffix(err.Error(), " (dump)") {
		t.Errorf("got %v", err)
	}
}

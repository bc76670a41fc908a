package primary_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/primary"
)

// TestACommitWhoseWaitIsCancelledCountsAsLost: the server answers it like any other, whether it was
// asked for or follows a statement.
func TestACommitWhoseWaitIsCancelledCountsAsLost(t *testing.T) {
	t.Parallel()
	server := ledgertest.Server(t, nil)
	defer ledgertest.WaitForNobody(t, server.URL())()
	canceller, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer canceller.Close(t.Context()) //nolint:errcheck // The server is stopped anyway.
	for _, sql := range []string{
		`set synchronous_commit = local`,
		`alter role current_user set client_min_messages = 'error'`,
	} {
		if _, err := canceller.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for name, work := range map[string]func(*pgx.Conn) error{
		"a simple query": func(conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(), `create table simple ()`)
			return err
		},
		"a prepared statement": func(conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(),
				`select $1::int from pg_logical_emit_message(true, '', '')`, 1)
			return err
		},
		"a batch": func(conn *pgx.Conn) error {
			batch := &pgx.Batch{}
			for _, sql := range []string{`begin`, `create table batched ()`, `commit`} {
				batch.Queue(sql)
			}
			return conn.SendBatch(t.Context(), batch).Close()
		},
	} {
		conn, err := connect(t, new(primary.Guard), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			`set synchronous_commit = local`,
			`create table if not exists one ()`, `set synchronous_commit = on`,
		} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal("a commit that waits for nobody counts as lost", err)
			}
		}
		if err := whileCancelled(t, canceller, func() error {
			return work(conn)
		}); err == nil || !conn.IsClosed() {
			t.Errorf("%s: closed %v after %v", name, conn.IsClosed(), err)
		}
	}
}

// whileCancelled does some work, and cancels all waits for the standby until it is done.
func whileCancelled(t testing.TB, canceller *pgx.Conn, work func() error) error {
	t.Helper()
	done := make(chan error)
	go func() { done <- work() }()
	for cancelled := false; ; {
		select {
		case err := <-done:
			if !cancelled {
				t.Error("it did not wait for the standby")
			}
			return err
		case <-time.After(10 * time.Millisecond):
			tag, err := canceller.Exec(t.Context(),
				`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`)
			if err != nil {
				t.Fatal(err)
			}
			cancelled = cancelled || tag.RowsAffected() > 0
		}
	}
}

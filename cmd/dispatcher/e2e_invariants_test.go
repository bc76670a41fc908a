package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
)

// checkThroughout checks the invariants of a database during a story, and once more at its end,
// when its processes have ended. It skips checks while the database is away.
func checkThroughout(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	found := violations{url: url}
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-time.After(3 * time.Second):
				found.check(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		watch.Wait()
		last, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		found.check(last)
		found.close(last)
		for _, detail := range found.details {
			t.Error(detail)
		}
	})
}

// violations are the first rows that violate an invariant.
type violations struct {
	url     string
	details []string
	// conn serves all checks, because planning the invariants takes most of their time in a new
	// session. It is nil until the database answers, and after it went away.
	conn *pgx.Conn
}

// check looks for violations while the database is there.
func (v *violations) check(ctx context.Context) {
	if v.conn == nil || v.conn.Ping(ctx) != nil {
		v.close(ctx)
		conn, err := pgx.Connect(ctx, v.url)
		if err != nil {
			return
		}
		v.conn = conn
	}
	today := ledger.DayAt(time.Now())
	scope := ledger.ScopeOf(today-1, today+1, 5*time.Minute)
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		rows, err := v.conn.Query(ctx, one.SQL(&scope), pgx.QueryExecModeExec)
		if err != nil {
			return
		}
		details, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return // no schema yet, or the server has gone
		}
		for _, detail := range details[:min(len(details), 3)] {
			if len(v.details) < 20 {
				v.details = append(v.details, one.Name+": "+detail)
			}
		}
	}
}

// close ends the session; nothing depends on a clean end.
func (v *violations) close(ctx context.Context) {
	if v.conn != nil {
		_ = v.conn.Close(context.WithoutCancel(ctx))
		v.conn = nil
	}
}

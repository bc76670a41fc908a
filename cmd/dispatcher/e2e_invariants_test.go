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
	var found violationsSeen
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			found.check(ctx, url)
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		watch.Wait()
		last, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		found.check(last, url)
		for _, detail := range found {
			t.Error(detail)
		}
	})
}

// violationsSeen are the first rows that violate an invariant.
type violationsSeen []string

func (v *violationsSeen) check(ctx context.Context, url string) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // It has only read.
	today := ledger.DayAt(time.Now())
	scope := ledger.ScopeOf(today-1, today+1, 5*time.Minute)
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		rows, err := conn.Query(ctx, one.SQL(&scope), pgx.QueryExecModeExec)
		if err != nil {
			return
		}
		details, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return // no schema yet, or the server has gone
		}
		for _, detail := range details[:min(len(details), 3)] {
			if len(*v) < 20 {
				*v = append(*v, one.Name+": "+detail)
			}
		}
	}
}

package main

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/config/tier"
)

// kept are the connections of stages over the shared server, by URL. Stories query the database
// twenty times a second, and a connection costs more than most statements.
var kept sync.Map // of *pgxpool.Pool

// keepConnection lets query use one connection for all queries of a test to this database.
func keepConnection(t testing.TB, url string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	kept.Store(url, pool)
	t.Cleanup(func() {
		kept.Delete(url)
		pool.Close()
	})
}

// query runs one statement. Unless keepConnection was called it opens a connection for it, so that
// it works as soon as the database is back.
func query[T any](t testing.TB, url string, collect pgx.RowToFunc[T], sql string, args ...any) []T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	var db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
	if pool, ok := kept.Load(url); ok {
		db = pool.(*pgxpool.Pool)
	} else {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx) //nolint:errcheck // Nothing depends on a clean end.
		db = conn
	}
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, collect)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// queryOne runs a statement that returns one row of one column.
func queryOne[T any](t testing.TB, url, sql string, args ...any) T {
	t.Helper()
	all := query(t, url, pgx.RowTo[T], sql, args...)
	if len(all) != 1 {
		t.Fatalf("%d rows from %s", len(all), sql)
	}
	return all[0]
}

// settled waits until the ledger holds this many messages and each is accepted or has ended.
func (s *stage) settled(messages int) {
	s.t.Helper()
	tier.Within(s.t, 2*stepTimeout, "every message is accepted or at its end", func() bool {
		type progress struct{ Total, Done int }
		p := query(s.t, s.postgres, pgx.RowToStructByPos[progress], `
			select count(*), count(*) filter (where state = 'accepted' or finished_at is not null)
			from audit.messages`)[0]
		return p.Total == messages && p.Done == messages
	})
}

type pair struct {
	Key   string
	Value string
}

// states returns the messages' states by id.
func (s *stage) states() map[string]string {
	s.t.Helper()
	return s.byID(`select id, state from audit.messages`)
}

// firstChoices returns the messages' first choices by id.
func (s *stage) firstChoices() map[string]string {
	s.t.Helper()
	return s.byID(`select id, coalesce(first_choice, '') from audit.messages`)
}

func (s *stage) byID(sql string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, p := range query(s.t, s.postgres, pgx.RowToStructByPos[pair], sql) {
		out[p.Key] = p.Value
	}
	return out
}

// count runs a statement that counts.
func (s *stage) count(sql string, args ...any) int64 {
	s.t.Helper()
	return queryOne[int64](s.t, s.postgres, sql, args...)
}

// checkLimits reports windows above their limit (see checkWindows), and active counters that are
// not back at zero.
func (s *stage) checkLimits() {
	s.t.Helper()
	s.checkWindows()
	if n := s.count(`select coalesce(sum(active), 0)::bigint from audit.active`); n != 0 {
		s.t.Errorf("%d attempts still count as active", n)
	}
}

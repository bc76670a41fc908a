package migrations_test

import (
	"context"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// opened is a connection that is closed at the end of the test.
func opened(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// filesBefore are the migrations before a version.
func filesBefore(t *testing.T, before string) fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	earlier := fstest.MapFS{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name < before {
			earlier[name] = &fstest.MapFile{Data: text}
		}
	}
	return earlier
}

// TestDaysThatWereClosedBeforeHaveSums: migration 29 adds up the figures of days that were closed
// under an earlier schema, with their corrections. Migration 34 does so for a closing that was
// committed while migration 29 ran.
func TestDaysThatWereClosedBeforeHaveSums(t *testing.T) {
	t.Parallel()
	t.Run("29", func(t *testing.T) {
		t.Parallel()
		sumsAfter(t, "029")
	})
	t.Run("34", func(t *testing.T) {
		t.Parallel()
		sumsAfter(t, "034", `delete from dispatcher.choice_sums where revision = 2`)
	})
}

func sumsAfter(t *testing.T, version string, lost ...string) {
	t.Helper()
	url := ledgertest.Empty(t)
	if err := migrations.MigrateFrom(t.Context(), url, filesBefore(t, version)); err != nil {
		t.Fatal(err)
	}
	conn := opened(t, url)
	for _, sql := range append([]string{
		`insert into dispatcher.choice_figures
			select '2026-11-21', 1 + n / 20, '2026-11-21', 1, 'r', 'a', 't' || n % 3, n % 5, 2, 0, 0, 0, 0, 3
			from generate_series(1, 30) n`,
		`insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
			select '2026-11-21', n, 'UTC', '2026-11-21', '2026-11-22', 1 from generate_series(1, 2) n`,
	}, lost...) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]int{
		`select count(*)::int from facts.wrong_sums`:                                    0,
		`select sum(messages)::int from audit.choice_sums where split = 'none'`:         60,
		`select count(*)::int from audit.choice_sums where split = 'tenant'`:            6,
		`select sum(segments)::int from audit.choice_sums where split = 'country'`:      90,
		`select count(distinct split)::int from audit.choice_sums where sender is null`: 4,
	} {
		var got int
		if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %d and error %v, want %d", sql, got, err, want)
		}
	}
}

package migrations_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestDaysThatWereClosedBeforeHaveSums: migration 29 adds up the figures of days that were closed
// under an earlier schema, with their corrections.
func TestDaysThatWereClosedBeforeHaveSums(t *testing.T) {
	t.Parallel()
	url := ledgertest.Empty(t)
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
		if name < "029" {
			earlier[name] = &fstest.MapFile{Data: text}
		}
	}
	if err := migrations.MigrateFrom(t.Context(), url, earlier); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The test is over.
	for _, sql := range []string{
		`insert into dispatcher.choice_figures
			select '2026-11-21', 1 + n / 20, '2026-11-21', 1, 'r', 'a', 't' || n % 3, n % 5, 2, 0, 0, 0, 0, 3
			from generate_series(1, 30) n`,
		`insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
			select '2026-11-21', n, 'UTC', '2026-11-21', '2026-11-22', 1 from generate_series(1, 2) n`,
	} {
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

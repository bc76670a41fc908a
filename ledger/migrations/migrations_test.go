package migrations_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

func version(t *testing.T, url, change string) (v int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	if change != "" {
		if _, err := conn.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.QueryRow(t.Context(), `select version from dispatcher.schema_version`).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestConcurrentStartsMigrateOnceAndAgainDoesNothing(t *testing.T) {
	t.Parallel()
	url := ledgertest.Empty(t)
	for range 2 {
		var starts sync.WaitGroup
		for range 6 {
			starts.Go(func() {
				if err := migrations.Migrate(t.Context(), url); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		if v := version(t, url, ""); v != migrations.Latest() || v == 0 {
			t.Errorf("version %d", v)
		}
	}
}

// An instance of the previous release may start after the schema was brought up to the next.
func TestANewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	version(t, url, `update dispatcher.schema_version set version = version + 1`)
	if err := migrations.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if v := version(t, url, ""); v != migrations.Latest()+1 {
		t.Errorf("version %d", v)
	}
}

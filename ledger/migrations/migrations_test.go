package migrations_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

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
	if err := conn.QueryRow(t.Context(), `select version from dispatcher.schema_version`).
		Scan(&v); err != nil {
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

// What a migration of two statements had done before it failed is undone, and the next start tries
// it again.
func TestAFailedMigrationLeavesTheVersionBeforeIt(t *testing.T) {
	t.Parallel()
	url := ledgertest.Empty(t)
	broken := fstest.MapFS{
		"001_first.sql": {Data: []byte("create table dispatcher.first ();")},
		"002_second.sql": {Data: []byte(
			"create table dispatcher.second ();\n\n-- ääääääää\ncreate tabel dispatcher.third " +
				"();\n")},
	}
	err := migrations.MigrateFrom(t.Context(), url, broken)
	if err == nil || !strings.Contains(err.Error(),
		"migrate from version 1: 002_second.sql, line 4: ") {
		t.Fatalf("got %v", err)
	}
	if v := version(t, url, ""); v != 1 {
		t.Errorf("version %d", v)
	}
	broken["002_second.sql"] = &fstest.MapFile{Data: []byte("create table dispatcher.second ();")}
	if err := migrations.MigrateFrom(t.Context(), url, broken); err != nil {
		t.Fatal(err)
	}
	if v := version(t, url, "select from dispatcher.first, dispatcher.second"); v != 2 {
		t.Errorf("version %d", v)
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"003_b.sql stands where 002_… is expected": {"001_a.sql", "003_b.sql"},
		"001_b.sql stands where 002_… is expected": {"001_a.sql", "001_b.sql"},
		"a.sql stands where 001_… is expected":     {"a.sql"},
	} {
		files := fstest.MapFS{}
		for _, name := range names {
			files[name] = &fstest.MapFile{}
		}
		got := ""
		if err := migrations.MigrateFrom(t.Context(), "postgres://[", files); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: got %q, want %q", names, got, want)
		}
	}
}

func databaseOf(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Database
}

// A user who may read the version but create nothing starts the dispatcher on a schema that its
// owner has migrated.
func TestAUserWhoMayCreateNothingFindsTheSchemaUpToDate(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	role := "clerk_of_" + databaseOf(t, url) // roles belong to the server, which other tests share
	version(t, url, fmt.Sprintf(
		`create role %[1]s; grant usage on schema dispatcher to %[1]s; grant select on dispatcher.schema_version, dispatcher.schema_migrations to %[1]s`, role))
	clerk := url + "&options=-c%20role%3D" + role
	if err := migrations.Migrate(t.Context(), clerk); err != nil {
		t.Error(err)
	}
	version(t, url, `delete from dispatcher.schema_migrations where version = (select version
		from dispatcher.schema_version); update dispatcher.schema_version
		set version = version - 1`)
	if err := migrations.Migrate(t.Context(), clerk); err == nil || !strings.Contains(err.Error(),
		"SQLSTATE 42501") {
		t.Errorf("got %v", err)
	}
}

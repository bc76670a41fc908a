package migrations_test

import (
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// shape is what the statements of a release name: columns with their types, and functions with
// their results. Needed are the columns of tables that an insert must name.
type shape struct {
	types  map[string]string
	tables map[string]bool
	needed map[string]string // column to table
}

func shapeOf(t *testing.T, conn *pgx.Conn) shape {
	t.Helper()
	s := shape{map[string]string{}, map[string]bool{}, map[string]string{}}
	rows, err := conn.Query(t.Context(), `
		select n.nspname || '.' || c.relname, a.attname::text, format_type(a.atttypid, a.atttypmod),
		  a.attnotnull and not a.atthasdef and a.attidentity = '' and c.relkind in ('r', 'p')
		from pg_attribute a join pg_class c on c.oid = a.attrelid
		  join pg_namespace n on n.oid = c.relnamespace
		where n.nspname in ('dispatcher', 'audit', 'facts') and c.relkind in ('r', 'p', 'v')
		  and not c.relispartition and a.attnum > 0 and not a.attisdropped
		union all
		select '', p.oid::regprocedure::text, pg_get_function_result(p.oid), false
		from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where n.nspname in ('dispatcher', 'audit', 'facts')`)
	if err != nil {
		t.Fatal(err)
	}
	var table, column, kind string
	var needed bool
	if _, err := pgx.ForEachRow(rows, []any{&table, &column, &kind, &needed}, func() error {
		s.types[table+" "+column], s.tables[table] = kind, true
		if needed {
			s.needed[table+" "+column] = table
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMigrationsOnlyAdd: after each migration everything is still there that the release before
// names, with the same type, and its inserts need not name more. So instances of that release go on
// while the others are replaced, and it may be started again.
//
// A stricter constraint or trigger is not found by this, nor that rows are stored elsewhere: look
// at those by hand.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	url := ledgertest.Empty(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The test is over.
	names, err := fs.Glob(os.DirFS("."), "*.sql")
	if err != nil || len(names) != migrations.Latest() {
		t.Fatalf("%d files, %v", len(names), err)
	}
	slices.Sort(names)
	before, files := shape{}, fstest.MapFS{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
		if err := migrations.MigrateFrom(t.Context(), url, files); err != nil {
			t.Fatal(err)
		}
		after := shapeOf(t, conn)
		for what, kind := range before.types {
			if now, ok := after.types[what]; !ok || now != kind {
				t.Errorf("%s: %s was %s and is now %q", name, what, kind, now)
			}
		}
		for what, table := range after.needed {
			if _, was := before.needed[what]; !was && before.tables[table] {
				t.Errorf("%s: inserts into %s must name %s now", name, table, what)
			}
		}
		before = after
	}
}

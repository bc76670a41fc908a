package migrations_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

const (
	first  = "create table dispatcher.first (a integer);\n-- the end\n"
	second = "create table dispatcher.second ();\n"
)

func files(sql ...string) fstest.MapFS {
	names := []string{"001_first.sql", "002_second.sql", "003_third.sql"}
	all := fstest.MapFS{}
	for i, text := range sql {
		all[names[i]] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// TestASchemaOfAnotherBuildIsRefused migrates with one build's files and then with another's.
func TestASchemaOfAnotherBuildIsRefused(t *testing.T) {
	t.Parallel()
	const foreign, unrecorded = "migration 1 is not 001_first.sql of this one",
		"before the first release: there is no checksum of migration 1"
	for name, c := range map[string]struct {
		later  fstest.MapFS
		change string // of the database, in between
		want   string // part of the sentence; empty when it goes on
	}{
		"the same": {files(first, second), "", ""},
		"one more": {
			files(first, second, "create table dispatcher.third ();"),
			"", "",
		},
		"one less: a later build's": {files(first), "", ""},
		"other line ends": {
			files(strings.ReplaceAll(first, "\n", "\r\n"), second+"\n\n"), "", "",
		},
		"blanks at the end of lines": {
			files(strings.ReplaceAll(first, "\n", " \t\n"), "\ufeff"+second), "", "",
		},
		"no line end at the end": {files(strings.TrimSpace(first), second), "", ""},
		"another column": {
			files(strings.Replace(first, "integer", "bigint", 1), second), "", foreign,
		},
		"blanks inside a line": {
			files(strings.Replace(first, "a integer", "a  integer", 1), second), "", foreign,
		},
		"the second is another": {
			files(first, second+"select 1;"), "",
			"migration 2 is not 002_second.sql of this one",
		},
		"both in one":         {files(first + second), "", foreign},
		"the other way round": {files(second, first), "", foreign},
		"none is recorded": {
			files(first, second), "delete from dispatcher.schema_migrations", unrecorded,
		},
		"no table of checksums": {
			files(first, second), "drop table dispatcher.schema_migrations", unrecorded,
		},
		"the last one is not recorded": {
			files(first, second),
			"delete from dispatcher.schema_migrations where version = 2",
			"no checksum of migration 2 (002_second.sql)",
		},
		"a version of nothing, no sums": {
			files(first),
			"drop table dispatcher.schema_migrations, dispatcher.first; delete from " +
				"dispatcher.schema_version", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := ledgertest.Empty(t)
			if err := migrations.MigrateFrom(t.Context(), url, files(first, second)); err != nil {
				t.Fatal(err)
			}
			execute(t, url, c.change)
			err := migrations.MigrateFrom(t.Context(), url, c.later)
			var conflict *migrations.ConflictError
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.As(err, &conflict) || !strings.Contains(err.Error(),
				c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestARefusedSchemaIsLeftAsItIs: nothing of the other build's is carried out.
func TestARefusedSchemaIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	url := ledgertest.Empty(t)
	if err := migrations.MigrateFrom(t.Context(), url, files(first)); err != nil {
		t.Fatal(err)
	}
	if err := migrations.MigrateFrom(t.Context(), url,
		files(first+"select 1;", second)); err == nil {
		t.Fatal("not refused")
	}
	if v := version(t, url, "create table dispatcher.second ()"); v != 1 {
		t.Errorf("version %d", v)
	}
}

func TestInspectTellsOfASchemaOfAnotherBuild(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	if c, err := ledger.Inspect(t.Context(), url); err != nil || c.Conflict != nil ||
		c.Schema != c.Latest {
		t.Errorf("%+v, %v", c, err)
	}
	execute(t, url, "update dispatcher.schema_migrations set checksum = 'x' where version = 2")
	c, err := ledger.Inspect(t.Context(), url)
	if err != nil || c.Conflict == nil || !strings.Contains(c.Conflict.Error(),
		"migration 2 is not 002_") || c.Schema != c.Latest {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestTheStatementOfTheUpgradeRecordsTheseMigrations runs what docs/deploy.md says for a database
// of schema 26. It also fails when one of these files is edited.
func TestTheStatementOfTheUpgradeRecordsTheseMigrations(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "### A schema of version 26")
	_, rest, _ = strings.Cut(rest, "```sql\n")
	statement, _, _ := strings.Cut(rest, "```")
	last := regexp.MustCompile(`version = 26 and checksum =\s+'(\w+)'`).FindStringSubmatch(statement)
	if last == nil {
		t.Fatalf("docs/deploy.md: %q", statement)
	}
	url := ledgertest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	if _, err := conn.Exec(t.Context(), statement); err == nil {
		t.Error("it changes a schema of another version")
	}
	execute(t, url, `delete from dispatcher.schema_migrations;
		insert into dispatcher.schema_migrations (version, name, checksum)
		select n, 'of before', case when n = 26 then '`+last[1]+`' else '' end
		from generate_series(1, 26) n;
		update dispatcher.schema_version set version = 26`)
	var conflict *migrations.ConflictError
	if _, err := migrations.Check(t.Context(), conn); !errors.As(err, &conflict) {
		t.Errorf("before: %v", err)
	}
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if v, err := migrations.Check(t.Context(), conn); err != nil || v != 12 {
		t.Errorf("after: version %d, %v", v, err)
	}
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	if sql != "" {
		version(t, url, sql+
			"; insert into dispatcher.schema_version select 0 where not exists (select from "+
			"dispatcher.schema_version)")
	}
}

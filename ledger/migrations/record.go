package migrations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ConflictError means that migrations of another build made the schema. Its version may be the one
// that this build expects, but its tables may be others.
type ConflictError struct {
	// Version is the first migration that differs, and Name its file in this build.
	Version int
	Name    string
	// Unrecorded is set when the database has no checksum of that migration. Every release stores
	// them, so no release made this schema.
	Unrecorded bool
}

// Error says what is wrong and what to do.
func (e *ConflictError) Error() string {
	return e.Problem() + ": use the build that made it, begin with an empty database, or see " +
		"Upgrade in docs/deploy.md"
}

// Problem is the first half of the sentence, for callers that give other advice.
func (e *ConflictError) Problem() string {
	if e.Unrecorded {
		return fmt.Sprintf("the ledger's schema was made by a build before the first release: "+
			"there is no checksum of migration %d (%s)", e.Version, e.Name)
	}
	return fmt.Sprintf("the ledger's schema was made by another build: "+
		"its migration %d is not %s of this one", e.Version, e.Name)
}

// checksum is the checksum of a migration's text, without what editors and checkouts change: the
// kind of line ends, blanks at the end of lines, and empty lines at the end of the file.
func (m *migration) checksum() string {
	var text strings.Builder
	for line := range strings.Lines(strings.TrimPrefix(m.sql, "\ufeff")) {
		text.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
	}
	sum := sha256.Sum256([]byte(strings.TrimRight(text.String(), "\n")))
	return hex.EncodeToString(sum[:])
}

// schema is what a database stores about its schema.
type schema struct {
	exists   bool // table schema_version
	recorded bool // table schema_migrations
	version  int
	// checksums has the checksum of each applied migration, by version.
	checksums map[int]string
}

// readSchema changes nothing.
func readSchema(ctx context.Context, conn *pgx.Conn) (s schema, err error) {
	err = conn.QueryRow(ctx, `
		select to_regclass('dispatcher.schema_version') is not null,
		  to_regclass('dispatcher.schema_migrations') is not null`).
		Scan(&s.exists, &s.recorded)
	if err != nil || !s.exists {
		return s, err
	}
	if err := conn.QueryRow(ctx, `select coalesce(max(version), 0) from dispatcher.schema_version`).
		Scan(&s.version); err != nil || !s.recorded {
		return s, err
	}
	rows, err := conn.Query(ctx, `select version, checksum from dispatcher.schema_migrations`)
	if err != nil {
		return s, err
	}
	s.checksums = map[int]string{}
	var version int
	var checksum string
	_, err = pgx.ForEachRow(rows, []any{&version, &checksum}, func() error {
		s.checksums[version] = checksum
		return nil
	})
	return s, err
}

// check compares the applied migrations with those of this build. A schema with later migrations
// passes: migrations only add, so this build works on it.
func (s *schema) check(all []migration) error {
	for i := range all[:min(s.version, len(all))] {
		m := &all[i]
		switch applied, ok := s.checksums[m.version]; {
		case !ok:
			return &ConflictError{Version: m.version, Name: m.name, Unrecorded: true}
		case applied != m.checksum():
			return &ConflictError{Version: m.version, Name: m.name}
		}
	}
	return nil
}

// Check reads the version of the schema, 0 where there is none, and changes nothing. With a
// ConflictError it returns the version too.
func Check(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	s, err := readSchema(ctx, conn)
	if err != nil {
		return 0, err
	}
	return s.version, s.check(embedded())
}

// prepare creates the tables that store the version. It does not try to create what exists, so that
// a user who may not create anything can start the dispatcher on a migrated schema.
func (s *schema) prepare(ctx context.Context, conn *pgx.Conn) error {
	if s.exists && s.recorded {
		return nil
	}
	_, err := conn.Exec(ctx, `
		create schema if not exists dispatcher;
		create table if not exists dispatcher.schema_version (version integer not null);
		create table if not exists dispatcher.schema_migrations (
		  version integer primary key,
		  name text not null,
		  checksum text not null,
		  applied_at timestamptz not null default now()
		)`)
	return err
}

// Package migrations holds the schema of the ledger and brings a database up to it.
//
// Migrations only add: the previous release of the dispatcher keeps working on the
// new schema, so that instances can be replaced one by one. Columns and views are
// removed a release later.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"

	"dispatcher/ledger/primary"
)

//go:embed *.sql
var files embed.FS

// versionTable is where the library keeps the version of the schema.
const versionTable = "dispatcher.schema_version"

// lock makes concurrent starts wait for each other. The library takes a lock of its
// own, but only once the schema exists. The number is arbitrary.
const lock int64 = 0x6c65646765720001

// errSecret stands for every error in an address, whose text may quote the password.
var errSecret = errors.New("DISPATCHER_POSTGRES_URL is neither a valid postgres:// URL nor a valid key=value string")

// Migrate brings the schema of the database at url up to date. It is idempotent, safe
// when several processes start at once, and leaves a newer schema alone.
func Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errSecret
	}
	new(primary.Guard).Begin(ctx, &config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // The lock ends with the session in any case.
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lock); err != nil {
		return fmt.Errorf("migrate: lock: %w", err)
	}
	if _, err := conn.Exec(ctx, `create schema if not exists dispatcher`); err != nil {
		return fmt.Errorf("migrate: create schema dispatcher: %w", err)
	}
	return apply(ctx, conn)
}

func apply(ctx context.Context, conn *pgx.Conn) error {
	m, err := migrate.NewMigrator(ctx, conn, versionTable)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return fmt.Errorf("migrate: read migrations: %w", err)
	}
	current, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("migrate: read version: %w", err)
	}
	if int(current) >= len(m.Migrations) {
		return nil
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate from version %d: %w", current, err)
	}
	return nil
}

// Latest is the version that Migrate brings a schema to.
func Latest() int {
	paths, err := migrate.FindMigrations(files)
	if err != nil {
		panic("migrations: " + err.Error()) // the files are compiled in; a test reads them
	}
	return len(paths)
}

package migrations

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/primary"
)

// RolesSQL are the statements that Roles carries out, but for the one about the retention.
//
//go:embed roles/roles.sql
var RolesSQL string

// The roles. Each belongs to the whole server, and cannot log in.
const (
	RoleOwner   = "dispatcher_owner"
	RoleApp     = "dispatcher_app"
	RoleFinance = "dispatcher_finance"
	RoleAuditor = "dispatcher_auditor"
)

// ErrNoSchema means that the tables are not those that the grants are about.
var ErrNoSchema = errors.New("the ledger's schema is of another release")

// Granted is the result of Roles.
type Granted struct {
	// Changed: a role, an owner, a grant or the retention changed. LeastKept is the minimum age at
	// which a day may be dropped.
	Changed   bool
	LeastKept time.Duration
}

// grants is a fingerprint of owners and grants.
const grants = `
	select coalesce(md5(string_agg(line, ' ' order by line)), '') from (
	  select concat_ws(' ', 'n', oid, nspowner,
	    (select array_agg(x::text order by x::text) from unnest(nspacl) x)) as line
	  from pg_namespace where nspname in ('dispatcher', 'audit', 'facts')
	  union all
	  select concat_ws(' ', 'c', c.oid, c.relowner,
	    (select array_agg(x::text order by x::text) from unnest(c.relacl) x))
	  from pg_class c join pg_namespace n on n.oid = c.relnamespace
	  where n.nspname in ('dispatcher', 'audit', 'facts')
	  union all
	  select concat_ws(' ', 'a', a.attrelid, a.attnum,
	    (select array_agg(x::text order by x::text) from unnest(a.attacl) x))
	  from pg_attribute a join pg_class c on c.oid = a.attrelid
	    join pg_namespace n on n.oid = c.relnamespace
	  where n.nspname in ('dispatcher', 'audit', 'facts') and a.attacl is not null
	  union all
	  select concat_ws(' ', 'p', p.oid, p.proowner,
	    (select array_agg(x::text order by x::text) from unnest(p.proacl) x))
	  from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'dispatcher'
	  union all
	  select concat_ws(' ', 'm', roleid, member) from pg_auth_members
	  where (roleid::regrole::text like 'dispatcher\_%'
	    and member in (current_user::regrole, to_regrole('dispatcher_auditor')))
	  union all
	  select concat_ws(' ', 'r', rolname) from pg_roles where rolname in
	    ('dispatcher_owner', 'dispatcher_app', 'dispatcher_finance', 'dispatcher_auditor')
	) as lines`

// Roles creates the roles of the dispatcher and grants each what it needs, in one transaction. From
// then on no day that is younger than leastKept is dropped, whatever a login of RoleApp asks for.
// The schema has to be up to date, else it returns ErrNoSchema.
func Roles(ctx context.Context, url string, leastKept time.Duration) (done Granted, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return done, errSecret
	}
	new(primary.Guard).Begin(ctx, &config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return done, fmt.Errorf("grant roles: %w", err)
	}
	//nolint:errcheck // The lock ends with the session in any case.
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lock); err != nil {
		return done, fmt.Errorf("grant roles: lock: %w", err)
	}
	switch version, err := Check(ctx, conn); {
	case err != nil:
		return done, err
	case version != Latest():
		return done, ErrNoSchema
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var before, after string
		if err := tx.QueryRow(ctx, grants).Scan(&before); err != nil {
			return err
		}
		// the first call changes the owner of tables, and claims queue behind its wait for a lock
		if _, err := tx.Exec(ctx, `set local lock_timeout = '1s';`+RolesSQL); err != nil {
			return err
		}
		kept, err := tx.Exec(ctx, `update dispatcher.least_kept set facts = $1
			where facts <> $1`, leastKept)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, grants).Scan(&after)
		done = Granted{Changed: before != after || kept.RowsAffected() > 0, LeastKept: leastKept}
		return err
	})
	if err != nil {
		return Granted{}, fmt.Errorf("grant roles: %w", err)
	}
	return done, nil
}

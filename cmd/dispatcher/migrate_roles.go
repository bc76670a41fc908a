package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
)

// grantedRole is a role and its rights in plain words.
type grantedRole struct {
	Role string `json:"role"`
	May  string `json:"may"`
}

// rolesMay describes the grants of each role.
var rolesMay = []grantedRole{
	{migrations.RoleOwner, "owns the schemas: may migrate, and alter or drop anything in them"},
	{
		migrations.RoleApp, "run the dispatcher and all commands of operators: read everything, " +
			"add rows, and change what changes by itself. Not: create, alter or drop a table, " +
			"delete a message, change what an attempt was, a routing version or a past window",
	},
	{
		migrations.RoleFinance, "read the views of the schemas audit and facts, hence use " +
			"report, explain, audit verify and reconcile, whose results it signs off. Not: see a " +
			"number or a text, touch a table, write anything else",
	},
	{
		migrations.RoleAuditor, "all that finance may, and see which draw keys were used. The " +
			"keys are in no database: give the auditor the file",
	},
}

// rolesGranted is what migrate --roles prints.
type rolesGranted struct {
	Schema schemaChange  `json:"schema"`
	Roles  []grantedRole `json:"roles"`
	// Changed says that something was different before.
	Changed bool `json:"changed"`
	// LeastKeptDays is the age, in days, up to which only the owner can drop recorded history.
	LeastKeptDays float64 `json:"least_kept_days"`
}

// grantRoles creates the roles and prints what each may do.
func (c *cli) grantRoles(
	ctx context.Context, s *config.Settings, change schemaChange, as format,
) error {
	done, err := ledger.GrantRoles(ctx, s.PostgresURL, s.LedgerRetention)
	if err != nil {
		return usage(rolesTrouble(s, err))
	}
	found := rolesGranted{change, rolesMay, done.Changed, done.LeastKept.Hours() / 24}
	if as != formatTable {
		return as.write(c.out, found, list(as, rolesMay, keys[grantedRole]("", "role", "may")...))
	}
	changed := "Everything was granted already."
	if done.Changed {
		changed = "Granted."
	}
	fmt.Fprintln(c.out, wrapped(fmt.Sprintf("%s Days are kept for %g days at least. The roles "+
		"cannot log in; make logins that can, for example: create role alice login in role %s",
		changed, found.LeastKeptDays, migrations.RoleFinance), 100))
	fmt.Fprintln(c.out)
	list(as, rolesMay, []column[grantedRole]{
		{key: "role"}, {key: "may", width: 70},
	}...).draw(c.out)
	return nil
}

// rolesTrouble says what an administrator can do when this login may not.
func rolesTrouble(s *config.Settings, err error) error {
	if errors.Is(err, migrations.ErrNoSchema) {
		return fmt.Errorf("%w: use the dispatcher of the release that made it", err)
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (pg.Code == "55P03" || pg.Code == "40P01"):
		return fmt.Errorf("a table is in use (%s): nothing was changed, so try again", pg.Message)
	case !ok || pg.Code != "42501":
		return databaseTrouble(s, err)
	}
	return fmt.Errorf("this login may not do that (%s): it must be allowed to create roles, and own "+
		"the schemas dispatcher, audit and facts, and the database; or have a superuser run "+
		"\"dispatcher migrate --roles --print | psql DATABASE\"", pg.Message)
}

// printRoles prints the statements of grantRoles, as one transaction for psql.
func (c *cli) printRoles(s *config.Settings) error {
	_, err := fmt.Fprintf(c.out, "begin;\n\n%s\nupdate dispatcher.least_kept set facts = '%g days';"+
		"\n\ncommit;\n", migrations.RolesSQL, s.LedgerRetention.Truncate(time.Hour).Hours()/24)
	return err
}

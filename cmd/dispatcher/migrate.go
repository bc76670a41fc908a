package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
)

// schemaChange is what the command prints.
type schemaChange struct {
	From   int  `json:"from"`
	To     int  `json:"to"`
	Latest int  `json:"latest"`
	UpTo   bool `json:"up_to_date"`
}

func (c *cli) migrateCommand() *cobra.Command {
	var as format
	var status, roles, show bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date",
		Long: `Applies the migrations that the database of DISPATCHER_POSTGRES_URL lacks.
"dispatcher run" does the same at its start; this command is for databases whose schema another
user owns. Running instances of the previous release go on working. A schema that another build's
migrations made is refused, because its tables may differ.

With --roles it also makes four roles that cannot log in, and grants each what it needs in this
database: dispatcher_owner, dispatcher_app, dispatcher_finance and dispatcher_auditor. What was
granted to them before is replaced. The schemas then belong to dispatcher_owner, and no day is
dropped before the DISPATCHER_LEDGER_RETENTION of this command is over. It takes a user who may
create roles and owns the schemas and the database, or a superuser. Others have --print and an
administrator with psql. Give --roles again after each update of the schema. docs/operations.md says
how to make the logins.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			switch {
			case show && !roles:
				return usage(errors.New("--print shows the statements of --roles: give both"))
			case roles && status:
				return usage(errors.New("--roles and --status exclude each other: name one"))
			case show:
				s, err := c.settings()
				if err != nil {
					return err
				}
				return c.printRoles(s)
			}
			s, err := c.settings(needPostgres)
			if err != nil {
				return err
			}
			change, err := migrate(ctx, s, status)
			if err != nil {
				return usage(databaseTrouble(s, err))
			}
			if roles {
				return c.grantRoles(ctx, s, change, as)
			}
			return as.write(c.out, change, list(as, []schemaChange{change},
				keys[schemaChange]("", "from", "to", "latest", "up_to_date")...))
		}),
	}
	cmd.Flags().BoolVar(&status, "status", false, "only show the version, and change nothing")
	cmd.Flags().BoolVar(&roles, "roles", false, "also make the roles and grant them their rights")
	cmd.Flags().BoolVar(&show, "print", false, "with --roles: only print its SQL, for psql")
	as.addTo(cmd.Flags())
	return cmd
}

// migrate applies the missing migrations, unless only the status is asked for.
func migrate(ctx context.Context, s *config.Settings, statusOnly bool) (schemaChange, error) {
	before, err := inspect(ctx, s)
	if err != nil {
		return schemaChange{}, err
	}
	if before.Conflict != nil {
		return schemaChange{}, before.Conflict
	}
	after := before
	if !statusOnly {
		if err := ledger.Migrate(ctx, s.PostgresURL); err != nil {
			return schemaChange{}, err
		}
		if after, err = inspect(ctx, s); err != nil {
			return schemaChange{}, err
		}
	}
	return schemaChange{
		From: before.Schema, To: after.Schema, Latest: after.Latest,
		UpTo: after.Schema >= after.Latest,
	}, nil
}

// databaseTrouble is schemaTrouble or postgresTrouble.
func databaseTrouble(s *config.Settings, err error) error {
	if _, ok := errors.AsType[*migrations.ConflictError](err); ok {
		return schemaTrouble(err, "")
	}
	return postgresTrouble(s, err)
}

// inspect reads the state of the schema within the time for a first contact.
func inspect(ctx context.Context, s *config.Settings) (ledger.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return ledger.Inspect(ctx, s.PostgresURL)
}

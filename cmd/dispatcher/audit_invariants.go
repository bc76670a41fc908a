package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
)

// invariantFlags are the flags of audit invariants.
type invariantFlags struct {
	from, to string
	all, sql bool
}

func (c *cli) auditInvariantsCommand() *cobra.Command {
	var as format
	var f invariantFlags
	cmd := &cobra.Command{
		Use:   "invariants",
		Short: "Check the guarantees on the data as they are, with SQL that anybody can read",
		Long: `Runs one SQL statement for each thing that has to hold at every moment: no limit was
exceeded, no message is forgotten, none was sent twice without being flagged. Each violation is a
sentence that names the message, the channel or the window, and the exit code is 1. It can run
beside working dispatchers: it locks nothing and changes nothing, and each statement sees the ledger
as of one moment. Repairs that take time, such as the end of a killed process's attempts, have it.

A day is the UTC day on which a message was received. What has no day, such as the slots of a
channel, is checked as it is now. --sql prints the statements, for psql.

The login of DISPATCHER_POSTGRES_URL has to be able to read the tables of schema dispatcher, as that
of "dispatcher run" is; those of finance and auditors are not, because these tables have numbers and
texts. They read the statements with --sql, and have an operator run them. "dispatcher run" checks
the same by itself, see metrics.md.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			from, to, err := f.days(time.Now())
			if err != nil {
				return usage(err)
			}
			if f.sql {
				s, err := c.settings()
				if err != nil {
					return err
				}
				return c.printInvariants(ledger.ScopeOf(from, to, app.Grace(s)))
			}
			return c.withLedger(ctx, func(l *database) error {
				return invariantsTrouble(c.checkInvariants(ctx, l, f.all, from, to, as))
			})
		}),
	}
	cmd.Flags().StringVar(&f.from, "from", "", "first UTC day, such as 2026-11-21 (default yesterday)")
	cmd.Flags().StringVar(&f.to, "to", "", "last UTC day (default today)")
	cmd.Flags().BoolVar(&f.all, "all", false, "all days that the ledger has")
	cmd.Flags().BoolVar(&f.sql, "sql", false, "print the statements and run none")
	cmd.MarkFlagsMutuallyExclusive("all", "from")
	cmd.MarkFlagsMutuallyExclusive("all", "to")
	cmd.MarkFlagsMutuallyExclusive("all", "sql")
	as.addTo(cmd.Flags())
	return cmd
}

// invariantsTrouble says who can check the invariants when this login may not.
func invariantsTrouble(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		return usage(fmt.Errorf("this login may not read the tables that the statements compare (%s). "+
			"Logins of finance and auditors read views alone: have an operator run it with a login of %s, "+
			"and read the statements with --sql", pg.Message, migrations.RoleApp))
	}
	return err
}

// days are the first and the last day to check.
func (f *invariantFlags) days(now time.Time) (from, to ledger.Day, err error) {
	from, to = ledger.DayAt(now)-1, ledger.DayAt(now)
	for _, flag := range []struct {
		name, text string
		day        *ledger.Day
	}{{"from", f.from, &from}, {"to", f.to, &to}} {
		if flag.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, flag.text)
		if err != nil {
			return 0, 0, fmt.Errorf("--%s %q is not a day: write for example 2026-11-21", flag.name,
				flag.text)
		}
		*flag.day = ledger.DayAt(at)
	}
	if f.to != "" && f.from == "" {
		from = min(from, to)
	}
	if from > to {
		return 0, 0, errors.New("--from is after --to")
	}
	return from, to, nil
}

// listedViolations is how many violations are listed; all are counted.
const listedViolations = 1000

// invariantsFound is what audit invariants found.
type invariantsFound struct {
	From       string             `json:"from"`
	To         string             `json:"to"`
	Checked    int                `json:"checked"`
	Violated   int                `json:"violated"`
	Invariants []invariantChecked `json:"invariants"`
	// Violations are the first violations.
	Violations []violation `json:"violations"`
}

// invariantChecked is one statement with the number of its violations.
type invariantChecked struct {
	Guarantee  string  `json:"guarantee"`
	Invariant  string  `json:"invariant"`
	Holds      string  `json:"holds"` // the invariant as a sentence
	Violations int     `json:"violations"`
	Seconds    float64 `json:"seconds"`
}

// violation is one violation, as a sentence.
type violation struct {
	Guarantee string `json:"guarantee"`
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

// checkInvariants runs each statement day by day, so that none processes more than a day at once.
// Statements without a day run once.
func (c *cli) checkInvariants(
	ctx context.Context, l *database, all bool, from, to ledger.Day, as format,
) error {
	first, last, err := l.Audits.Days(ctx)
	if err != nil {
		return err
	}
	if all {
		from, to = first, last
	} else {
		from, to = max(from, first), min(to, last)
	}
	if from > to {
		return usage(fmt.Errorf("the ledger has no messages of these days, only from %s to %s", first,
			last))
	}
	found := invariantsFound{From: from.String(), To: to.String(), Violations: []violation{}}
	auditor, err := l.Audits.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer auditor.Close()
	steps := int64(len(ledger.Invariants)) * int64(to-from+1)
	show, wipe := c.progress("checking", steps)
	defer wipe()
	var done int64
	for i := range ledger.Invariants {
		invariant := &ledger.Invariants[i]
		checked := invariantChecked{
			Guarantee: invariant.Guarantee, Invariant: invariant.Name, Holds: invariant.Sentence,
		}
		began := time.Now()
		for day := from; day <= to; day++ {
			if !invariant.Daily() && day > from {
				done++
				continue
			}
			scope := ledger.ScopeOf(day, day, app.Grace(l.settings))
			if all && day == from {
				scope.Since = time.Unix(0, 0) // windows may be kept for longer than messages
				if invariant.Name == "budgets_hold" {
					scope.Until = (to + 1).Begin() // its counters are over all days
				}
			}
			err := auditor.Check(ctx, invariant, &scope, func(detail string) {
				checked.Violations++
				if len(found.Violations) < listedViolations {
					found.Violations = append(found.Violations,
						violation{invariant.Guarantee, invariant.Name, detail})
				}
			})
			if err != nil {
				return err
			}
			done++
			show(done)
		}
		checked.Seconds = time.Since(began).Seconds()
		found.Checked++
		found.Violated += checked.Violations
		found.Invariants = append(found.Invariants, checked)
	}
	wipe()
	return c.printChecked(&found, as)
}

// printChecked lists the invariants and then the violations; the exit code says whether there are
// any violations.
func (c *cli) printChecked(found *invariantsFound, as format) error {
	s := invariantSheet(found, as)
	if as == formatCSV {
		s = violationSheet(found, as)
	}
	if err := as.write(c.out, found, s); err != nil {
		return err
	}
	if as == formatTable && found.Violated > 0 {
		if err := as.write(c.out, found, violationSheet(found, as)); err != nil {
			return err
		}
	}
	if found.Violated > 0 {
		return failed(nil)
	}
	return nil
}

// invariantSheet is the table of the invariants.
func invariantSheet(found *invariantsFound, as format) sheet {
	s := list(as, found.Invariants, []column[invariantChecked]{
		{key: "guarantee", width: 26},
		{key: "holds", name: "what has to hold", width: 60},
		{key: "violations", name: "result", cell: func(row *invariantChecked) any {
			switch row.Violations {
			case 0:
				return "ok"
			case 1:
				return "1 violation"
			}
			return fmt.Sprintf("%d violations", row.Violations)
		}},
	}...)
	s.title = fmt.Sprintf("messages of %s to %s (UTC): %d invariants, %d violations", found.From,
		found.To, found.Checked, found.Violated)
	return s
}

// violationSheet lists the violations.
func violationSheet(found *invariantsFound, as format) sheet {
	s := list(as, found.Violations, []column[violation]{
		{key: "guarantee", only: formatCSV},
		{key: "invariant", width: 28},
		{key: "detail", width: 80},
	}...)
	if found.Violated > len(found.Violations) {
		s.title = fmt.Sprintf("the first %d violations of %d", len(found.Violations), found.Violated)
	}
	return s
}

// printInvariants writes the statements as a script for psql.
func (c *cli) printInvariants(scope ledger.InvariantScope) error {
	for i := range ledger.Invariants {
		text := strings.TrimSpace(ledger.Invariants[i].SQL(&scope))
		if _, err := fmt.Fprintf(c.out, "%s;\n\n", text); err != nil {
			return err
		}
	}
	return nil
}

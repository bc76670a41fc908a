package ledgertest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/ledgertest/lent"
)

func TestMain(m *testing.M) { ledgertest.Main(m, lent.Close) }

func TestEveryTestGetsAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := ledgertest.URL(t), ledgertest.URL(t)
	if first == second {
		t.Fatal("two tests share a database")
	}
	conn, err := pgx.Connect(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The server is stopped anyway.
	var rows int
	if err := conn.QueryRow(t.Context(), `select count(*) from audit.messages`).
		Scan(&rows); err != nil {
		t.Fatal(err)
	}
}

// TestADatabaseServesTheNextTest: making one takes longer than most tests. The sessions of a test
// may end by themselves while the database is emptied.
func TestADatabaseServesTheNextTest(t *testing.T) {
	first := ""
	for range 3 {
		t.Run("", func(t *testing.T) {
			url := ledgertest.URL(t)
			if first == "" {
				first = url
			}
			if url != first {
				t.Error("it is another database than that of the test before")
			}
			for range 10 {
				conn, err := pgx.Connect(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					go conn.Close(context.Background()) //nolint:errcheck // Ended anyway.
				}()
			}
		})
	}
}

// TestADatabaseThatWasAlteredServesNoOtherTest: it would get other figures.
func TestADatabaseThatWasAlteredServesNoOtherTest(t *testing.T) {
	for name, change := range map[string]string{
		"view": `create or replace view audit.active as
			select channel, 1::bigint as max, active from dispatcher.channels`,
		"nullable":   `alter table dispatcher.channels alter column active drop not null`,
		"default":    `alter table dispatcher.channels alter column active drop default`,
		"column":     `alter table dispatcher.channels add column more integer`,
		"name":       `alter table dispatcher.receipts rename column part to piece`,
		"constraint": `alter table dispatcher.limits drop constraint limits_granted`,
		"index":      `drop index dispatcher.due_next_at`,
		"trigger":    `alter table dispatcher.messages disable trigger all`,
	} {
		altered := ""
		t.Run(name, func(t *testing.T) {
			altered = ledgertest.URL(t)
			run(t, altered, change)
		})
		t.Run("after "+name, func(t *testing.T) {
			if url := ledgertest.URL(t); url == altered {
				t.Error("the database was given to the next test")
			}
		})
	}
}

// TestTheNextTestFindsNoRow, neither in a table with a few rows nor in one that is truncated.
func TestTheNextTestFindsNoRow(t *testing.T) {
	rows := `select (select count(*) from dispatcher.due)
		+ (select count(*) from dispatcher.limit_history)`
	first := ""
	t.Run("first", func(t *testing.T) {
		first = ledgertest.URL(t)
		run(t, first, `insert into dispatcher.due (seq, next_at, lane, tenant, state)
			values (1, now(), 'otp', 'shop', 'waiting')`)
		run(t, first, `insert into dispatcher.limit_history (channel, scope, window_seconds, unit,
			  window_start, max, granted)
			select 'a', 'channel', 1, 'messages', now() - n * interval '1 second', 100, 50
			from generate_series(1, 20000) n`)
	})
	t.Run("next", func(t *testing.T) {
		url := ledgertest.URL(t)
		if n := run(t, url, rows); url != first || n != 0 {
			t.Errorf("%d rows are left in %s, want none in %s", n, url, first)
		}
	})
}

// run runs one statement in a session of its own, and returns its number if it has one.
func run(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // Ended anyway.
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil &&
		!errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return n
}

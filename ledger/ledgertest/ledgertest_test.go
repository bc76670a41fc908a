package ledgertest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

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
	for range 5 {
		t.Run("", func(t *testing.T) {
			url := ledgertest.URL(t)
			if first == "" {
				first = url
			}
			if url != first {
				t.Error("it is another database than that of the test before")
			}
			for range 20 {
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

// TestADatabaseWithAnotherViewServesNoOtherTest: it would get other figures.
func TestADatabaseWithAnotherViewServesNoOtherTest(t *testing.T) {
	altered := ""
	t.Run("alter", func(t *testing.T) {
		altered = ledgertest.URL(t)
		conn, err := pgx.Connect(t.Context(), altered)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context()) //nolint:errcheck // Ended anyway.
		if _, err := conn.Exec(t.Context(), `create or replace view audit.active as
			select channel, 1::bigint as max, active from dispatcher.channels`); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("next", func(t *testing.T) {
		if url := ledgertest.URL(t); url == altered {
			t.Error("the database was given to the next test")
		}
	})
}

package ledgertest_test

import (
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
	if err := conn.QueryRow(t.Context(), `select count(*) from audit.messages`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
}

package ledgertest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest/lent"
)

// TestALedgerServesTheNextTestWithoutRows, and one that a test has closed serves no other.
func TestALedgerServesTheNextTestWithoutRows(t *testing.T) {
	c := ledger.Config{Region: "lent"}
	var first, again, open *ledger.Ledger
	t.Run("the first", func(t *testing.T) {
		first, _ = lent.Ledger(t, c)
		if err := first.Instances.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "a test", Reason: "to be emptied", Document: "{}",
		}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the next", func(t *testing.T) {
		var url string
		again, url = lent.Ledger(t, c)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context()) //nolint:errcheck // The test is over.
		var rows int
		if err := conn.QueryRow(t.Context(), `select (select count(*) from dispatcher.instances) +
			(select count(*) from dispatcher.routing_versions)`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if again != first || again.Instances.ID() != 0 || rows > 0 {
			t.Errorf("the same ledger: %v, instance %d, %d rows", again == first,
				again.Instances.ID(), rows)
		}
		again.Close()
	})
	t.Run("after it was closed", func(t *testing.T) {
		open, _ = lent.Ledger(t, c)
		if err := open.Ping(t.Context()); open == again || err != nil {
			t.Errorf("the closed one: %v, error %v", open == again, err)
		}
		open.Close() // the next run (-count) begins with none
	})
}

package ledger_test

import (
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

func TestInspectTellsAnEmptyDatabaseFromAMigratedOne(t *testing.T) {
	t.Parallel()
	for want, url := range map[int]string{0: ledgertest.Empty(t), migrations.Latest(): ledgertest.URL(t)} {
		c, err := ledger.Inspect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if c.Schema != want || c.Latest != migrations.Latest() || c.Server < ledger.LeastServer {
			t.Errorf("%+v, want schema %d", c, want)
		}
		if c.Ahead.Abs() > 500*time.Millisecond { // the same machine's clock
			t.Errorf("the database is %s ahead", c.Ahead)
		}
	}
}

func TestInspectNeverRepeatsAnAddressItCannotRead(t *testing.T) {
	t.Parallel()
	_, err := ledger.Inspect(t.Context(), "postgres://user:s3cret@[broken")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

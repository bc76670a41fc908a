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
	for want, url := range map[int]string{
		0: ledgertest.Empty(t), migrations.Latest(): ledgertest.URL(t),
	} {
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

// TestInspectFindsTheOldestSnapshot of another login, which shows it no times.
func TestInspectFindsTheOldestSnapshot(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	if c, err := ledger.Inspect(t.Context(), asApp(url)); err != nil || c.Snapshot.PID != 0 {
		t.Errorf("%+v, %v", c.Snapshot, err)
	}
	other, beside := raw(t, url), raw(t, url)
	execute(t, other, `begin isolation level repeatable read`)
	pid := scalar[int](t, other, `select pg_backend_pid()`)
	const transactions = 10
	for range transactions {
		execute(t, beside, `select pg_current_xact_id()`)
	}
	c, err := ledger.Inspect(t.Context(), asApp(url))
	if err != nil || c.Snapshot.PID != pid || c.Snapshot.Login == "" ||
		c.Snapshot.Transactions < transactions {
		t.Errorf("%+v, %v, want session %d", c.Snapshot, err, pid)
	}
}

func TestInspectNeverRepeatsAnAddressItCannotRead(t *testing.T) {
	t.Parallel()
	_, err := ledger.Inspect(t.Context(), "postgres://user:s3cret@[broken")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// TestWhatMakesCommitsWeakIsSeenWhereverItIsSet in the sessions of claims as well as by Inspect.
func TestWhatMakesCommitsWeakIsSeenWhereverItIsSet(t *testing.T) {
	t.Parallel()
	server := ledgertest.Server(t, map[string]string{
		"fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on",
	})
	if err := ledger.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	db := raw(t, server.URL())
	for _, value := range []string{"on", "off", "local", "remote_write", "remote_apply"} {
		execute(t, db, `alter role current_user set synchronous_commit = '`+value+`'`)
		c, err := ledger.Inspect(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		claims, err := connect(t, ledger.Config{URL: server.URL()}).Durability(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := ledger.Durability{SynchronousCommit: value, Fsync: "on", FullPageWrites: "on"}
		if c.Durability != want || claims != want {
			t.Errorf("%+v and %+v, want %+v", c.Durability, claims, want)
		}
		weak := want.Weaknesses()
		if bad := value == "off"; bad != (len(weak) == 1) || bad &&
			(weak[0].Setting != "synchronous_commit" || weak[0].Value != value ||
				weak[0].Cost == "") {
			t.Errorf("%s: %+v", value, weak)
		}
	}
	all := ledger.Durability{SynchronousCommit: "off", Fsync: "off", FullPageWrites: "off"}
	weak := all.Weaknesses()
	if len(weak) != 3 {
		t.Fatalf("%+v", weak)
	}
	for _, w := range weak {
		if w.ServerOnly != (w.Setting != "synchronous_commit") {
			t.Errorf("%+v", w)
		}
	}
}

// TestLocalIsWeakWhereAStandbyIsNamed and nowhere else: without one, "on" also waits only for the
// disk of this server.
func TestLocalIsWeakWhereAStandbyIsNamed(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]int{"": 0, "ANY 1 (a, b)": 1} {
		server := ledgertest.Server(t, map[string]string{
			"fsync": "on", "synchronous_commit": "local", "full_page_writes": "on",
			"synchronous_standby_names": names,
		})
		c, err := ledger.Inspect(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		weak := c.Durability.Weaknesses()
		if c.Durability.SynchronousStandbyNames != names || len(weak) != want {
			t.Errorf("%q: %+v, %+v", names, c.Durability, weak)
		}
		if want > 0 && (weak[0].Value != "local" || !strings.Contains(weak[0].Cost, "a standby")) {
			t.Errorf("%+v", weak)
		}
	}
	for value, want := range map[string]int{
		"on": 0, "remote_write": 0, "remote_apply": 0,
		"off": 1,
	} {
		d := ledger.Durability{
			SynchronousCommit: value, Fsync: "on", FullPageWrites: "on",
			SynchronousStandbyNames: "a",
		}
		if weak := d.Weaknesses(); len(weak) != want {
			t.Errorf("%s: %+v", value, weak)
		}
	}
}

// TestAFollowerThatNoCommitWaitsForIsTold, until it is in synchronous_standby_names.
func TestAFollowerThatNoCommitWaitsForIsTold(t *testing.T) {
	t.Parallel()
	pair := ledgertest.NewPair(t)
	for names, want := range map[string]int{"standby": 0, "": 1} {
		d := ledger.Durability{SynchronousStandbyNames: names, Followers: 1}
		if d.Unwaited() != want {
			t.Errorf("%q: %d, want %d", names, d.Unwaited(), want)
		}
	}
	c, err := ledger.Inspect(t.Context(), pair.Primary.URL())
	if err != nil || c.Durability.Followers != 1 || c.Durability.SynchronousStandbyNames == "" {
		t.Errorf("%+v, %v", c.Durability, err)
	}
}

package primary_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/pgserver"
	"dispatcher/ledger/primary"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

// connect opens a guarded connection, which is closed at the end of the test.
func connect(t testing.TB, g *primary.Guard, url string) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	g.Configure(&config.Config)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
	}
	return conn, err
}

// both is the address of one server before the other.
func both(first, second *pgserver.Server) string {
	return strings.Replace(first.URL(), first.Address(), first.Address()+","+second.Address(), 1)
}

// TestOfAPairTheServerIsTakenThatTakesWrites before and after the standby takes over.
func TestOfAPairTheServerIsTakenThatTakesWrites(t *testing.T) {
	t.Parallel()
	pair := ledgertest.NewPair(t)
	takesWrites(t, pair)
	doesNotGoBack(t, pair)
	knowsTheSuccessor(t, pair)
}

// takesWrites checks which server is taken before the standby takes over, and that the parameters
// of the address can choose another one.
func takesWrites(t *testing.T, pair *ledgertest.Pair) {
	t.Helper()
	url := both(pair.Standby, pair.Primary)
	for parameters, standby := range map[string]bool{
		"": false, "&target_session_attrs=read-write": false, "&target_session_attrs=standby": true,
		"&target_session_attrs=prefer-standby": true,
	} {
		conn, err := connect(t, new(primary.Guard), url+parameters)
		if err != nil {
			t.Fatal(parameters, err)
		}
		var recovering bool
		if err := conn.QueryRow(t.Context(), `select pg_is_in_recovery()`).
			Scan(&recovering); err != nil || recovering != standby {
			t.Errorf("with %q it is the standby: %v, %v", parameters, recovering, err)
		}
	}
	if _, err := connect(t, new(primary.Guard), pair.Standby.URL()); err != nil {
		t.Errorf("a standby that is named alone may be read: %v", err)
	}
}

// doesNotGoBack promotes the standby. A guard that has seen the successor does not go back to the
// old primary, which still takes writes and does not know of the successor. A guard that has seen
// only the old primary cannot know better.
func doesNotGoBack(t *testing.T, pair *ledgertest.Pair) {
	t.Helper()
	var knows, knowsNot primary.Guard
	old, err := connect(t, &knows, pair.Primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	if knows.Replaced(old.PgConn()) {
		t.Error("the primary counts as replaced before anybody took over")
	}
	pair.Promote(t)
	successor, err := connect(t, &knows, both(pair.Standby, pair.Primary))
	if err != nil {
		t.Fatal(err)
	}
	if !knows.Replaced(old.PgConn()) || knows.Replaced(successor.PgConn()) {
		t.Errorf("replaced: the old one %v, the new one %v", knows.Replaced(old.PgConn()),
			knows.Replaced(successor.PgConn()))
	}
	if _, err := connect(t, &knows, pair.Primary.URL()); err == nil ||
		!strings.Contains(err.Error(),
			"timeline 1 of its cluster, and another one took over with timeline 2") {
		t.Errorf("the old primary is taken again: %v", err)
	}
	again, err := connect(t, &knows, both(pair.Primary, pair.Standby))
	if err != nil || knows.Replaced(again.PgConn()) {
		t.Errorf("of both, the old one first, it is not the successor: %v", err)
	}
	if _, err := connect(t, &knowsNot, pair.Primary.URL()); err != nil {
		t.Errorf("who knows no other has to take it: %v", err)
	}
}

// knowsTheSuccessor checks that a guard that asks all hosts knows the successor, although it began
// after the take-over and the old primary comes first in the address.
func knowsTheSuccessor(t *testing.T, pair *ledgertest.Pair) {
	t.Helper()
	for _, mode := range []string{"disable", "prefer", "allow"} { // the servers have no TLS
		url := strings.Replace(both(pair.Primary, pair.Standby), "sslmode=disable", "sslmode="+mode,
			1)
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		var fresh primary.Guard
		fresh.Begin(t.Context(), &config.Config)
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(mode, err)
		}
		var timeline string
		if err := conn.QueryRow(t.Context(),
			`select left(pg_walfile_name(pg_current_wal_lsn()), 8)`).Scan(&timeline); err != nil ||
			timeline != "00000002" {
			t.Errorf("with sslmode=%s it is on timeline %s, %v", mode, timeline, err)
		}
		_ = conn.Close(t.Context())
	}
}

func TestOneHostWithAndWithoutTLSIsOne(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"postgres://one/db?sslmode=prefer": false, "postgres://one/db?sslmode=disable": false,
		"postgres://one,two/db?sslmode=prefer": true, "postgres://one:1,one:2/db": true,
	} {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := primary.SeveralHosts(&config.Config); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

// TestAConnectionToAServerThatTakesNoWritesIsClosed, because a pool would give it out for ever.
func TestAConnectionToAServerThatTakesNoWritesIsClosed(t *testing.T) {
	t.Parallel()
	conn, err := connect(t, new(primary.Guard), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select 1/0`); err == nil || conn.IsClosed() {
		t.Fatalf("closed %v after %v", conn.IsClosed(), err)
	}
	if _, err := conn.Exec(t.Context(),
		`begin read only; delete from dispatcher.messages`); err == nil || !conn.IsClosed() {
		t.Errorf("closed %v after %v", conn.IsClosed(), err)
	}
}

package ledgertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/pgserver"
)

// Pair is a primary with a synchronous standby, both private servers of one test.
type Pair struct {
	Primary, Standby *pgserver.Server
}

// standbyName is the application_name of the standby.
const standbyName = "standby"

// NewPair starts a primary and its standby. Both are stopped at the end of the test.
//
// Both begin as copies of the folder of a stopped server, as the PostgreSQL manual (Log-Shipping
// Standby Servers) allows, because pg_basebackup is not on every machine.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	follower := filepath.Join(temporary(t), "standby")
	if err := fromImage(follower); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(follower, "data", "standby.signal"), nil,
		0o600); err != nil {
		t.Fatal(err)
	}
	p := &Pair{Primary: Server(t, nil)}
	followed := fast()
	followed["synchronous_commit"] = "on"
	followed["primary_conninfo"] = conninfo(t, p.Primary)
	p.Standby = begin(t, pgserver.Config{Dir: follower, Settings: followed})
	p.Do(t, p.Primary, `alter system set synchronous_standby_names = '`+standbyName+`'`,
		`select pg_reload_conf()`)
	p.awaitSync(t)
	return p
}

// URL is the address of both, the primary first, with parameters appended.
func (p *Pair) URL(parameters string) string {
	return strings.Replace(p.Primary.URL(), p.Primary.Address(), p.Primary.Address()+","+
		p.Standby.Address(), 1) + parameters
}

// StandbyFirst is URL with the standby first: a client that asks for a server that accepts writes
// finds the standby once it is promoted, even if the old primary comes back.
func (p *Pair) StandbyFirst(parameters string) string {
	return strings.Replace(p.URL(parameters), p.Primary.Address()+","+p.Standby.Address(),
		p.Standby.Address()+","+p.Primary.Address(), 1)
}

// Promote makes the standby take over, and returns when it accepts writes.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	p.Do(t, p.Standby, `select pg_promote()`)
}

// Do runs statements on one of the two.
func (p *Pair) Do(t testing.TB, on *pgserver.Server, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), on.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", sql, err))
		}
	}
}

// awaitSync returns when commits wait for the standby.
func (p *Pair) awaitSync(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
	for deadline := time.Now().Add(time.Minute); ; {
		var following bool
		err := conn.QueryRow(t.Context(),
			`select exists (select from pg_stat_replication where sync_state = 'sync')`).
			Scan(&following)
		switch {
		case err != nil:
			t.Fatal(err)
		case following:
			return
		case time.Now().After(deadline):
			t.Fatal("the standby does not follow")
		}
		pause(t.Context())
	}
}

// pause is the time between two checks.
func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

// conninfo is the primary_conninfo of the standby.
func conninfo(t testing.TB, s *pgserver.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	return fmt.Sprintf("host=%s port=%s user=%s password=%s sslmode=disable application_name=%s",
		u.Hostname(), u.Port(), u.User.Username(), password, standbyName)
}

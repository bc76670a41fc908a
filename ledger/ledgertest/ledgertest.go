// Package ledgertest gives tests a real PostgreSQL: one private server for each test process, which
// the first test starts, and for each test a database with the ledger's schema and no rows.
//
// On a machine without PostgreSQL a build is downloaded into the cache. If that fails the test
// fails with a message that says what to do; it is never skipped.
package ledgertest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"dispatcher/ledger/migrations"
	"dispatcher/ledger/pgserver"
)

// template is the prefix of the name of the database that others are cloned from. A clone takes 30
// ms, a quarter of the time of the migrations. There is one template for each UTC day, because the
// schema has partitions from that day on.
const template = "ledger_template_"

// today is the day in that name.
var today = func() string { return time.Now().UTC().Format("20060102") }

// fast are settings without durability. Tests need it only from a server that they kill.
func fast() map[string]string {
	return map[string]string{
		"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
		"max_connections": "600", "jit": "off", // no jit, as in the sessions of the dispatcher
	}
}

// shared is the server of this test process.
var shared struct {
	once   sync.Once
	server *pgserver.Server
	dir    string
	err    error
	mu     sync.Mutex
	// template is the newest one; guarded by mu.
	template string
	pool     pool
	count    atomic.Int64 // databases outside the pool
	image    struct {
		once sync.Once
		made string // the folder to remove at the end
		dir  string
		day  string // the day of its template
		err  error
	}
}

// Main is for TestMain: it runs the tests, stops the shared server, and fails the run when
// goroutines are left. It calls closers before it stops the server.
func Main(m *testing.M, closers ...func()) {
	code := m.Run()
	for _, c := range closers {
		c()
	}
	Close()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Close stops the shared server if it was started, and removes its folder. Main calls it; a
// TestMain that does not use Main must call it itself.
func Close() {
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		shared.pool.close(ctx)
		if err := shared.server.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	for _, dir := range []string{shared.dir, shared.image.made} {
		if dir != "" {
			_ = os.RemoveAll(dir) // a leftover in the temporary folder is harmless
		}
	}
}

// URL returns the address of a database with the ledger's schema and no rows, for this test alone.
// At the end of the test it is emptied for the next one, or dropped if its schema was altered.
func URL(t testing.TB) string {
	t.Helper()
	return pooled(t)
}

// Fresh is URL for tests of plans and statistics: a database that no test has used before. It is
// dropped at the end of the test.
func Fresh(t testing.TB) string {
	t.Helper()
	return clone(t, begun(t))
}

// Empty returns the address of an empty database, for tests of the migrations.
func Empty(t testing.TB) string {
	t.Helper()
	begun(t)
	return clone(t, "template1")
}

// As returns the address of a database for a session with the rights of a role, such as
// migrations.RoleApp.
func As(role, url string) string { return url + "&options=-c%20role%3D" + role }

// StoreOpen gives all attempts of open_claims a row, so that a test can change it.
const StoreOpen = `
	insert into dispatcher.attempts (message_seq, attempt, leaves_at, price_micros, segments,
	  channel, reason, currency, ranking, instance, claimed_at)
	select message_seq, 1, leaves_at, price_micros, segments, channel, reason, currency, ranking,
	  instance, claimed_at
	from dispatcher.claimed_attempts on conflict (message_seq, attempt) do nothing`

// Server starts a private server that the test may stop, kill and start again. Committed
// transactions survive that, but not a crash of the machine. settings override those of this
// package. Its database is empty, but the roles of the dispatcher exist. The server is stopped at
// the end of the test.
func Server(t testing.TB, settings map[string]string) *pgserver.Server {
	t.Helper()
	all := fast()
	all["synchronous_commit"] = "on"
	maps.Copy(all, settings)
	dir := filepath.Join(temporary(t), "pg")
	if err := fromImage(dir); err != nil {
		t.Fatal(err)
	}
	return begin(t, pgserver.Config{Dir: dir, Settings: all})
}

// temporary is a folder that is removed at the end of the test, after its servers.
func temporary(t testing.TB) string {
	t.Helper()
	dir, err := TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// begin starts a server that is stopped at the end of the test.
func begin(t testing.TB, c pgserver.Config) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

// stop has a timeout of its own, because t.Context has ended when cleanups run.
func stop(t testing.TB, s *pgserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// clone copies a database of the shared server.
func clone(t testing.TB, from string) string {
	t.Helper()
	name := fmt.Sprintf("own_%d", shared.count.Add(1))
	command(t, fmt.Sprintf(`create database %s template %s strategy file_copy`, name, from))
	t.Cleanup(func() { command(t, fmt.Sprintf(`drop database if exists %s with (force)`, name)) })
	return shared.server.URLOf(name)
}

// begun starts the shared server, once, and returns the name of today's template.
func begun(t testing.TB) string {
	t.Helper()
	shared.once.Do(start)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	name, err := ofToday()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// start starts the shared server.
func start() {
	if shared.dir, shared.err = TempDir(); shared.err != nil {
		return
	}
	dir := filepath.Join(shared.dir, "pg")
	if shared.err = fromImage(dir); shared.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shared.server, shared.err = pgserver.Start(ctx, pgserver.Config{Dir: dir, Settings: fast()})
}

// Stranger is a user that no server knows, so every password is refused.
const Stranger = "stranger"

// trust makes the server in a folder of pgserver ask only Stranger for a password on loopback.
// Deriving a key from the password of each session would take a tenth of the CPU time under the
// race detector.
func trust(dir string) error {
	return os.WriteFile(filepath.Join(dir, "data", "pg_hba.conf"), []byte(
		"host all "+Stranger+" 127.0.0.1/32 scram-sha-256\n"+
			"host all,replication all 127.0.0.1/32 trust\n"), 0o600)
}

// ofToday returns the name of today's template, and creates it if needed.
func ofToday() (name string, err error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if name = template + today(); shared.template == name {
		return name, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if name != template+shared.image.day {
		if err := makeTemplate(ctx, shared.server, name); err != nil {
			return "", err
		}
	}
	if err := shared.pool.prepare(ctx, shared.server.URLOf(name)); err != nil {
		return "", err
	}
	shared.template = name
	return name, nil
}

// makeTemplate creates a template of the present day.
func makeTemplate(ctx context.Context, s *pgserver.Server, name string) error {
	for _, sql := range []string{`drop database if exists `, `create database `} {
		if err := execute(ctx, s, sql+name); err != nil {
			return err
		}
	}
	if err := migrations.Migrate(ctx, s.URLOf(name)); err != nil {
		return err
	}
	_, err := migrations.Roles(ctx, s.URLOf(name), 24*time.Hour)
	return err
}

func command(t testing.TB, sql string) {
	t.Helper()
	// t.Context has ended when cleanups run
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := execute(ctx, shared.server, sql); err != nil {
		t.Error(err)
	}
}

// execute runs one statement in a database that no test uses.
func execute(ctx context.Context, s *pgserver.Server, sql string) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // Nothing depends on a clean goodbye.
	_, err = conn.Exec(ctx, sql)
	return err
}

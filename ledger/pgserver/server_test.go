package pgserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/ledger/pgserver"
)

// parentDir, when set, makes this test binary the parent of a server in that folder.
const parentDir = "PGSERVER_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(stopped.dir) // a leftover in the temporary folder is harmless
		os.Exit(code)
	}))
}

// beParent starts a server, says where, and waits to be killed.
func beParent(dir string) {
	s, err := pgserver.Start(context.Background(), pgserver.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("URL", s.URL())
	select {}
}

// start starts a server in dir and stops it at the end of the test.
func start(t *testing.T, c pgserver.Config) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

// stopped is a folder with a cluster that was started once and stopped. Tests that are not about
// the first start begin with a copy: to create a cluster takes most of the time.
var stopped struct {
	once sync.Once
	dir  string
	err  error
}

func makeStopped() (string, error) {
	dir, err := os.MkdirTemp("", "pgserver-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tier.LongestWait)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Config{Dir: filepath.Join(dir, "pg")})
	if err != nil {
		return dir, err
	}
	return dir, s.Stop(ctx)
}

// existing is a folder with a copy of that cluster.
func existing(t *testing.T) string {
	t.Helper()
	stopped.once.Do(func() { stopped.dir, stopped.err = makeStopped() })
	if stopped.err != nil {
		t.Fatal(stopped.err)
	}
	dir := filepath.Join(t.TempDir(), "pg")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(stopped.dir, "pg"))); err != nil {
		t.Fatal(err)
	}
	// CopyFS opens all folders to everybody.
	if err := os.Chmod(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func stop(t *testing.T, s *pgserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.LongestWait)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// ask runs one statement in a session of its own and returns its one value as text.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The server may have ended the session.
	var v string
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil &&
		!errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return v
}

func TestAServerKeepsDataPortAndPasswordOverRestarts(t *testing.T) {
	t.Parallel()
	dir := existing(t)
	s := start(t, pgserver.Config{Dir: dir})
	address, url := s.Address(), s.URL()
	ask(t, url, `create table kept (n int)`)
	for n, end := range []func(){func() { stop(t, s) }, s.Kill} {
		ask(t, url, fmt.Sprintf(`insert into kept values (%d)`, n))
		end()
		select {
		case <-s.Done():
			t.Fatal("a stopped server has a run")
		default:
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Address() != address || s.URL() != url {
			t.Fatal("the address changed")
		}
		if got := ask(t, url, `select count(*)::text from kept`); got != strconv.Itoa(n+1) {
			t.Errorf("%s rows after restart %d", got, n)
		}
	}
	if got := ask(t, s.URL(),
		`select current_user::text || current_database()`); got != "dispatcherdispatcher" {
		t.Error(got)
	}
}

func TestANewServerContinuesAnExistingFolder(t *testing.T) {
	t.Parallel()
	dir := existing(t)
	first := start(t, pgserver.Config{Dir: dir})
	ask(t, first.URL(), `create table kept (n int)`)
	first.Kill()
	second := start(t, pgserver.Config{Dir: dir})
	if got := ask(t, second.URL(), `select count(*)::text from kept`); got != "0" {
		t.Error(got)
	}
}

func TestAFolderInUseIsRefusedInWords(t *testing.T) {
	t.Parallel()
	dir := existing(t)
	start(t, pgserver.Config{Dir: dir})
	refused := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := pgserver.Start(ctx, pgserver.Config{Dir: dir})
		return err
	}
	within := 300 * time.Millisecond
	err := refused(within)
	// a busy machine got nowhere
	for errors.Is(err, context.DeadlineExceeded) && within < time.Minute {
		within *= 4
		err = refused(within)
	}
	if err == nil || !strings.Contains(err.Error(), "in use by another PostgreSQL") {
		t.Errorf("got %v", err)
	}
}

func TestALockFileWithThePidOfAnotherProgramIsIgnored(t *testing.T) {
	t.Parallel()
	dir := existing(t)
	// After a reboot the number belongs to some other process: this one.
	stale := strconv.Itoa(os.Getpid()) + "\n" + filepath.Join(dir, "data") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(stale),
		0o600); err != nil {
		t.Fatal(err)
	}
	start(t, pgserver.Config{Dir: dir})
}

func TestATakenPortIsRefusedInWords(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // It is only a placeholder.
	_, err = pgserver.Start(t.Context(),
		pgserver.Config{Dir: existing(t), Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "is in use by another program") {
		t.Errorf("got %v", err)
	}
}

// TestANewServerIsReachedAndKeepsItsSecrets: its folder is new and has a long name.
func TestANewServerIsReachedAndKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "pg")
	s := start(t, pgserver.Config{Dir: dir})
	if got := ask(t, s.URL(), `select 'reached'`); got != "reached" {
		t.Error(got)
	}
	runsAsAnotherUser(t, dir)
	nothingSecretIsReadableOrLogged(t, dir, s)
}

// runsAsAnotherUser checks that the server runs as another user than root, in a group of its own.
func runsAsAnotherUser(t *testing.T, dir string) {
	t.Helper()
	pid := postmaster(t, dir)
	group, err := syscall.Getpgid(pid)
	if err != nil || group != pid {
		t.Errorf("group %d of process %d, %v", group, pid, err)
	}
	info, err := os.Stat(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 ||
		(os.Geteuid() != 0 && int(owner) != os.Geteuid()) {
		t.Errorf("the data belongs to uid %d", owner)
	}
}

// postmaster is the process that the lock file names.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func nothingSecretIsReadableOrLogged(t *testing.T, dir string, s *pgserver.Server) {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "pgpass"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
	pass, err := os.ReadFile(filepath.Join(dir, "pgpass"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSpace(string(pass)), ":")
	password := parts[len(parts)-1]
	if !strings.Contains(s.URL(), password) || strings.Contains(s.Psql(), password) {
		t.Error("the password is to be found in the URL and nowhere else")
	}
	if _, err := os.Stat(filepath.Join(dir, "data.secret")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the password of initdb was left behind")
	}
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The server is stopped anyway.
	if _, err := conn.Exec(t.Context(),
		`create table t (text text check (length(text) < 3))`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `insert into t values ($1)`,
		"Your code is 123456"); err == nil {
		t.Fatal("the check did not fail")
	}
	log, err := os.ReadFile(filepath.Join(dir, "server.log"))
	if err != nil || !strings.Contains(string(log), "violates check constraint") ||
		strings.Contains(string(log), "123456") {
		t.Errorf("%v: %s", err, log)
	}
}

func TestStopCutsOffAServerThatDoesNotStopInTime(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Config{Dir: existing(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := s.Done()
	if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-done
	if err := s.Stop(ctx); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []pgserver.Config{{}, {Dir: "x", Port: -1}, {Dir: "x", Port: 70000}} {
		if _, err := pgserver.Start(t.Context(), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	_, err := pgserver.Start(
		t.Context(),
		pgserver.Config{
			Dir:      existing(t),
			Settings: map[string]string{"no_such_setting": "1"},
		},
	)
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got %v", err)
	}
}

func TestAClusterOfAnotherVersionIsRefusedInWords(t *testing.T) {
	t.Parallel()
	dir := existing(t)
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pgserver.Start(t.Context(), pgserver.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") {
		t.Errorf("got %v", err)
	}
}

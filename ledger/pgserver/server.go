package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a private PostgreSQL server. Its methods may be called from several
// goroutines; starts and stops wait for each other.
type Server struct {
	config   Config
	binaries binaries
	folder   folder
	identity identity
	password string

	mu        sync.Mutex
	port      int      // guarded by mu; fixed after the first start
	process   *process // guarded by mu; nil while stopped
	socketDir string   // guarded by mu
	temporary bool     // socketDir is to be removed at stop; guarded by mu
}

// Start finds PostgreSQL, creates the cluster in c.Dir if there is none, starts it
// and returns when it answers and Database exists.
func Start(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	f, err := prepare(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s := &Server{config: c, binaries: b, folder: f, port: c.Port}
	if s.password, err = f.secret(); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts a stopped server again over the same data and on the same port. It
// does nothing when the server runs.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.makeReady(ctx); err != nil {
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		s.halt(syscall.SIGQUIT)
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	if err := s.createDatabase(ctx); err != nil {
		s.halt(syscall.SIGINT)
		return fmt.Errorf("private PostgreSQL: create database: %w", err)
	}
	return nil
}

// makeReady brings the folder into the state that the postgres program needs.
func (s *Server) makeReady(ctx context.Context) error {
	id, err := chooseIdentity(s.folder.data())
	if err != nil {
		return err
	}
	s.identity = id
	if err := s.folder.checkOwner(id); err != nil {
		return err
	}
	if err := s.folder.create(ctx, s.binaries, id, s.password); err != nil {
		return err
	}
	if err := s.folder.clearLock(ctx); err != nil {
		return err
	}
	if err := id.own(s.folder.data()); err != nil {
		return err
	}
	s.socketDir, s.temporary, err = s.folder.socketDir()
	if err != nil {
		return fmt.Errorf("make socket folder: %w", err)
	}
	return id.own(s.socketDir)
}

// portTries is how often a start looks for another port when somebody took the
// free one first.
const portTries = 5

func (s *Server) launch(ctx context.Context) error {
	if s.port != 0 {
		return s.launchOn(ctx, s.port)
	}
	var failed error
	for range portTries {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if failed = s.launchOn(ctx, port); failed == nil {
			return nil
		}
		if !errors.Is(failed, errPortTaken) {
			return failed
		}
	}
	return failed
}

var errPortTaken = errors.New("port is taken")

func (s *Server) launchOn(ctx context.Context, port int) error {
	logFile, err := os.Create(s.folder.log())
	if err != nil {
		return fmt.Errorf("make log file: %w", err)
	}
	defer logFile.Close()                                                  //nolint:errcheck // The server writes to its own copy.
	cmd := exec.Command(s.binaries.path("postgres"), s.arguments(port)...) //nolint:noctx // It lives until Stop, longer than ctx.
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", environment(), logFile, logFile
	if s.process, err = launch(cmd, s.identity); err != nil {
		return err
	}
	s.port = port
	err = s.awaitReady(ctx)
	if errors.Is(err, errPortTaken) && s.config.Port == 0 {
		s.port = 0
	}
	return err
}

// arguments are the settings of this start; they win over postgresql.conf.
func (s *Server) arguments(port int) []string {
	settings := defaults()
	settings["port"] = strconv.Itoa(port)
	settings["unix_socket_directories"] = s.socketDir
	for name, value := range s.config.Settings {
		settings[name] = value
	}
	args := []string{"-D", s.folder.data()}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// awaitReady returns when the server answers a connection, or with the end of its
// log when it gave up.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.process.done:
			return s.explainExit()
		default:
		}
		if pause(ctx, poll) != nil {
			return fmt.Errorf("not ready in time: %w", err)
		}
	}
}

// explainExit turns an early exit into a sentence.
func (s *Server) explainExit() error {
	if !s.portIsFree() {
		return fmt.Errorf("%w: 127.0.0.1:%d is in use by another program; choose another port", errPortTaken, s.port)
	}
	out, err := os.ReadFile(s.folder.log())
	if err != nil {
		return fmt.Errorf("the server ended at once and its log cannot be read: %w", err)
	}
	return fmt.Errorf("the server ended at once; the end of %s says: %s", s.folder.log(), tail(out))
}

func (s *Server) portIsFree() bool {
	l, err := net.Listen("tcp4", s.Address()) //nolint:noctx // It returns at once.
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func (s *Server) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // Nothing depends on a clean goodbye.
	var exists bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, Database).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return nil
	}
	_, err = conn.Exec(ctx, `create database `+Database)
	return err
}

// Stop shuts the server down fast: sessions are cut, transactions under way roll
// back, a checkpoint is written. When ctx ends first it goes on to an immediate
// shutdown and then kills it, so the server has always ended when Stop returns.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		s.forget()
		return nil
	}
	s.process.signal(syscall.SIGINT)
	select {
	case <-s.process.done:
		s.forget()
		return nil
	case <-ctx.Done():
		s.halt(syscall.SIGQUIT)
		return fmt.Errorf("private PostgreSQL did not stop in time and was cut off; it recovers at the next start: %w", ctx.Err())
	}
}

// StopImmediate ends the server as a power cut would, without a checkpoint, for
// tests of recovery: the next Start replays the log.
func (s *Server) StopImmediate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt(syscall.SIGQUIT)
}

// Kill sends SIGKILL to the postmaster, for tests. Its sessions notice and end by
// themselves.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt(syscall.SIGKILL)
}

// immediatePatience is how long an immediate shutdown may take before SIGKILL.
const immediatePatience = 5 * time.Second

// halt ends the process with a signal that it cannot refuse for long. s.mu is held.
func (s *Server) halt(with syscall.Signal) {
	if s.process == nil {
		s.forget()
		return
	}
	s.process.signal(with)
	timer := time.NewTimer(immediatePatience)
	defer timer.Stop()
	select {
	case <-s.process.done:
	case <-timer.C:
		s.process.signal(syscall.SIGKILL)
		<-s.process.done
	}
	s.forget()
}

// forget drops what belonged to one run. s.mu is held.
func (s *Server) forget() {
	if s.temporary {
		_ = os.RemoveAll(s.socketDir) // a leftover in /tmp is harmless
	}
	s.process, s.socketDir, s.temporary = nil, "", false
}

// running reports whether the process is alive. s.mu is held.
func (s *Server) running() bool {
	if s.process == nil {
		return false
	}
	select {
	case <-s.process.done:
		return false
	default:
		return true
	}
}

// Done is closed when the present run of the server has ended, for whatever reason.
// It is nil, which blocks for ever, while the server is stopped.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// URL is the address of Database over loopback TCP. It holds the password.
func (s *Server) URL() string { return s.URLOf(Database) }

// URLOf is the address of another database of the server.
func (s *Server) URLOf(database string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url(database)
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(User, s.password),
		Host: s.Address(), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// SocketURL is the address of Database over the Unix socket, about a tenth faster than
// TCP. It holds the password, and it is valid until the next stop.
func (s *Server) SocketURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := url.Values{"host": {s.socketDir}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(User, s.password), Path: "/" + Database, RawQuery: q.Encode()}
	return u.String()
}

// Address is the host and port that the server listens on. It stays the same over restarts.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Psql is the command that an operator opens a session with. It names the password
// file and not the password.
func (s *Server) Psql() string {
	return fmt.Sprintf("PGPASSFILE=%s %s -h 127.0.0.1 -p %d -U %s %s",
		s.folder.password(), s.psqlProgram(), s.port, User, Database)
}

// psqlProgram is the psql beside the server, or the one in PATH: fetched builds have none.
func (s *Server) psqlProgram() string {
	if p := s.binaries.path("psql"); exists(p) {
		return p
	}
	return "psql"
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Clean(path))
	return err == nil
}

// freePort asks the kernel for a loopback port that is free at this moment.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// LogFile is where the present run writes its log.
func (s *Server) LogFile() string { return s.folder.log() }

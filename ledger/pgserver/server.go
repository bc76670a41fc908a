package pgserver

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Server is a private PostgreSQL server. Its methods may be called from several goroutines; starts
// and stops wait for each other.
type Server struct {
	config   Config
	binaries binaries
	folder   folder
	password string

	mu      sync.Mutex
	port    int      // guarded by mu; fixed after the first start
	process *process // guarded by mu; nil while stopped
}

// Start finds PostgreSQL, creates the cluster in c.Dir if there is none, starts it and returns when
// it answers and Database exists.
func Start(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := locate(ctx)
	if err != nil {
		return nil, err
	}
	f, err := prepare(c.Dir, rootHome)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s := &Server{config: c, binaries: b, folder: f, port: c.Port}
	if s.password, err = f.secret(); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts a stopped server again over the same data and on the same port. It does nothing when
// the server runs.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	id, err := s.makeReady(ctx)
	if err != nil {
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	if err := s.launch(ctx, id); err != nil {
		s.halt(syscall.SIGQUIT)
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	if err := s.createDatabase(ctx); err != nil {
		s.halt(syscall.SIGINT)
		return fmt.Errorf("private PostgreSQL: create database: %w", err)
	}
	return nil
}

// Stop shuts the server down fast: sessions are cut, running transactions roll back, a checkpoint
// is written. When ctx ends first, Stop goes on to an immediate shutdown and then kills the server,
// so the server has always ended when Stop returns.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		s.process = nil
		return nil
	}
	s.process.signal(syscall.SIGINT)
	select {
	case <-s.process.done:
		s.process = nil
		return nil
	case <-ctx.Done():
		s.halt(syscall.SIGQUIT)
		return fmt.Errorf("private PostgreSQL did not stop in time and was cut off; "+
			"it recovers at the next start: %w", ctx.Err())
	}
}

// Kill sends SIGKILL to the postmaster, for tests of recovery: the next Start replays the log. The
// server's sessions notice and end by themselves.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt(syscall.SIGKILL)
}

// halt ends the process with a signal, and with SIGKILL after immediateTimeout. s.mu is held.
func (s *Server) halt(with syscall.Signal) {
	if s.process == nil {
		return
	}
	s.process.signal(with)
	select {
	case <-s.process.done:
	case <-time.After(immediateTimeout):
		s.process.signal(syscall.SIGKILL)
		<-s.process.done
	}
	s.process = nil
}

// running reports whether the process is alive. s.mu is held.
func (s *Server) running() bool { return s.process != nil && !s.process.ended() }

// Done is closed when the present run of the server has ended, for whatever reason. It is nil,
// which blocks for ever, while the server is stopped.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// URL is the address of Database. It holds the password.
func (s *Server) URL() string { return s.URLOf(Database) }

// URLOf is the address of another database of the server.
func (s *Server) URLOf(database string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url(database)
}

// url is URLOf. s.mu is held.
func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(User, s.password),
		Host: s.Address(), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Address is the host and port that the server listens on. It stays the same over restarts.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Psql is the command that an operator opens a session with. It names the password file and not the
// password.
func (s *Server) Psql() string {
	return fmt.Sprintf("PGPASSFILE=%s psql -h 127.0.0.1 -p %d -U %s %s",
		s.folder.password(), s.port, User, Database)
}

package pgserver

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
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

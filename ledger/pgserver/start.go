package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// makeReady brings the folder into the state that the postgres program needs, and returns the user
// to run it as.
func (s *Server) makeReady(ctx context.Context) (identity, error) {
	id, err := chooseIdentity(s.folder.data())
	if err != nil {
		return id, err
	}
	if err := s.folder.checkOwner(id); err != nil {
		return id, err
	}
	if err := s.folder.create(ctx, s.binaries, id, s.password); err != nil {
		return id, err
	}
	if err := s.folder.clearLock(ctx); err != nil {
		return id, err
	}
	return id, id.own(s.folder.data())
}

// portTries is how often a start looks for another port when somebody took the free one first.
const portTries = 5

func (s *Server) launch(ctx context.Context, id identity) error {
	if s.port != 0 {
		return s.launchOnPort(ctx, id)
	}
	var failed error
	for range portTries {
		var err error
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if failed = s.launchOnPort(ctx, id); failed == nil {
			return nil
		}
		if s.port = 0; !errors.Is(failed, errPortTaken) {
			return failed
		}
	}
	return failed
}

var errPortTaken = errors.New("port is taken")

// launchOnPort runs the postgres program on s.port and returns when it answers.
func (s *Server) launchOnPort(ctx context.Context, id identity) error {
	logFile, err := os.Create(s.folder.log())
	if err != nil {
		return fmt.Errorf("make log file: %w", err)
	}
	defer logFile.Close() //nolint:errcheck // The server writes to its own copy.
	program := s.binaries.path("postgres")
	cmd := exec.Command(program, s.arguments()...) //nolint:noctx // It outlives ctx, until Stop.
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", environment(), logFile, logFile
	if s.process, err = launch(cmd, id); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

// arguments are the settings of this start; they win over postgresql.conf.
func (s *Server) arguments() []string {
	settings := defaults()
	settings["port"] = strconv.Itoa(s.port)
	maps.Copy(settings, s.config.Settings)
	args := []string{"-D", s.folder.data()}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// awaitReady returns when the server answers, or with the end of its log when it has ended. A
// program that took the port first cannot pass for the server: it refuses the password, or never
// answers.
func (s *Server) awaitReady(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go func(done <-chan struct{}) {
		select {
		case <-done:
			cancel()
		case <-running.Done():
		}
	}(s.process.done)
	for {
		if s.process.ended() {
			return s.explainExit()
		}
		conn, err := s.connect(running)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.process.done:
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		}
	}
}

// connect opens a session in the database postgres, which every cluster has.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.Connect(ctx, s.url("postgres"))
}

// connectTimeout bounds one connect.
const connectTimeout = 5 * time.Second

// explainExit turns an early exit into a sentence.
func (s *Server) explainExit() error {
	if !s.portIsFree() {
		return fmt.Errorf("%w: %s is in use by another program; choose another port",
			errPortTaken, s.Address())
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

// freePort finds a loopback port that is free at this moment. It lies below the range from which
// Linux gives ports to whoever asks for any, so that nobody else gets it while a server is started
// again. Tests have those below 26000, see tier.FreePort.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	var err error
	for range 100 {
		port := 26_000 + rand.IntN(6_000)
		var l net.Listener
		l, err = lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

func (s *Server) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // The work is done.
	var exists bool
	const query = `select exists (select from pg_database where datname = $1)`
	err = conn.QueryRow(ctx, query, Database).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, `create database `+Database)
	return err
}

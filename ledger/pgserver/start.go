package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/jackc/pgx/v5"
)

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
	maps.Copy(settings, s.config.Settings)
	args := []string{"-D", s.folder.data()}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// awaitReady returns when the server answers a connection, or with the end of its log
// when it gave up. It asks on the Unix socket, behind which there is nobody else.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.socketURL("postgres"))
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
	conn, err := pgx.Connect(ctx, s.socketURL("postgres"))
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

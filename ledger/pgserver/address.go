package pgserver

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

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

// SocketURL is the address of Database over the Unix socket. It holds the password, and
// it is valid until the next stop.
func (s *Server) SocketURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.socketURL(Database)
}

func (s *Server) socketURL(database string) string {
	q := url.Values{"host": {s.socketDir}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(User, s.password), Path: "/" + database, RawQuery: q.Encode()}
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

// LogFile is where the present run writes its log.
func (s *Server) LogFile() string { return s.folder.log() }

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

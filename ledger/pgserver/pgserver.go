// Package pgserver runs a private, real PostgreSQL server in a folder: for "dispatcher demo",
// "dispatcher run --embedded" and the tests.
//
// It finds the server's programs on the machine or downloads a build once, creates the cluster,
// starts it on loopback, and makes sure that it ends with the process that started it. The tables
// are made by package ledger. It is not for production, where DISPATCHER_POSTGRES_URL names a
// server that is run separately.
//
// The download uses github.com/fergusstrange/embedded-postgres. Its server is not used, because it
// cannot run as another user, which PostgreSQL requires of root; it outlives a process that is
// killed; it can be stopped in one way only, without a deadline; and it deletes a data folder of
// another version of PostgreSQL.
package pgserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// User is the superuser and owner of everything in the private server; Database is the database
// that Start makes sure exists.
const (
	User     = "dispatcher"
	Database = "dispatcher"
)

// Oldest is the first major version of PostgreSQL that the schema works with.
const Oldest = 15

const (
	// startTimeout bounds one start, crash recovery included.
	startTimeout = 2 * time.Minute
	// immediateTimeout is how long an immediate shutdown may take before SIGKILL.
	immediateTimeout = 5 * time.Second
	// orphanTimeout is how long a server whose parent was killed may take to end before the folder
	// counts as in use.
	orphanTimeout = 15 * time.Second
	// poll is the pause between two checks of a process or a port.
	poll = 20 * time.Millisecond
)

// ErrNotFound means that the machine has no PostgreSQL and none could be downloaded. The wrapped
// sentence says what to install.
var ErrNotFound = errors.New("no PostgreSQL server on this machine")

// Config says where a private server lives and how it is tuned.
type Config struct {
	// Dir is the folder that holds everything: the cluster in Dir/data, the log of the last start in
	// Dir/server.log and the password in Dir/pgpass. It is created when it is missing. A server
	// started over an existing folder continues with its data.
	Dir string
	// Port is the loopback TCP port; 0 takes a free one and keeps it until the Server value is
	// dropped.
	Port int
	// Settings are passed on as "-c name=value" and win over the defaults of this package. Tests turn
	// fsync off here; nothing else may.
	Settings map[string]string
}

// Validate reports what cannot work, and makes Dir absolute.
func (c *Config) Validate() error {
	if c.Dir == "" {
		return errors.New("private PostgreSQL: the folder is not set")
	}
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("private PostgreSQL: port %d is not between 0 and 65535", c.Port)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	c.Dir = dir
	return nil
}

// defaults suit a laptop: modest memory, quick vacuum of the counter rows, and a log that never
// holds a row. Terse errors leave out DETAIL, where PostgreSQL quotes failing rows; statements are
// never logged, because their parameters are messages. There is no Unix socket: its path would have
// to be short.
func defaults() map[string]string {
	return map[string]string{
		"listen_addresses":            "127.0.0.1",
		"unix_socket_directories":     "",
		"max_connections":             "100",
		"shared_buffers":              "128MB",
		"max_wal_size":                "2GB",
		"checkpoint_timeout":          "15min",
		"autovacuum_naptime":          "10s",
		"log_error_verbosity":         "terse",
		"log_min_error_statement":     "panic",
		"log_parameter_max_length":    "0",
		"log_checkpoints":             "off",
		"log_autovacuum_min_duration": "-1",
		"logging_collector":           "off",
		"log_destination":             "stderr",
		"lc_messages":                 "C",
		"timezone":                    "UTC",
		"log_timezone":                "UTC",
	}
}

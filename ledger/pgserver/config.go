// Package pgserver runs a private, real PostgreSQL server in a folder: for
// "dispatcher demo", "dispatcher run --embedded" and the tests.
//
// It finds the server's programs on the machine or fetches a build once, creates
// the cluster, starts it on loopback and on a Unix socket, and makes sure that it
// ends with the process that started it. It knows nothing about the tables inside:
// that is package ledger. It is no way to run a database that must outlive its
// user; a production deployment points DISPATCHER_POSTGRES_URL at its own server.
package pgserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// User is the superuser and owner of everything in the private server; Database is
// the database that Start makes sure exists.
const (
	User     = "dispatcher"
	Database = "dispatcher"
)

// Oldest is the first major version of PostgreSQL that the schema works with.
const Oldest = 15

// startTimeout bounds one start, crash recovery included.
const startTimeout = 60 * time.Second

// ErrNotFound means that the machine has no PostgreSQL and none could be fetched.
// The wrapped sentence says what to install.
var ErrNotFound = errors.New("no PostgreSQL server on this machine")

// Config says where a private server lives and how it is tuned.
type Config struct {
	// Dir is the folder that holds everything: the cluster in Dir/data, the log of the
	// last start in Dir/server.log and the password in Dir/pgpass. It is created when
	// it is missing. A server started over an existing folder continues with its data.
	Dir string
	// Port is the loopback TCP port; 0 takes a free one and keeps it until the
	// Server value is dropped.
	Port int
	// Settings are passed on as "-c name=value" and win over the defaults of this
	// package. Tests turn fsync off here; nothing else may.
	Settings map[string]string
	// Binaries names the folder of the postgres and initdb programs; empty searches
	// PATH, pg_config and the usual folders, then Cache, then fetches a build.
	Binaries string
	// Cache is where a fetched build is kept; empty means the user's cache folder.
	Cache string
	// Offline forbids the fetch.
	Offline bool
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

// defaults suit a laptop: modest memory, quick vacuum of the counter rows, and a
// log that never holds a row. Terse errors leave out DETAIL, where PostgreSQL
// quotes failing rows; statements are never logged, because their parameters are
// messages.
func defaults() map[string]string {
	return map[string]string{
		"listen_addresses":            "127.0.0.1",
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

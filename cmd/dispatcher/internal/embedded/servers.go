// Package embedded starts on this machine what a real installation has elsewhere: a PostgreSQL, a
// Kafka, and carriers that speak SMPP. "demo", "run --embedded", "bench" and tests use it.
//
// PostgreSQL is the real one (package pgserver). Kafka is kfake: one broker on loopback in this
// process. It speaks the real protocol, so any client can connect, and keeps its data on disk. It
// has no replicas and belongs to one process: it is for trying things out, not for production.
package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"dispatcher/config"
	"dispatcher/ledger/pgserver"
	"dispatcher/selector"
)

// Config says where the servers keep their data and listen. Port 0 takes a free one.
type Config struct {
	Folder       string
	KafkaPort    int
	PostgresPort int
	Topics       []string
	// UnsyncedKafka does not sync Kafka's writes to disk; see KafkaConfig.Unsynced.
	UnsyncedKafka bool
	// Postgres are settings of PostgreSQL in addition to those of package pgserver.
	Postgres map[string]string
}

// Servers are a PostgreSQL and a Kafka, with their data in one folder.
type Servers struct {
	Postgres *pgserver.Server
	Kafka    *Kafka
	// Keys are the draw keys of the folder; the first was created with it.
	Keys []selector.Key

	endpoints string // the file that says where the servers listen
}

const (
	// stopTimeout bounds the stop of the servers.
	stopTimeout = time.Minute
	// umask makes files of the servers unreadable for other users: they hold numbers and texts of
	// messages.
	umask = 0o077
)

// Start starts both servers with the folder, which keeps its data until the next start. From then
// on, files that this process writes are readable only for its own user (umask).
func Start(ctx context.Context, cfg Config) (*Servers, error) {
	s := &Servers{}
	if err := s.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Servers) start(ctx context.Context, cfg Config) (err error) {
	if err := closedFolder(cfg.Folder); err != nil {
		return fmt.Errorf("data folder (DISPATCHER_DATA_DIR): %w", err)
	}
	syscall.Umask(umask)
	// Kafka first: it holds the folder's lock.
	s.Kafka, err = StartKafka(ctx, KafkaConfig{
		Folder: filepath.Join(cfg.Folder, "kafka"), Port: cfg.KafkaPort,
		Topics: cfg.Topics, Unsynced: cfg.UnsyncedKafka,
	})
	if err != nil {
		return err
	}
	s.Postgres, err = pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(cfg.Folder, "postgres"), Port: cfg.PostgresPort, Settings: cfg.Postgres,
	})
	if err != nil {
		return err
	}
	if s.Keys, err = drawKeys(filepath.Join(cfg.Folder, config.EmbeddedDrawKey)); err != nil {
		return err
	}
	s.endpoints = filepath.Join(cfg.Folder, config.EmbeddedEndpoints)
	return writeEndpoints(s.endpoints, Endpoints{
		KafkaBrokers: []string{s.Kafka.Address()}, PostgresURL: s.Postgres.URL(),
	})
}

// Fill sets the settings to the addresses of the servers.
func (s *Servers) Fill(settings *config.Settings) {
	settings.KafkaBrokers = []string{s.Kafka.Address()}
	settings.PostgresURL = s.Postgres.URL()
}

// Stop stops both servers. Their data stays in the folder.
func (s *Servers) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	if s.endpoints != "" {
		errs = append(errs, os.Remove(s.endpoints))
	}
	if s.Postgres != nil {
		errs = append(errs, s.Postgres.Stop(ctx))
	}
	if s.Kafka != nil {
		errs = append(errs, s.Kafka.Close())
	}
	return errors.Join(errs...)
}

// closedFolder creates the data folder. From an existing folder it removes the permissions that a
// new one would not have, and adds none. It does not change a folder that is writable for all by
// design (sticky, as /tmp) or belongs to another user, such as a mounted volume; the files in it
// are still private.
func closedFolder(path string) error {
	if err := os.MkdirAll(path, folderMode()); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode()
	if mode&os.ModeSticky != 0 || mode.Perm()&^folderMode() == 0 {
		return nil
	}
	err = os.Chmod(path, mode&^os.ModePerm|mode&folderMode())
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// folderMode is the mode of a data folder. PostgreSQL does not run as root, so its user must be
// able to pass through a folder of root's. The files in it stay private.
func folderMode() os.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// Endpoints are the addresses of the servers of a running process. They are stored in its data
// folder, so that the other commands find them without settings.
type Endpoints struct {
	KafkaBrokers []string `json:"kafka_brokers"`
	PostgresURL  string   `json:"postgres_url"`
}

func writeEndpoints(path string, e Endpoints) error {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil { // the URL contains the password
		return fmt.Errorf("write the endpoints: %w", err)
	}
	return nil
}

// ReadEndpoints returns the addresses of the process with a data folder; false when none runs.
func ReadEndpoints(folder string) (Endpoints, bool) {
	raw, err := os.ReadFile(filepath.Join(folder, config.EmbeddedEndpoints))
	if err != nil {
		return Endpoints{}, false
	}
	var e Endpoints
	return e, json.Unmarshal(raw, &e) == nil
}

// drawKeys reads the folder's draw keys, and creates one the first time.
func drawKeys(path string) ([]selector.Key, error) {
	if err := config.CreateDrawKey(path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("write the draw key: %w", err)
	}
	return config.DrawKeys(path)
}

package app

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

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/ledger/pgserver"
	"dispatcher/selector"
)

// Private is a PostgreSQL and a Kafka of this process's own, with their data in one folder.
type Private struct {
	Postgres *pgserver.Server
	Kafka    *embedded.Kafka
	// Keys are the draw keys of the folder, the first made when it was created.
	Keys []selector.Key

	endpoints string // the file that says where the servers listen
}

// PrivateConfig says where a Private lives. Port 0 takes a free one.
type PrivateConfig struct {
	Folder       string
	KafkaPort    int
	PostgresPort int
	Topics       []string
	// UnsyncedKafka leaves Kafka's writing to the disk to the system; see embedded.KafkaConfig.
	UnsyncedKafka bool
}

// privateStopPatience bounds the stop of the private servers.
const privateStopPatience = 20 * time.Second

// privateUmask keeps what the servers write from other users: it holds numbers and texts of messages.
const privateUmask = 0o077

// StartPrivate starts both over the folder, which keeps its data until the next start. From then on, what this process
// writes is for its own user alone (umask).
func StartPrivate(ctx context.Context, cfg PrivateConfig) (*Private, error) {
	p := &Private{}
	err := p.start(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Private) start(ctx context.Context, cfg PrivateConfig) (err error) {
	if err := closedFolder(cfg.Folder); err != nil {
		return fmt.Errorf("data folder (DISPATCHER_DATA_DIR): %w", err)
	}
	syscall.Umask(privateUmask)
	// Kafka first: it holds the folder's lock.
	p.Kafka, err = embedded.StartKafka(ctx, embedded.KafkaConfig{
		Folder: filepath.Join(cfg.Folder, "kafka"), Port: cfg.KafkaPort, Topics: cfg.Topics, Unsynced: cfg.UnsyncedKafka,
	})
	if err != nil {
		return err
	}
	p.Postgres, err = pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(cfg.Folder, "postgres"), Port: cfg.PostgresPort,
	})
	if err != nil {
		return err
	}
	if p.Keys, err = drawKeys(filepath.Join(cfg.Folder, config.EmbeddedDrawKey)); err != nil {
		return err
	}
	p.endpoints = filepath.Join(cfg.Folder, config.EmbeddedEndpoints)
	return writeEndpoints(p.endpoints, Endpoints{KafkaBrokers: []string{p.Kafka.Address()}, PostgresURL: p.Postgres.URL()})
}

// closedFolder makes the data folder, or takes the permissions from one that is there which a new one
// would not have. It gives none. A folder that everybody may write in by design (sticky, as /tmp) stays as
// it is, and so does one of another user, such as a mounted volume: what is made in it is closed.
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

// folderMode is that of a data folder. PostgreSQL does not run as root: its user has to pass through a
// folder of root's, whose content is closed to it all the same.
func folderMode() os.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// Endpoints are where the embedded servers of a running process listen. They stand in
// its data folder, so that the other commands find them without settings.
type Endpoints struct {
	KafkaBrokers []string `json:"kafka_brokers"`
	PostgresURL  string   `json:"postgres_url"`
}

func writeEndpoints(path string, e Endpoints) error {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil { // the URL holds the password
		return fmt.Errorf("note the endpoints: %w", err)
	}
	return nil
}

// ReadEndpoints reports where the process over a data folder listens; false when none runs.
func ReadEndpoints(folder string) (Endpoints, bool) {
	raw, err := os.ReadFile(filepath.Join(folder, config.EmbeddedEndpoints))
	if err != nil {
		return Endpoints{}, false
	}
	var e Endpoints
	return e, json.Unmarshal(raw, &e) == nil
}

// drawKeys reads the folder's draw keys, making one the first time.
func drawKeys(path string) ([]selector.Key, error) {
	if err := config.CreateDrawKey(path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("write the draw key: %w", err)
	}
	return config.DrawKeys(path)
}

// Fill points the settings at the private servers.
func (p *Private) Fill(s *config.Settings) {
	s.KafkaBrokers = []string{p.Kafka.Address()}
	s.PostgresURL = p.Postgres.URL()
}

// Stop ends both. What they were given is kept in the folder.
func (p *Private) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), privateStopPatience)
	defer cancel()
	var errs []error
	if p.endpoints != "" {
		errs = append(errs, os.Remove(p.endpoints))
	}
	if p.Postgres != nil {
		errs = append(errs, p.Postgres.Stop(ctx))
	}
	if p.Kafka != nil {
		errs = append(errs, p.Kafka.Close())
	}
	return errors.Join(errs...)
}

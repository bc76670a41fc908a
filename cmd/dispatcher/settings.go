package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Timeouts of commands. The tests raise them, because a busy machine answers late.
var (
	// reachTimeout bounds the first contact of a command with a broker or the database.
	reachTimeout = 5 * time.Second
	// checkTimeout bounds one check of doctor; the checks run concurrently in two rounds.
	checkTimeout = 8 * time.Second
	// healthTimeout is longer than a dispatcher on this machine takes to answer.
	healthTimeout = 5 * time.Second
)

// need is a setting that a command requires.
type need uint8

const (
	needKafka need = iota
	needPostgres
)

// settings loads and checks the settings. A command asks only for those that it needs, so that send
// works on a machine without a database and report without a broker.
func (c *cli) settings(needs ...need) (*config.Settings, error) {
	s, err := c.load()
	if err != nil {
		return nil, usage(err)
	}
	fromEmbedded(&s)
	embeddedKey(&s)
	problems := []error{s.Validate(true)}
	for _, n := range needs {
		switch {
		case n == needKafka && len(s.KafkaBrokers) == 0:
			problems = append(problems, errors.New("DISPATCHER_KAFKA_BROKERS is missing; set it "+
				"to a list such as kafka-1:9092,kafka-2:9092, or start \"dispatcher run "+
				"--embedded\" in another terminal"))
		case n == needPostgres && s.PostgresURL == "":
			problems = append(problems, errors.New("DISPATCHER_POSTGRES_URL is missing; set it "+
				"to a URL such as postgres://user@host:5432/database, or start \"dispatcher run "+
				"--embedded\" in another terminal"))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, usage(err)
	}
	return &s, nil
}

// fromEmbedded fills in the addresses and the key file of a running "run --embedded" over the data
// folder, if the settings name no others.
func fromEmbedded(s *config.Settings) {
	e, ok := embedded.ReadEndpoints(s.DataDir)
	if !ok {
		return
	}
	if len(s.KafkaBrokers) == 0 {
		s.KafkaBrokers = e.KafkaBrokers
	}
	if s.PostgresURL == "" {
		s.PostgresURL = e.PostgresURL
	}
	if s.DrawKeyFile == "" {
		s.DrawKeyFile = filepath.Join(s.DataDir, config.EmbeddedDrawKey)
	}
}

// embeddedKey fills in the key file of a data folder whose "run --embedded" is stopped now. If the
// settings name a database, that belongs to another dispatcher, whose draws were not made with
// these keys.
func embeddedKey(s *config.Settings) {
	path := filepath.Join(s.DataDir, config.EmbeddedDrawKey)
	if s.DrawKeyFile != "" || s.PostgresURL != "" {
		return
	}
	if _, err := os.Stat(path); err == nil {
		s.DrawKeyFile = path
	}
}

// openKafka connects to the brokers. It returns after one has answered.
func openKafka(ctx context.Context, s *config.Settings, options ...kgo.Opt) (*kgo.Client, error) {
	common, err := app.Connection(s).Options()
	if err != nil {
		return nil, usage(err)
	}
	client, err := kgo.NewClient(append(common, options...)...)
	if err != nil {
		return nil, usage(fmt.Errorf("kafka client: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, usage(kafkaTrouble(s, err))
	}
	return client, nil
}

// database is the open ledger of one command, with its settings.
type database struct {
	*ledger.Ledger
	settings *config.Settings
	release  func()
}

// Close ends the use of the ledger by this command.
func (d *database) Close() { d.release() }

// opener opens the ledger for a command, which calls release at its end.
type opener func(ctx context.Context, c ledger.Config) (
	l *ledger.Ledger, release func(), err error)

// connect is the opener of the program.
func connect(ctx context.Context, c ledger.Config) (*ledger.Ledger, func(), error) {
	l, err := ledger.Connect(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// withLedger opens the ledger that the settings name, for a command that requires it, and closes it
// after use. Database errors become a sentence that says what to do.
func (c *cli) withLedger(ctx context.Context, use func(l *database) error) error {
	s, err := c.settings(needPostgres)
	if err != nil {
		return err
	}
	l, err := c.openLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.sentence(use(l))
}

// sentence replaces an error of the database by its sentence. Other errors stay unchanged.
func (d *database) sentence(err error) error {
	if fromDatabase(err) {
		return usage(postgresTrouble(d.settings, err))
	}
	return err
}

// openLedger connects to the ledger. It returns after the database has answered.
func (c *cli) openLedger(ctx context.Context, s *config.Settings) (*database, error) {
	if c.open != nil {
		return openLedger(ctx, s, c.open)
	}
	return openLedger(ctx, s, connect)
}

func openLedger(ctx context.Context, s *config.Settings, open opener) (*database, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	l, release, err := open(ctx, ledger.Config{
		URL: s.PostgresURL, MaxConns: 1, Region: s.Region,
		Version: versionText(),
	})
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err // told to stop, see execute
	case err != nil:
		return nil, usage(postgresTrouble(s, err))
	}
	return &database{l, s, release}, nil
}

// brokerList is DISPATCHER_KAFKA_BROKERS for a sentence.
func brokerList(s *config.Settings) string { return strings.Join(s.KafkaBrokers, ",") }

// authorFlag defines --author. The default depends on the machine, so the help describes it in
// words.
func (c *cli) authorFlag(flags *pflag.FlagSet, author *string) {
	const name = "author"
	flags.StringVar(author, name, c.user(), "who makes the change (default your user name and "+
		"this machine)")
	flags.Lookup(name).DefValue = ""
}

// user is the author of the command, for the history of the routing.
func (c *cli) user() string {
	name := c.lookup("USER")
	if name == "" {
		name = c.lookup("LOGNAME")
	}
	if who, err := user.Current(); name == "" && err == nil {
		name = who.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// lookup finds a variable in the environment of the command.
func (c *cli) lookup(name string) string {
	for _, pair := range c.env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

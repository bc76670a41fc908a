package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/demo"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/config"
)

// Ports of the private servers of "run --embedded". They are fixed, so that other programs find
// them, and not the usual ones, so that they do not collide with real servers.
const (
	embeddedKafkaPort    = 19092
	embeddedPostgresPort = 15432
)

type runFlags struct {
	embedded     bool
	kafkaPort    int
	postgresPort int
}

func (c *cli) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the dispatcher",
		Long: `Reads messages from Kafka and sends them until it is told to stop (Ctrl-C or
SIGTERM); then it finishes what is under way and leaves. Settings come from DISPATCHER_...
variables.

With --embedded it brings its own PostgreSQL and Kafka, with their data in DISPATCHER_DATA_DIR
(./data), and three sandbox carriers unless DISPATCHER_ROUTING_FILE names a routing document. Any
Kafka client can connect. Where DISPATCHER_LISTEN is a loopback address it prints an address of the
console that works once.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error { return c.run(ctx, &f) }),
	}
	cmd.Flags().BoolVar(&f.embedded, "embedded", false, "bring a private PostgreSQL and Kafka")
	cmd.Flags().IntVar(&f.kafkaPort, "kafka-port", embeddedKafkaPort,
		"port of the embedded Kafka on loopback")
	cmd.Flags().IntVar(&f.postgresPort, "postgres-port", embeddedPostgresPort,
		"port of the embedded PostgreSQL on loopback")
	return cmd
}

// gcPercent is how much the heap may grow before a garbage collection, unless GOGC is set. The heap
// is small and most of it lives as long as a message. Collecting less often saves a tenth of the
// process's CPU, for some 100 MB of memory.
const gcPercent = 300

func (c *cli) run(ctx context.Context, f *runFlags) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	settings, err := c.load()
	if err != nil {
		return usage(err)
	}
	if err := settings.Validate(f.embedded); err != nil {
		return usage(err)
	}
	log, err := c.logger(&settings)
	if err != nil {
		return usage(err)
	}
	opts := app.Options{Settings: settings, Log: log, Version: versionText()}
	folder := "" // of the embedded servers
	if f.embedded {
		folder = settings.DataDir
		private, err := c.startPrivate(ctx, f, &opts)
		if err != nil {
			return usage(err)
		}
		defer func() { err = errors.Join(err, private.Stop()) }()
	} else {
		keys, err := config.DrawKeys(settings.DrawKeyFile)
		if err != nil {
			return usage(err)
		}
		opts.Keys = keys
	}
	gate, token, err := c.gate(&settings, f.embedded)
	if err != nil {
		return usage(err)
	}
	if opts.Tracer, err = tracing.FromEnvironment(ctx, opts.Version); err != nil {
		return usage(err)
	}
	intake, err := newIntake(&opts.Settings, opts.Tracer)
	if err != nil {
		return usage(err)
	}
	serveAPI(&opts, gate, intake)
	code := serveConsole(&opts, gate, token, intake)
	firstRouting(&opts, f.embedded)
	if settings.ReportsURL != "" {
		opts.DaysClosed = publishing(&settings, &log)
	}
	return c.serve(ctx, opts, folder, code)
}

// serve runs the process until ctx ends or a part fails for good. folder holds the data of
// embedded servers, if there are any, and code is part of the printed address of the console.
func (c *cli) serve(ctx context.Context, opts app.Options, folder, code string) error {
	running, err := app.Start(ctx, opts)
	switch {
	case err == nil:
		if code != "" {
			fmt.Fprintf(c.err, "The console, at an address that works once: %s/login?code=%s\n",
				running.URL(), code)
		}
		err = running.Wait(ctx)
		opts.Log.Info().Msg("stopping")
		return errors.Join(err, running.Stop())
	case ctx.Err() != nil:
		return nil //nolint:nilerr // It was told to stop while it was starting.
	case fromPostgres(err):
		return usage(postgresTrouble(&opts.Settings, err))
	}
	return usage(schemaTrouble(err, folder))
}

// startPrivate starts the embedded servers and sets the options to them.
func (c *cli) startPrivate(
	ctx context.Context, f *runFlags, opts *app.Options,
) (*embedded.Servers, error) {
	folder, err := filepath.Abs(opts.Settings.DataDir)
	if err != nil {
		return nil, err
	}
	private, err := embedded.Start(ctx, embedded.Config{
		Folder: folder, KafkaPort: f.kafkaPort, PostgresPort: f.postgresPort,
		Topics: demo.Topics(&opts.Settings),
	})
	if err != nil {
		return nil, err
	}
	for _, name := range ignoredWhenEmbedded(&opts.Settings) {
		opts.Log.Warn().Str("setting", name).Msg("run --embedded brings its own servers and " +
			"keys: " +
			"this setting has no effect; unset it, or leave --embedded out")
	}
	private.Fill(&opts.Settings)
	opts.Keys = private.Keys
	opts.Log.Info().Str("kafka", private.Kafka.Address()).
		Str("postgres", private.Postgres.Address()).Str("data", folder).
		Str("psql", private.Postgres.Psql()).Msg("embedded servers are running")
	return private, nil
}

// ignoredWhenEmbedded are the settings that name other servers or keys than the embedded ones.
func ignoredWhenEmbedded(s *config.Settings) []string {
	var names []string
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"DISPATCHER_KAFKA_BROKERS", len(s.KafkaBrokers) > 0},
		{"DISPATCHER_KAFKA_TLS", s.KafkaTLS},
		{"DISPATCHER_KAFKA_CA_FILE", s.KafkaCAFile != ""},
		{"DISPATCHER_KAFKA_SASL_MECHANISM", s.KafkaSASLMechanism != ""},
		{"DISPATCHER_KAFKA_SASL_USER", s.KafkaSASLUser != ""},
		{"DISPATCHER_KAFKA_SASL_PASSWORD_FILE", s.KafkaSASLPasswordFile != ""},
		{"DISPATCHER_POSTGRES_URL", s.PostgresURL != ""},
		{"DISPATCHER_DRAW_KEY_FILE", s.DrawKeyFile != ""},
	} {
		if setting.set {
			names = append(names, setting.name)
		}
	}
	return names
}

// firstRouting sets which document becomes version 1 when the database has none.
func firstRouting(opts *app.Options, embedded bool) {
	file := opts.Settings.RoutingFile
	switch {
	case file != "":
		opts.Routing = func() (string, []byte, error) {
			raw, err := os.ReadFile(file)
			if err != nil {
				return "", nil, fmt.Errorf("DISPATCHER_ROUTING_FILE: %w; correct the path", err)
			}
			return file, raw, nil
		}
	case embedded:
		opts.Routing = func() (string, []byte, error) {
			return "three sandbox carriers", demo.RoutingWithReceipts(), nil
		}
	}
}

// logger writes to standard error: readable on a terminal, JSON elsewhere.
func (c *cli) logger(s *config.Settings) (zerolog.Logger, error) {
	console := s.LogFormat == "console" || (s.LogFormat == "" && isTerminal(c.err))
	return app.NewLogger(direct(c.err), s.LogLevel, console)
}

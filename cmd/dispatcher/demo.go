package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/demo"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// demoFlags are the arguments of the demo.
type demoFlags struct {
	messages int
	seed     uint64
	keep     bool
	as       format

	kafkaPort, postgresPort int // used with keep
}

func (c *cli) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job: 15 000 messages through Kafka, PostgreSQL and three carriers",
		Long: `Starts a private PostgreSQL, a Kafka and three SMPP carriers on this machine,
publishes messages at weights 25, 15 and 60, sends them and compares the shares with what was
agreed. Nothing needs to be set up and nothing is left running. The data goes to a temporary
folder, or with --keep to DISPATCHER_DATA_DIR (./data), where "run --embedded" finds it.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error { return c.demo(ctx, &f) }),
	}
	cmd.Flags().IntVar(&f.messages, "messages", 15_000, "how many messages to send")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0,
		"seed of the messages; the same seed makes the same messages, 0 takes a new seed each time")
	cmd.Flags().BoolVar(&f.keep, "keep", false,
		"keep the data in DISPATCHER_DATA_DIR for \"run --embedded\"")
	cmd.Flags().IntVar(&f.kafkaPort, "kafka-port", embeddedKafkaPort,
		"port of the embedded Kafka on loopback, with --keep")
	cmd.Flags().IntVar(&f.postgresPort, "postgres-port", embeddedPostgresPort,
		"port of the embedded PostgreSQL on loopback, with --keep")
	f.as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) demo(ctx context.Context, f *demoFlags) error {
	if f.messages < 1 {
		return usage(errors.New("--messages must be at least 1"))
	}
	settings, err := c.load()
	if err != nil {
		return usage(err)
	}
	if f.seed == 0 {
		f.seed = 1 + rand.Uint64N(1_000_000)
	}
	folder, remove, err := demoFolder(f.keep, settings.DataDir)
	if err != nil {
		return err
	}
	defer remove()
	result, err := c.runDemo(ctx, f, settings, folder)
	if err != nil {
		if ctx.Err() != nil {
			return &codedError{code: exitInterrupted, err: errors.New("interrupted; everything " +
				"was stopped in order")}
		}
		return err
	}
	if err := f.as.write(c.out, result, demoSheet(result, f.as)); err != nil {
		return err
	}
	if f.as == formatTable {
		c.demoEpilogue(result, f, &settings)
	}
	return nil
}

// demoFolder is the folder for the data, and a function that removes it.
func demoFolder(keep bool, dataDir string) (folder string, remove func(), err error) {
	if keep {
		folder, err = filepath.Abs(dataDir)
		return folder, func() {}, err
	}
	folder, err = os.MkdirTemp("", "dispatcher-demo-")
	return folder, func() { _ = os.RemoveAll(folder) }, err
}

// runDemo runs the demo with its log next to the data and, on a terminal, a progress bar.
func (c *cli) runDemo(
	ctx context.Context, f *demoFlags, settings config.Settings, folder string,
) (*demo.Result, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "dispatcher.log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of the demo: %w", err)
	}
	defer file.Close() //nolint:errcheck // A log that cannot be closed is no reason to fail.
	log, err := app.NewLogger(file, settings.LogLevel, false)
	if err != nil {
		return nil, usage(err)
	}
	cfg := demo.Config{
		Settings: settings, Messages: f.messages, Seed: f.seed, Folder: folder, Log: log,
		Version: versionText(),
		Step:    func(what string) { fmt.Fprintln(c.err, what) },
	}
	if f.keep {
		cfg.KafkaPort, cfg.PostgresPort = f.kafkaPort, f.postgresPort
	}
	show, wipe := c.progress("answered", int64(f.messages))
	defer wipe()
	cfg.Progress = func(done int) { show(int64(done)) }
	return demo.Run(ctx, cfg)
}

func demoSheet(r *demo.Result, as format) sheet {
	s := list(as, r.Channels, []column[demo.Channel]{
		{key: "channel"},
		{key: "configured", name: "agreed", style: share},
		{key: "first_choice", head: "first choice", width: 6},
		{key: "first_choice_share", name: "drawn", style: share},
		{key: "deviation", only: formatCSV},
		{head: "deviation", only: formatTable, right: true, cell: func(c *demo.Channel) any {
			return fmt.Sprintf("%+.2f", 100*c.Deviation)
		}},
		{key: "fallback"},
		{key: "sent"},
		{key: "carried"},
		{key: "carried_share", name: "share", style: share},
		{key: "segments"},
		{name: "cost", right: true, cell: func(c *demo.Channel) any {
			return report.Amount(c.CostMicros, c.Currency)
		}},
	}...)
	v := report.RouteVerdict{TrafficVerdict: r.TrafficVerdict, DrawsVerdict: r.DrawsVerdict}
	if r.DrawsVerdict == report.Fair || r.DrawsVerdict == report.Unfair {
		v.PValue = &r.ChiSquareP
	}
	s.title = fmt.Sprintf("%d messages at 25 / 15 / 60: %s", r.Messages, verdict(&v))
	return s
}

// ports are the flags of "demo --keep" and "run --embedded" for ports other than the usual ones,
// which may belong to another program.
func (f *demoFlags) ports() (flags string) {
	if f.kafkaPort != embeddedKafkaPort {
		flags += fmt.Sprintf(" --kafka-port %d", f.kafkaPort)
	}
	if f.postgresPort != embeddedPostgresPort {
		flags += fmt.Sprintf(" --postgres-port %d", f.postgresPort)
	}
	return flags
}

// demoEpilogue prints what the table means and what to do next.
func (c *cli) demoEpilogue(r *demo.Result, f *demoFlags, s *config.Settings) {
	fmt.Fprintf(c.out, "\n%s\n", paragraph(c.out, strings.Join(r.Text, " ")))
	fmt.Fprintf(c.out, "accepted %d, rejected %d, unknown %d; submits the carriers saw twice: %d\n",
		r.Accepted, r.Rejected, r.Unknown, r.DuplicatesSent)
	fmt.Fprintf(c.out, "%.1f s, %.0f messages/s, seed %d\n\n", r.Seconds, r.MessagesPerSecond,
		r.Seed)
	fmt.Fprint(c.out, "Go on from here:\n")
	if !f.keep {
		c.suggest("the same, with the data kept in "+s.DataDir, "demo --keep"+f.ports())
	}
	c.suggest(fmt.Sprintf("run the dispatcher on %s (console on http://%s; it prints an address to "+
		"sign in). In another terminal:", s.DataDir, s.Listen),
		"run --embedded"+f.ports())
	c.suggest("hand it a message as a service would", "send --to +447700900123 --text 'Hello'")
	if f.keep {
		c.suggest("why that message went where it went", fmt.Sprintf("explain demo-%d-0", r.Seed))
	}
	c.suggest("what finance gets", "report daily")
}

// suggest prints a command to copy and its purpose.
func (c *cli) suggest(what, command string) {
	fmt.Fprintf(c.out, "  # %s\n  %s %s\n", what, c.self(), command)
}

// self is the command line of this program, for commands to copy.
func (c *cli) self() string {
	path, err := os.Executable()
	if err != nil || filepath.Base(filepath.Dir(filepath.Dir(path))) == "b001" ||
		filepath.Base(filepath.Dir(path)) == "exe" {
		return "go run ./cmd/dispatcher" // built by go run into a temporary folder
	}
	return os.Args[0]
}

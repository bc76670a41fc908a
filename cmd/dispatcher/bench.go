package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/bench"
	"dispatcher/ledger/past"
)

// benchFlags say what is measured, and with how much traffic.
type benchFlags struct {
	config  bench.Config
	faults  bool
	fault   bench.FaultsConfig // except its duration
	codes   bool
	seconds int
	as      format
}

func (c *cli) benchCommand() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the dispatcher against its floor on this machine",
		Long: `Starts a private PostgreSQL, a Kafka and three SMPP carriers and measures, in turn,
  the floor       the same intake, the same submits and minimal statements for the same facts,
                  with no choice and no limits, eight batches at once
  the dispatcher  all of it, four limits on each channel
each in a process of its own, over an empty database and the same number of messages. Both
include the status events. Database round trips, allocations, CPU, WAL and disk are counted from
the first message sent to the last one. Then it takes the latency from the producer to the carrier
at half the dispatcher's throughput.

With --receipts the carriers send a receipt for each message, 0.2 seconds after its answer, and
the throughput is counted until all are stored.

With --processes several dispatchers share the work; figures are of all together, but for
memory.

With --history the dispatcher's ledger has been in use: it holds so many messages of 60 past
days, each delivered; those of the last seven with ids and payloads.

With --profile each side's run over the backlog leaves two files in the folder: NAME.pprof, a CPU
profile of the process for "go tool pprof", and NAME.csv, what each of its statements cost in
PostgreSQL. This takes the extension pg_stat_statements and up to 5 s a run.

With --faults it measures instead what a fault of one of the three channels does to the other
two: a run without fault, then one each in which the third channel loses 2 % of its answers,
answers after 8 s, throttles at half its share, and answers nothing. Messages come at a steady
rate, a third of them for each channel, and the carriers answer after --latency. Counted are
those that were drawn for the healthy two.

With --codes it measures instead how long 50 codes a second take from the producer to the carrier
while the --messages of another lane wait in Kafka and are worked off, and the memory that this
takes.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error { return c.bench(ctx, f) }),
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *benchFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.config.Messages, "messages", 100_000, "messages in each run")
	flags.IntVar(&f.config.Rounds, "rounds", 3,
		"how often the floor and the dispatcher are measured, in turn")
	flags.BoolVar(&f.config.Receipts, "receipts", false,
		"the carriers send a receipt for each message; a run ends when each is delivered")
	flags.IntVar(&f.config.Processes, "processes", 1,
		"how many dispatchers share the work and the database")
	flags.IntVar(&f.config.History, "history", 0,
		"messages of 60 past days that the ledger holds before")
	flags.StringVar(&f.config.Profile, "profile", "",
		"`folder` for CPU profiles and for lists of what statements cost")
	flags.BoolVar(&f.faults, "faults", false, "measure what a fault of one channel does to the "+
		"others")
	flags.BoolVar(&f.codes, "codes", false, "measure codes beside a backlog of --messages")
	flags.Float64Var(&f.fault.Rate, "rate", 1500, "messages a second, with --faults")
	flags.IntVar(&f.seconds, "seconds", 16, "how long each fault lasts, or codes come")
	flags.DurationVar(&f.fault.Latency, "latency", 0,
		"how long the carriers take to answer, with --faults")
	f.as.addTo(flags)
}

// check refuses figures that would measure nothing, and fills in defaults.
func (f *benchFlags) check() error {
	switch {
	case f.config.Messages < 1000 || f.config.Rounds < 1:
		return usage(errors.New("--messages must be at least 1000 and --rounds at least 1"))
	case f.config.Processes < 1 || f.config.Processes > bench.MostProcesses:
		return usage(fmt.Errorf("--processes must be from 1 to %d", bench.MostProcesses))
	case f.config.History != 0 && f.config.History < past.Days:
		return usage(fmt.Errorf("--history must be 0 or at least %d", past.Days))
	case f.codes && (f.faults || f.config.Receipts):
		return usage(errors.New("--codes goes neither with --faults nor with --receipts: run one " +
			"after the other"))
	case f.faults && f.config.Receipts:
		return usage(errors.New("--receipts and --faults exclude each other: run one after the " +
			"other"))
	case (f.faults || f.codes) && f.config.Profile != "":
		return usage(errors.New("--profile goes neither with --faults nor with --codes"))
	case (f.faults || f.codes) && (f.fault.Rate < 10 || f.seconds < 1 || f.fault.Latency < 0):
		return usage(errors.New("--rate must be at least 10, --seconds at least 1 and --latency " +
			"not below 0"))
	}
	f.fault.During = time.Duration(f.seconds) * time.Second
	return nil
}

func (c *cli) bench(ctx context.Context, f *benchFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	step := func(what string) { fmt.Fprintln(c.err, what) }
	f.config.Self, f.config.Step, f.fault.Self, f.fault.Step = self, step, self, step
	if f.faults {
		result, err := bench.RunFaults(ctx, f.fault)
		if err != nil {
			return err
		}
		return f.as.write(c.out, result, faultsSheet(result, f.as))
	}
	if f.codes {
		result, err := bench.RunCodes(ctx, bench.CodesConfig{
			Self: self, Queued: f.config.Messages, During: f.fault.During, Step: step,
		})
		if err != nil {
			return err
		}
		return f.as.write(c.out, result, codesSheet(result))
	}
	result, err := bench.Run(ctx, f.config)
	if err != nil {
		return err
	}
	return f.as.write(c.out, result, benchSheet(result))
}

func benchSheet(r *bench.Result) sheet {
	return sheet{
		title: fmt.Sprintf("%s, %d cores, %s, %s", r.Machine.CPU, r.Machine.Cores,
			r.Machine.Memory, r.Machine.Go),
		header: []string{"what", "value"},
		right:  []int{2},
		rows: [][]string{
			{"floor, messages/s", fmt.Sprintf("%.0f", r.Floor)},
			{"dispatcher, messages/s", fmt.Sprintf("%.0f", r.Dispatcher)},
			{"ratio", fmt.Sprintf("%.2f", r.Ratio)},
			{fmt.Sprintf("latency at %.0f/s, p50 ms", r.LatencyRate), fmt.Sprintf("%.1f",
				r.Latency.P50)},
			{"latency p95 ms", fmt.Sprintf("%.1f", r.Latency.P95)},
			{"latency p99 ms", fmt.Sprintf("%.1f", r.Latency.P99)},
			{"database round trips per message", fmt.Sprintf("%.4f", r.RoundTrips)},
			{"the same at half the load", fmt.Sprintf("%.4f", r.LatencyRoundTrips)},
			{"resident memory, peak MB", fmt.Sprintf("%.0f", r.RSS)},
			{"allocations per message", fmt.Sprintf("%.0f", r.Allocs)},
			{"CPU per message, us", fmt.Sprintf("%.1f", r.CPU)},
			{"of PostgreSQL", fmt.Sprintf("%.1f", r.DatabaseCPU)},
			{"CPU per message of the floor, us", fmt.Sprintf("%.1f", r.FloorUsage.CPU)},
			{"of its PostgreSQL", fmt.Sprintf("%.1f", r.FloorUsage.DatabaseCPU)},
			{"WAL per message, bytes", fmt.Sprintf("%.0f", r.WAL)},
			{"WAL per message of the floor, bytes", fmt.Sprintf("%.0f", r.FloorUsage.WAL)},
			{"disk per message, bytes", fmt.Sprintf("%.0f", r.Disk)},
			{"disk per message of the floor, bytes", fmt.Sprintf("%.0f", r.FloorUsage.Disk)},
		},
	}
}

func codesSheet(r *bench.CodesResult) sheet {
	return sheet{
		title: fmt.Sprintf("%.0f codes a second beside %d queued messages. %s, %d cores", r.Rate,
			r.Queued, r.Machine.CPU, r.Machine.Cores),
		header: []string{"what", "value"},
		right:  []int{2},
		rows: [][]string{
			{"codes, p50 ms", fmt.Sprintf("%.1f", r.Latency.P50)},
			{"codes, p95 ms", fmt.Sprintf("%.1f", r.Latency.P95)},
			{"codes, p99 ms", fmt.Sprintf("%.1f", r.Latency.P99)},
			{"codes missing", strconv.Itoa(r.Missing)},
			{"other messages/s", fmt.Sprintf("%.0f", r.Bulk)},
			{"of them left", strconv.Itoa(r.Left)},
			{"resident memory, peak MB", fmt.Sprintf("%.0f", r.RSS)},
		},
	}
}

func faultsSheet(r *bench.FaultsResult, as format) sheet {
	figure := func(head, form string, of func(*bench.FaultRow) float64) column[bench.FaultRow] {
		name := strings.ReplaceAll(head, " ", "_")
		return column[bench.FaultRow]{
			name: name, head: head, right: true,
			cell: func(f *bench.FaultRow) any {
				return fmt.Sprintf(form, of(f))
			},
		}
	}
	s := list(as, r.Faults, []column[bench.FaultRow]{
		{key: "fault", name: "third_channel", head: "third channel"},
		figure("messages/s", "%.0f", func(f *bench.FaultRow) float64 { return f.Throughput }),
		figure("ratio", "%.2f", func(f *bench.FaultRow) float64 { return f.Ratio }),
		figure("p50 ms", "%.1f", func(f *bench.FaultRow) float64 { return f.Latency.P50 }),
		figure("p99 ms", "%.1f", func(f *bench.FaultRow) float64 { return f.Latency.P99 }),
		figure("p99 ratio", "%.2f", func(f *bench.FaultRow) float64 { return f.P99Ratio }),
		{key: "missing"},
		{key: "faulty_submits", name: "it_read", head: "it read"},
	}...)
	s.title = fmt.Sprintf("%.0f messages/s over three channels that answer after %.0f ms; of "+
		"those drawn for the healthy two. %s, %d cores",
		r.Rate, r.Answer, r.Machine.CPU, r.Machine.Cores)
	return s
}

// benchFloorCommand is the floor process that bench measures the dispatcher against.
func (c *cli) benchFloorCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "bench-floor",
		Short:  "The floor of bench: no choice, no limits; not fit for sending",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			settings, err := c.load()
			if err != nil {
				return usage(err)
			}
			log, err := c.logger(&settings)
			if err != nil {
				return usage(err)
			}
			return bench.ServeFloor(ctx, settings, log)
		}),
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config says what to measure.
type Config struct {
	// Self is the program to start as "run" and as "bench-floor".
	Self     string
	Messages int // of each run
	Rounds   int // pairs of runs, floor and dispatcher
	// Receipts makes the carriers send a receipt for each message; a run then ends when every message
	// is delivered.
	Receipts bool
	// Processes is how many dispatchers share the work, the topic and the database.
	Processes int
	// History is how many messages of 60 past days the dispatcher's ledger holds beforehand; 0 for an
	// empty ledger.
	History int
	// Profile is a folder for a CPU profile of each run over a backlog, of one of its processes, and
	// for a list of what its statements cost in PostgreSQL; none if empty.
	Profile string
	// Step is called with the name of each step.
	Step func(what string)
}

// MostProcesses is the largest Config.Processes, because a topic has that many partitions.
const MostProcesses = 12

// Result is the result of the measurement. Scripts rely on the JSON names.
type Result struct {
	Floor      float64 `json:"floor_messages_per_second"`
	Dispatcher float64 `json:"dispatcher_messages_per_second"`
	// Ratio is the median of the rounds' ratios. The two runs of a round follow each other within
	// seconds, so that changes of the machine's load cancel out.
	Ratio   float64 `json:"ratio"`
	Latency Latency `json:"latency_ms"`
	// Usage is what the dispatcher used while it worked off the backlog, the median of the rounds.
	// FloorUsage is what the floor used.
	Usage
	FloorUsage Usage   `json:"floor"`
	RSS        float64 `json:"rss_mb"`
	Messages   int     `json:"messages"`
	Receipts   bool    `json:"receipts"`
	Processes  int     `json:"processes"`
	History    int     `json:"history"`
	Rounds     []Round `json:"rounds"`
	// LatencyRate is the steady load, in messages per second, under which latency was measured.
	LatencyRate float64 `json:"latency_messages_per_second"`
	// LatencyRoundTrips are the round trips per message under that load. Batches are smaller then,
	// because no messages wait.
	LatencyRoundTrips float64 `json:"latency_round_trips_per_message"`
	Machine           Machine `json:"machine"`
}

// Latency is from the producer's timestamp to the carrier's read of the submit, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Round is one pair of runs.
type Round struct {
	Floor      float64 `json:"floor_messages_per_second"`
	Dispatcher float64 `json:"dispatcher_messages_per_second"`
	Ratio      float64 `json:"ratio"`
	Usage
	FloorUsage Usage `json:"floor"`
}

// Machine is the machine of the measurement.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Go     string `json:"go"`
	OS     string `json:"os"`
}

// Commands with which a measured process is started.
const (
	runCommand   = "run"
	floorCommand = "bench-floor"
)

// Run measures the floor and the dispatcher in turn, then the dispatcher's latency at half of its
// measured throughput.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	if cfg.Profile != "" {
		if err := os.MkdirAll(cfg.Profile, 0o755); err != nil {
			return nil, err
		}
	}
	r, err := newRig(ctx, cfg.Receipts, cfg.Profile, cfg.Step)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.processes = cfg.Processes
	if cfg.History > 0 {
		if err := r.addHistory(ctx, cfg.History, cfg.Step); err != nil {
			return nil, err
		}
	}
	result = &Result{
		Messages: cfg.Messages, History: cfg.History, Processes: cfg.Processes,
		Receipts: cfg.Receipts, Machine: machine(),
	}
	for n := range cfg.Rounds {
		if err := r.round(ctx, &cfg, n, result); err != nil {
			return nil, err
		}
	}
	result.Floor = median(result.Rounds, func(r Round) float64 { return r.Floor })
	result.Dispatcher = median(result.Rounds, func(r Round) float64 { return r.Dispatcher })
	result.Ratio = median(result.Rounds, func(r Round) float64 { return r.Ratio })
	result.Usage = medianUsage(result.Rounds, func(r *Round) *Usage { return &r.Usage })
	result.FloorUsage = medianUsage(result.Rounds, func(r *Round) *Usage { return &r.FloorUsage })
	cfg.Step("latency at half that load")
	return result, r.latency(ctx, &cfg, result)
}

// round measures both sides once, the floor first in even rounds and last in odd ones.
func (r *rig) round(ctx context.Context, cfg *Config, n int, result *Result) error {
	commands := []string{floorCommand, runCommand}
	if n%2 == 1 {
		slices.Reverse(commands)
	}
	var round Round
	for _, command := range commands {
		run := &run{
			rig:      r,
			command:  command,
			name:     fmt.Sprintf("bench-%s-%d", strings.TrimPrefix(command, "bench-"), n),
			messages: cfg.Messages,
		}
		if err := run.throughput(ctx, cfg.Self); err != nil {
			return err
		}
		if command == floorCommand {
			round.Floor, round.FloorUsage = run.rate, run.each
		} else {
			round.Dispatcher, round.Usage = run.rate, run.each
			result.RSS = max(result.RSS, run.rss)
		}
		cfg.Step(
			fmt.Sprintf("round %d, %-11s %8.0f messages/s", n+1,
				strings.TrimPrefix(command, "bench-"), run.rate),
		)
	}
	round.Ratio = round.Dispatcher / round.Floor
	result.Rounds = append(result.Rounds, round)
	return nil
}

// latencySeconds is how long the steady load lasts.
const latencySeconds = 8

func (r *rig) latency(ctx context.Context, cfg *Config, result *Result) error {
	result.LatencyRate = result.Dispatcher / 2
	n := int(result.LatencyRate * latencySeconds)
	run := &run{
		rig:      r,
		command:  runCommand,
		name:     "bench-latency",
		messages: n,
		pause:    time.Duration(float64(time.Second) / result.LatencyRate),
	}
	if err := run.steady(ctx, cfg.Self); err != nil {
		return err
	}
	result.Latency, result.LatencyRoundTrips = run.latency, run.each.RoundTrips
	return nil
}

func median(rounds []Round, of func(Round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// medianUsage is the median of each figure.
func medianUsage(rounds []Round, of func(*Round) *Usage) Usage {
	each := func(figure func(*Usage) float64) float64 {
		return median(rounds, func(r Round) float64 { return figure(of(&r)) })
	}
	return Usage{
		RoundTrips:  each(func(u *Usage) float64 { return u.RoundTrips }),
		Allocs:      each(func(u *Usage) float64 { return u.Allocs }),
		CPU:         each(func(u *Usage) float64 { return u.CPU }),
		DatabaseCPU: each(func(u *Usage) float64 { return u.DatabaseCPU }),
		WAL:         each(func(u *Usage) float64 { return u.WAL }),
		Disk:        each(func(u *Usage) float64 { return u.Disk }),
	}
}

// machine describes this machine, as far as the system reveals it.
func machine() Machine {
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Memory: field("/proc/meminfo", "MemTotal"),
		Cores: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func field(path, key string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CodesConfig says how to measure the effect of a backlog on OTPs, called codes here.
type CodesConfig struct {
	Self   string // the program to start as "run"
	Queued int    // messages of the second lane that wait in Kafka when the process starts
	During time.Duration
	Step   func(what string)
}

// CodesResult is the result of the measurement. Scripts rely on the JSON names.
type CodesResult struct {
	Queued  int     `json:"queued"`
	Rate    float64 `json:"codes_per_second"`
	Seconds float64 `json:"seconds"`
	// Latency is how long the codes took. Missing are codes that had not arrived 15 s after the last
	// one was produced.
	Latency Latency `json:"codes_latency_ms"`
	Missing int     `json:"missing"`
	// Bulk is how fast the backlog was worked off meanwhile, Left how much of it remained.
	Bulk    float64 `json:"bulk_messages_per_second"`
	Left    int     `json:"left"`
	RSS     float64 `json:"rss_mb"` // largest resident memory of the process
	Machine Machine `json:"machine"`
}

// codesRate is how many codes are produced per second.
const codesRate = 50

// RunCodes starts a process with a backlog on one lane and produces codes on the first lane.
func RunCodes(ctx context.Context, cfg CodesConfig) (result *CodesResult, err error) {
	r, err := newRig(ctx, false, "", cfg.Step)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result = &CodesResult{
		Queued: cfg.Queued, Rate: codesRate, Seconds: cfg.During.Seconds(), Machine: machine(),
	}
	run := &run{rig: r, command: runCommand, name: "bulk", codes: "codes"}
	m := run.begin()
	cfg.Step(fmt.Sprintf("producing %d messages", cfg.Queued))
	if err := r.produce(ctx, run.name, 0, cfg.Queued, 0); err != nil {
		return nil, err
	}
	if err := r.servers.Kafka.CreateTopics(ctx, MostProcesses, run.codes); err != nil {
		return nil, err
	}
	cfg.Step("codes beside them")
	return result, run.with(ctx, cfg.Self, func(ctx context.Context, p *process) error {
		if err := run.await(ctx, p, 1); err != nil {
			return err
		}
		return run.feedCodes(ctx, p, m, result)
	})
}

// feedCodes produces codes at an even rate, waits for them and fills in the result. Their numbers
// follow those of the backlog.
func (r *run) feedCodes(
	ctx context.Context, p *process, m *meter, result *CodesResult,
) (err error) {
	codes := make(map[int]bool)
	for n := range int(codesRate * result.Seconds) {
		codes[result.Queued+n] = true
	}
	began, before := time.Now(), m.count()
	err = r.rig.produce(ctx, r.codes, result.Queued, result.Queued+len(codes), time.Second/codesRate)
	if err != nil {
		return err
	}
	ended, seen := time.Now(), m.count()
	if err := awaitOthers(ctx, m, codes, ended.Add(lastArrivals)); err != nil {
		return err
	}
	row := measureOthers(m.arrivals(), codes, began, ended)
	result.Latency, result.Missing = row.Latency, row.Missing
	result.Bulk = max(float64(seen-before-len(codes)), 0) / ended.Sub(began).Seconds()
	result.Left = max(result.Queued-(m.count()-len(codes)), 0)
	result.RSS, err = p.residentMegabytes()
	return err
}

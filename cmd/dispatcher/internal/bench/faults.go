package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

// FaultsConfig says how to measure the effect of a fault of one channel on the others.
type FaultsConfig struct {
	Self   string  // the program to start as "run"
	Rate   float64 // messages per second, which three channels share equally
	During time.Duration
	// Latency is how long each carrier takes to answer.
	Latency time.Duration
	Step    func(what string)
}

// FaultsResult is the result of the measurement. Scripts rely on the JSON names.
type FaultsResult struct {
	Rate    float64    `json:"offered_messages_per_second"`
	Answer  float64    `json:"carrier_latency_ms"`
	Seconds float64    `json:"seconds"`
	Faults  []FaultRow `json:"faults"`
	Machine Machine    `json:"machine"`
}

// FaultRow is about the messages drawn for the two healthy channels while the third had a fault.
// Fallbacks from the third are not counted.
type FaultRow struct {
	Fault string `json:"fault"`
	// Throughput counts those that arrived during the fault; Ratio is Throughput relative to the
	// healthy run.
	Throughput float64 `json:"others_messages_per_second"`
	Ratio      float64 `json:"ratio"`
	Latency    Latency `json:"others_latency_ms"`
	// P99Ratio is the p99 of the healthy run divided by that of this run.
	P99Ratio float64 `json:"p99_ratio"`
	// Missing are those that had not arrived 15 s after the last one was produced.
	Missing int `json:"missing"`
	// Carried is how many messages the third channel read.
	Carried int `json:"faulty_submits"`
}

// Times of a run with a fault.
const (
	leadIn        = 2 * time.Second // at the same rate before the fault
	slowAnswer    = 8 * time.Second
	answerTimeout = 9 * time.Second // above slowAnswer: slow is not silent
	lastArrivals  = 15 * time.Second
)

// faults are the faults of the third channel, by the name that is printed. rate is its share of the
// load, latency its answer time without a fault.
func faults(rate float64, latency time.Duration) []struct {
	name  string
	begin smpptest.Behaviour
} {
	return []struct {
		name  string
		begin smpptest.Behaviour
	}{
		{"healthy", smpptest.Behaviour{Latency: latency}},
		{"2 % of answers lost", smpptest.Behaviour{Latency: latency, DropEvery: 50}},
		{"answers after 8 s", smpptest.Behaviour{Latency: slowAnswer}},
		{"throttles at half its share", smpptest.Behaviour{Latency: latency, Rate: max(int(rate/2), 1)}},
		{"answers nothing", smpptest.Behaviour{Silent: true}},
	}
}

// RunFaults measures one run for each fault, the healthy run first.
func RunFaults(ctx context.Context, cfg FaultsConfig) (result *FaultsResult, err error) {
	r, err := newRig(ctx, false, "", cfg.Step)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result = &FaultsResult{
		Rate: cfg.Rate, Answer: float64(cfg.Latency) / float64(time.Millisecond),
		Seconds: cfg.During.Seconds(), Machine: machine(),
	}
	for i, fault := range faults(cfg.Rate/3, cfg.Latency) {
		row, err := r.fault(ctx, &cfg, "fault-"+strconv.Itoa(i), fault.begin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fault.name, err)
		}
		row.Fault, row.Ratio, row.P99Ratio = fault.name, 1, 1
		if i > 0 {
			row.compare(&result.Faults[0])
		}
		cfg.Step(
			fmt.Sprintf("%-28s %6.0f messages/s of the others, p99 %.0f ms", row.Fault,
				row.Throughput, row.Latency.P99),
		)
		result.Faults = append(result.Faults, row)
	}
	return result, nil
}

// compare fills in the ratios to the healthy run.
func (row *FaultRow) compare(healthy *FaultRow) {
	if healthy.Throughput > 0 {
		row.Ratio = row.Throughput / healthy.Throughput
	}
	if row.Latency.P99 > 0 {
		row.P99Ratio = healthy.Latency.P99 / row.Latency.P99
	}
}

// faulty is the index of the channel with the fault.
const faulty = 2

// fault produces at an even rate for one process. The fault begins after the lead-in, under load.
func (r *rig) fault(
	ctx context.Context, cfg *FaultsConfig, name string, behaviour smpptest.Behaviour,
) (row FaultRow, err error) {
	server := r.carriers[faulty]
	healthy := smpptest.Behaviour{Latency: cfg.Latency}
	for _, carrier := range r.carriers {
		carrier.SetBehaviour(healthy)
	}
	before := server.Stats().Submits
	run := &run{
		rig: r, command: runCommand, name: name, weights: weights{1, 1, 1}, timeout: answerTimeout,
		pause: time.Duration(float64(time.Second) / cfg.Rate),
		messages: 1 + int(
			cfg.Rate*(leadIn+cfg.During).Seconds(),
		), settings: []string{"DISPATCHER_SEND_TIMEOUT=12s"},
	}
	others, err := r.drawnForOthers(name, run.weights, run.messages)
	if err != nil {
		return row, err
	}
	m, err := run.first(ctx)
	if err != nil {
		return row, err
	}
	feed := func(ctx context.Context) error {
		began := time.Now()
		timer := time.AfterFunc(leadIn, func() { server.SetBehaviour(behaviour) })
		defer timer.Stop()
		if err := r.produce(ctx, name, 1, run.messages, run.pause); err != nil {
			return err
		}
		ended := time.Now()
		err := awaitOthers(ctx, m, others, ended.Add(lastArrivals))
		row = measureOthers(m.arrivals(), others, began.Add(leadIn), ended)
		server.SetBehaviour(healthy)
		return err
	}
	err = run.feedAlone(ctx, cfg.Self, feed)
	row.Carried = int(server.Stats().Submits - before)
	return row, err
}

// drawnForOthers are the numbers of the messages whose draw picks a healthy channel.
func (r *rig) drawnForOthers(topic string, w weights, messages int) (map[int]bool, error) {
	entries := make([]selector.Entry, len(w))
	for i, weight := range w {
		parsed, err := selector.ParseWeight(strconv.Itoa(weight))
		if err != nil {
			return nil, err
		}
		entries[i] = selector.Entry{Name: string(rune('a' + i)), Weight: parsed}
	}
	table, err := selector.NewTable(entries)
	if err != nil {
		return nil, err
	}
	drawer, others := selector.NewDrawer(r.servers.Keys[0]), make(map[int]bool, messages)
	for number := range messages {
		if table.Pick(drawer.Draw(messageID(topic, number), 1, table.Size())) != faulty {
			others[number] = true
		}
	}
	return others, nil
}

// awaitOthers waits until all of them have arrived, or until a time.
func awaitOthers(ctx context.Context, m *meter, others map[int]bool, until time.Time) error {
	for time.Now().Before(until) {
		arrived := map[int]bool{}
		for _, a := range m.arrivals() {
			if others[a.number] {
				arrived[a.number] = true
			}
		}
		if len(arrived) == len(others) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// measureOthers looks at the first arrival of each message. Throughput counts those between from
// and until. Latency is that of the messages produced from from on; a missing one counts as
// lastArrivals.
func measureOthers(seen []arrival, others map[int]bool, from, until time.Time) (row FaultRow) {
	arrived := make(map[int]bool, len(others))
	var delays []time.Duration
	inTime := 0
	for i := range seen {
		a := &seen[i]
		if !others[a.number] || arrived[a.number] {
			continue
		}
		arrived[a.number] = true
		if !a.at.Before(from) && a.at.Before(until) {
			inTime++
		}
		if a.produced.Before(from) {
			continue
		}
		delays = append(delays, a.delay())
	}
	row.Missing = len(others) - len(arrived)
	row.Throughput = float64(inTime) / until.Sub(from).Seconds()
	if len(delays) > 0 {
		row.Latency = percentiles(
			slices.Concat(delays, slices.Repeat([]time.Duration{lastArrivals}, row.Missing)),
		)
	}
	return row
}

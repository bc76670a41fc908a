package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// run is one measured process.
type run struct {
	rig      *rig
	command  string
	name     string // of topic, database and group
	messages int
	pause    time.Duration

	rate, roundTrips, allocs, rss float64
	latency                       Latency
}

// throughput lets the process work off a backlog.
func (u *run) throughput(ctx context.Context, self string) error {
	m := &meter{}
	u.rig.meter.Store(m)
	if err := u.rig.produce(ctx, u.name, u.messages, 0); err != nil {
		return err
	}
	return u.measure(ctx, self, func(context.Context) error { return nil }, func() { u.rate = m.rate() })
}

// steady feeds the process at an even rate.
func (u *run) steady(ctx context.Context, self string) error {
	m := &meter{}
	u.rig.meter.Store(m)
	feed := func(ctx context.Context) error { return u.rig.produce(ctx, u.name, u.messages, u.pause) }
	return u.measure(ctx, self, feed, func() { u.latency = m.percentiles() })
}

// patience bounds one run.
const patience = 2 * time.Minute

// measure starts the process, feeds it, waits until the carriers have everything, reads
// its figures and stops it.
func (u *run) measure(ctx context.Context, self string, feed func(context.Context) error, read func()) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	url, err := u.rig.database(ctx, u.name)
	if err != nil {
		return err
	}
	routing, err := u.rig.routing(u.name)
	if err != nil {
		return err
	}
	p, err := startProcess(ctx, self, u.command, u.rig.environment(url, routing, u.name))
	if err != nil {
		return err
	}
	err = errors.Join(feed(ctx), u.await(ctx, p))
	if err == nil {
		read()
		err = u.figures(ctx, p)
	}
	return errors.Join(err, p.stop())
}

// await waits until the carriers have read every message.
func (u *run) await(ctx context.Context, p *process) error {
	for u.rig.meter.Load().count() < u.messages {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s ended by itself: %s", u.command, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d messages arrived: %w", u.name, u.rig.meter.Load().count(), u.messages, ctx.Err())
		}
	}
	return nil
}

// figures reads the process's own metrics.
func (u *run) figures(ctx context.Context, p *process) error {
	var err error
	if u.rss, err = p.residentMegabytes(); err != nil {
		return err
	}
	if u.command != runCommand {
		return nil
	}
	values, err := scrape(ctx, p.url)
	if err != nil {
		return err
	}
	u.roundTrips = values["dispatcher_ledger_round_trips_total"] / float64(u.messages)
	u.allocs = values["go_memstats_mallocs_total"] / float64(u.messages)
	return nil
}

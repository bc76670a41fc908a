package bench

import (
	"cmp"
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
	codes    string // topic of the first lane, if there are two
	messages int
	pause    time.Duration
	weights  weights       // 25, 15 and 60 unless set
	timeout  time.Duration // of the carriers' answers; a minute unless set
	settings []string      // in addition to the rig's environment

	others []*process // besides the one that is passed around, see Config.Processes
	before int        // receipts taken before the run

	rate, rss float64
	each      Usage // per message
	latency   Latency
}

// throughput measures the process working off a backlog.
func (r *run) throughput(ctx context.Context, self string) error {
	m := r.begin()
	if err := r.rig.produce(ctx, r.name, 0, r.messages, 0); err != nil {
		return err
	}
	return r.measure(ctx, self, func(context.Context) error { return nil },
		func() { r.rate = m.rate() })
}

// steady measures the process at an even rate. It begins once the process has sent one message:
// messages produced while it joins its group would be a backlog.
func (r *run) steady(ctx context.Context, self string) error {
	m, err := r.first(ctx)
	if err != nil {
		return err
	}
	feed := func(ctx context.Context) error {
		return r.rig.produce(ctx, r.name, 1, r.messages, r.pause)
	}
	return r.measure(ctx, self, feed, func() { r.latency = m.percentiles() })
}

// begin sets a new meter.
func (r *run) begin() *meter {
	m := &meter{}
	r.rig.meter.Store(m)
	r.before = r.rig.delivered()
	return m
}

// first sets a new meter and produces the message that shows that the process reads.
func (r *run) first(ctx context.Context) (*meter, error) {
	m := r.begin()
	return m, r.rig.produce(ctx, r.name, 0, 1, 0)
}

// A run may take startTimeout, and slowest for each message.
const (
	startTimeout = 2 * time.Minute
	slowest      = time.Millisecond
)

// measure starts the process and calls feed once its first message was sent. It waits until the
// carriers have read everything and their receipts are taken, reads the process's figures and stops
// it.
func (r *run) measure(
	ctx context.Context, self string, feed func(context.Context) error, read func(),
) error {
	return r.with(ctx, self, func(ctx context.Context, p *process) (err error) {
		if err := r.follow(ctx, p, feed); err != nil {
			return err
		}
		read()
		r.rss, err = p.residentMegabytes()
		return err
	})
}

// feedAlone starts the process, calls feed once its first message was sent, and stops it when feed
// returns.
func (r *run) feedAlone(ctx context.Context, self string, feed func(context.Context) error) error {
	return r.with(ctx, self, func(ctx context.Context, p *process) error {
		if err := r.await(ctx, p, 1); err != nil {
			return err
		}
		return feed(ctx)
	})
}

// with starts the process with an empty database, or with the one that has history, calls work and
// stops the process.
func (r *run) with(
	ctx context.Context, self string, work func(context.Context, *process) error,
) (err error) {
	timeout := startTimeout + time.Duration(r.messages)*slowest
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if r.ledgerName() == historyDatabase {
		err = r.rig.forgetRouting(ctx, historyDatabase)
	} else {
		err = r.rig.makeDatabase(ctx, r.name)
		defer func() {
			err = errors.Join(err, r.rig.dropDatabase(context.WithoutCancel(ctx), r.name))
		}()
	}
	if err = errors.Join(err, r.rig.checkpoint(ctx)); err != nil {
		return err
	}
	url := r.rig.servers.Postgres.URLOf(r.ledgerName())
	routing, err := r.rig.routing(r.name, r.codes, cmp.Or(r.weights, weights{25, 15, 60}),
		cmp.Or(r.timeout, time.Minute))
	if err != nil {
		return err
	}
	env := append(r.rig.environment(url, routing, r.name), r.settings...)
	p, err := startProcess(ctx, self, r.command, env)
	if err != nil {
		return err
	}
	err = r.startOthers(ctx, self, env)
	if err == nil {
		err = work(ctx, p)
	}
	for _, other := range r.others {
		err = errors.Join(err, other.stop())
	}
	return errors.Join(err, p.stop())
}

// startOthers starts the other dispatchers.
func (r *run) startOthers(ctx context.Context, self string, env []string) error {
	r.others = nil
	for r.command == runCommand && len(r.others)+1 < r.rig.processes {
		p, err := startProcess(ctx, self, r.command, env)
		if err != nil {
			return err
		}
		r.others = append(r.others, p)
	}
	return nil
}

// follow reads the process's counters at its first and at its last message or receipt, so that
// starting and joining the group do not count.
func (r *run) follow(ctx context.Context, p *process, feed func(context.Context) error) error {
	if err := r.await(ctx, p, 1); err != nil {
		return err
	}
	before, err := r.used(ctx, p)
	if err != nil {
		return err
	}
	finish, err := r.profile(ctx, p)
	if err != nil {
		return err
	}
	sent := r.rig.meter.Load().count()
	if err := errors.Join(feed(ctx), r.await(ctx, p, r.messages)); err != nil {
		return err
	}
	after, err := r.used(ctx, p)
	if err != nil {
		return err
	}
	messages := max(r.messages-sent, 1) // a tiny run may be over already
	r.each = after.per(float64(messages), before)
	return finish(messages)
}

// await waits until the carriers have read n messages. If n is all of them and the carriers send
// receipts, it also waits until all receipts are taken.
func (r *run) await(ctx context.Context, p *process, n int) error {
	for !r.arrived(n) {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s ended by itself: %s", r.command, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d messages arrived, %d are delivered: %w", r.name,
				r.rig.meter.Load().count(), n, r.rig.delivered()-r.before, ctx.Err())
		}
	}
	return nil
}

// arrived reports whether the condition of await is met, and records when all receipts are taken.
func (r *run) arrived(n int) bool {
	m := r.rig.meter.Load()
	if m.count() < n {
		return false
	}
	if !r.rig.receipts || n < r.messages {
		return true
	}
	if r.rig.delivered()-r.before < n {
		return false
	}
	m.end(time.Now())
	return true
}

// ledgerName is the name of the process's database.
func (r *run) ledgerName() string {
	if r.rig.history && r.command == runCommand {
		return historyDatabase
	}
	return r.name
}

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
	timeout  time.Duration // of the carriers' answers; 8 s unless set
	settings []string      // in addition to the rig's environment

	others []*process // besides the one that is passed around, see Config.Processes
	before int        // receipts taken before the run

	rate, rss float64
	each      Usage // per message
	latency   Latency
}

// throughput measures the process working off a backlog.
func (u *run) throughput(ctx context.Context, self string) error {
	m := u.begin()
	if err := u.rig.produce(ctx, u.name, 0, u.messages, 0); err != nil {
		return err
	}
	return u.measure(ctx, self, func(context.Context) error { return nil },
		func() { u.rate = m.rate(u.rig.receipts) })
}

// steady measures the process at an even rate. It begins once the process has sent one message:
// messages produced while it joins its group would be a backlog.
func (u *run) steady(ctx context.Context, self string) error {
	m, err := u.first(ctx)
	if err != nil {
		return err
	}
	feed := func(ctx context.Context) error {
		return u.rig.produce(ctx, u.name, 1, u.messages, u.pause)
	}
	return u.measure(ctx, self, feed, func() { u.latency = m.percentiles() })
}

// begin sets a new meter.
func (u *run) begin() *meter {
	m := &meter{}
	u.rig.meter.Store(m)
	u.before = u.rig.delivered()
	return m
}

// first sets a new meter and produces the message that shows that the process reads.
func (u *run) first(ctx context.Context) (*meter, error) {
	m := u.begin()
	return m, u.rig.produce(ctx, u.name, 0, 1, 0)
}

// runTimeout bounds one run.
const runTimeout = 2 * time.Minute

// measure starts the process and calls feed once its first message was sent. It waits until the
// carriers have read everything and their receipts are taken, reads the process's figures and stops
// it.
func (u *run) measure(
	ctx context.Context, self string, feed func(context.Context) error, read func(),
) error {
	return u.with(ctx, self, func(ctx context.Context, p *process) (err error) {
		if err := u.follow(ctx, p, feed); err != nil {
			return err
		}
		read()
		u.rss, err = p.residentMegabytes()
		return err
	})
}

// feedAlone starts the process, calls feed once its first message was sent, and stops it when feed
// returns.
func (u *run) feedAlone(ctx context.Context, self string, feed func(context.Context) error) error {
	return u.with(ctx, self, func(ctx context.Context, p *process) error {
		if err := u.await(ctx, p, 1); err != nil {
			return err
		}
		return feed(ctx)
	})
}

// with starts the process with an empty database, calls work and stops the process.
func (u *run) with(
	ctx context.Context, self string, work func(context.Context, *process) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	prepare := u.rig.makeDatabase
	if u.ledgerName() != u.name {
		prepare = u.rig.forgetRouting
	}
	if err := prepare(ctx, u.ledgerName()); err != nil {
		return err
	}
	url := u.rig.servers.Postgres.URLOf(u.ledgerName())
	routing, err := u.rig.routing(u.name, u.codes, cmp.Or(u.weights, weights{25, 15, 60}),
		cmp.Or(u.timeout, 8*time.Second))
	if err != nil {
		return err
	}
	env := append(u.rig.environment(url, routing, u.name), u.settings...)
	p, err := startProcess(ctx, self, u.command, env)
	if err != nil {
		return err
	}
	err = u.startOthers(ctx, self, env)
	if err == nil {
		err = work(ctx, p)
	}
	for _, other := range u.others {
		err = errors.Join(err, other.stop())
	}
	return errors.Join(err, p.stop())
}

// startOthers starts the other dispatchers.
func (u *run) startOthers(ctx context.Context, self string, env []string) error {
	u.others = nil
	for u.command == runCommand && len(u.others)+1 < u.rig.processes {
		p, err := startProcess(ctx, self, u.command, env)
		if err != nil {
			return err
		}
		u.others = append(u.others, p)
	}
	return nil
}

// follow reads the process's counters at its first and at its last message or receipt, so that
// starting and joining the group do not count.
func (u *run) follow(ctx context.Context, p *process, feed func(context.Context) error) error {
	if err := u.await(ctx, p, 1); err != nil {
		return err
	}
	before, err := u.used(ctx, p)
	if err != nil {
		return err
	}
	sent := u.rig.meter.Load().count()
	if err := errors.Join(feed(ctx), u.await(ctx, p, u.messages)); err != nil {
		return err
	}
	after, err := u.used(ctx, p)
	if err != nil {
		return err
	}
	u.each = after.per(float64(max(u.messages-sent, 1)), before) // a tiny run may be over already
	return nil
}

// await waits until the carriers have read n messages. If n is all of them and the carriers send
// receipts, it also waits until all receipts are taken.
func (u *run) await(ctx context.Context, p *process, n int) error {
	for !u.arrived(n) {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s ended by itself: %s", u.command, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d messages arrived, %d are delivered: %w", u.name,
				u.rig.meter.Load().count(), n, u.rig.delivered()-u.before, ctx.Err())
		}
	}
	return nil
}

// arrived reports whether the condition of await is met, and records how many messages are
// delivered.
func (u *run) arrived(n int) bool {
	m := u.rig.meter.Load()
	if !u.rig.receipts {
		return m.count() >= n
	}
	delivered := u.rig.delivered() - u.before
	m.note(delivered, time.Now())
	return m.count() >= n && (n < u.messages || delivered >= n)
}

// ledgerName is the name of the process's database.
func (u *run) ledgerName() string {
	if u.rig.history && u.command == runCommand {
		return historyDatabase
	}
	return u.name
}

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
	messages int
	pause    time.Duration
	weights  weights       // 25, 15 and 60 unless set
	timeout  time.Duration // of the carriers' answers; 8 s unless set
	settings []string      // beyond the rig's environment

	rate, rss float64
	each      Usage // of a message
	latency   Latency
}

// throughput lets the process work off a backlog.
func (u *run) throughput(ctx context.Context, self string) error {
	m := u.begin()
	if err := u.rig.produce(ctx, u.name, 0, u.messages, 0); err != nil {
		return err
	}
	return u.measure(ctx, self, func(context.Context) error { return nil },
		func() { u.rate = m.rate() })
}

// steady feeds the process at an even rate. It begins when the process has shown with one message
// that it reads: messages produced while it joins its group would be a backlog.
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

// begin puts a new meter in place.
func (u *run) begin() *meter {
	m := &meter{}
	u.rig.meter.Store(m)
	return m
}

// first puts a new meter in place and produces the message with which the process shows that it
// reads.
func (u *run) first(ctx context.Context) (*meter, error) {
	m := u.begin()
	return m, u.rig.produce(ctx, u.name, 0, 1, 0)
}

// runTimeout bounds one run.
const runTimeout = 2 * time.Minute

// measure starts the process, feeds it once it has sent its first message, waits until the carriers
// have everything, reads its figures and stops it.
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

// feedAlone starts the process, feeds it once it has sent its first message, and stops it when feed
// returns.
func (u *run) feedAlone(ctx context.Context, self string, feed func(context.Context) error) error {
	return u.with(ctx, self, func(ctx context.Context, p *process) error {
		if err := u.await(ctx, p, 1); err != nil {
			return err
		}
		return feed(ctx)
	})
}

// with starts the process over an empty database, runs work and stops the process.
func (u *run) with(
	ctx context.Context, self string, work func(context.Context, *process) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	url, err := u.rig.database(ctx, u.name)
	if err != nil {
		return err
	}
	routing, err := u.rig.routing(u.name, cmp.Or(u.weights, weights{25, 15, 60}),
		cmp.Or(u.timeout, 8*time.Second))
	if err != nil {
		return err
	}
	p, err := startProcess(ctx, self, u.command,
		append(u.rig.environment(url, routing, u.name), u.settings...))
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, p), p.stop())
}

// follow reads the process's counters at its first and at its last message, so that the start and
// the joining of the group are not counted.
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
	u.each = after.per(float64(max(u.messages-sent, 1)), before) // a tiny run may be over by now
	return nil
}

// await waits until the carriers have read so many messages.
func (u *run) await(ctx context.Context, p *process, n int) error {
	for u.rig.meter.Load().count() < n {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s ended by itself: %s", u.command, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d messages arrived: %w", u.name,
				u.rig.meter.Load().count(), n, ctx.Err())
		}
	}
	return nil
}

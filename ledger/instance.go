package ledger

import (
	"context"
	"time"
)

// Register writes this process's row into dispatcher.instances. Claim needs it: an
// attempt belongs to the instance that is going to submit it, and a dead instance's
// attempts are found by that.
func (l *Ledger) Register(ctx context.Context) error {
	var id int64
	err := l.hot.QueryRow(ctx, `
		insert into dispatcher.instances (region, host, version, counts) values ($1, $2, $3, '{}') returning id`,
		l.config.Region, l.config.Host, l.config.Version).Scan(&id)
	if err != nil {
		return wrap("register instance", err)
	}
	l.instance.Store(id)
	return nil
}

// Instance is the id that Register got, 0 before.
func (l *Ledger) Instance() int64 { return l.instance.Load() }

// Beat says that this process is alive. oldestOpen is the claim time, by the
// database's clock, of its oldest attempt without an outcome; the zero time means that
// nothing is open. A row that was forgotten meanwhile is written again.
func (l *Ledger) Beat(ctx context.Context, oldestOpen time.Time) error {
	id := l.instance.Load()
	if id == 0 {
		return wrap("heart-beat", ErrNotRegistered)
	}
	_, err := l.hot.Exec(ctx, `
		insert into dispatcher.instances (id, region, host, version, last_seen, oldest_open_at, counts)
		values ($1, $2, $3, $4, clock_timestamp(), $5, '{}')
		on conflict (id) do update set last_seen = excluded.last_seen, oldest_open_at = excluded.oldest_open_at, left_at = null`,
		id, l.config.Region, l.config.Host, l.config.Version, instant(oldestOpen))
	return wrap("heart-beat", err)
}

// Leave removes this process's row at an orderly stop, when nothing is open any more.
// If something is, the row stays and looks dead at once, so that other instances
// recover it without waiting.
func (l *Ledger) Leave(ctx context.Context) error {
	id := l.instance.Swap(0)
	if id == 0 {
		return nil
	}
	_, err := l.hot.Exec(ctx, `
		with gone as (
		  delete from dispatcher.instances i where id = $1 and not `+hasOpen+` returning id
		)
		update dispatcher.instances set left_at = clock_timestamp()
		where id = $1 and id not in (select id from gone)`, id)
	return wrap("leave", err)
}

package ledger

import (
	"context"
	"time"
)

// unbrokenGap is how far apart two heart-beats may be to count as unbroken: several times as far as
// they usually are, and less than the time after which an instance is taken for dead.
const unbrokenGap = 2 * time.Second

// Register writes this process's row into dispatcher.instances. Claim needs it: an
// attempt belongs to the instance that is going to submit it, and a dead instance's
// attempts are found by that.
func (l *Ledger) Register(ctx context.Context) error {
	var id int64
	err := l.hot.QueryRow(ctx, `
		insert into dispatcher.instances (region, host, version, counts, beating_since) values ($1, $2, $3, '{}', clock_timestamp()) returning id`,
		l.config.Region, l.config.Host, l.config.Version).Scan(&id)
	if err != nil {
		return wrap("register instance", err)
	}
	l.instance.Store(id)
	return nil
}

// Instance is the id that Register got, 0 before.
func (l *Ledger) Instance() int64 { return l.instance.Load() }

// Beat says that this process is alive. Heart-beats more than unbrokenGap apart count as broken off: whoever had
// to be silent for so long cannot tell whether others are. oldestOpen is the claim time, by the
// database's clock, of its oldest attempt without an outcome; the zero time means that
// nothing is open. A row that was forgotten meanwhile is written again.
func (l *Ledger) Beat(ctx context.Context, oldestOpen time.Time) error {
	id := l.instance.Load()
	if id == 0 {
		return wrap("heart-beat", ErrNotRegistered)
	}
	_, err := l.hot.Exec(ctx, `
		insert into dispatcher.instances as i (id, region, host, version, last_seen, oldest_open_at, counts, beating_since)
		values ($1, $2, $3, $4, clock_timestamp(), $5, '{}', clock_timestamp())
		on conflict (id) do update set last_seen = excluded.last_seen, oldest_open_at = excluded.oldest_open_at, left_at = null,
		  beating_since = case when excluded.last_seen - i.last_seen > $6::interval then excluded.last_seen else i.beating_since end`,
		id, l.config.Region, l.config.Host, l.config.Version, instant(oldestOpen), unbrokenGap)
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
	if err := l.leaveIdentity(ctx, id); err != nil {
		return wrap("leave", err)
	}
	_, err := l.hot.Exec(ctx, `
		with gone as (
		  delete from dispatcher.instances i where id = $1 and not `+hasOpen+` returning id
		)
		update dispatcher.instances set left_at = clock_timestamp()
		where id = $1 and id not in (select id from gone)`, id)
	return wrap("leave", err)
}

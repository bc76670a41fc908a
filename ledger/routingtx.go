package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// routingLock makes appliers wait for each other; routingChannel is what Watch listens to.
const (
	routingLock    int64 = 0x6c65646765720003
	routingChannel       = "dispatcher_routing"
)

const versionColumns = `version, author, reason, created_at, document, coalesce(effects::text, ''), coalesce(base, version)`

func scanVersion(r pgx.CollectableRow) (RoutingVersion, error) {
	var v RoutingVersion
	var effects string
	err := r.Scan(&v.Version, &v.Author, &v.Reason, &v.CreatedAt, &v.Document, &effects, &v.Base)
	v.CreatedAt, v.Effects = v.CreatedAt.UTC(), document(effects)
	return v, err
}

// CurrentRouting is the version that claims use now, or ErrNoRouting.
func (l *Ledger) CurrentRouting(ctx context.Context) (RoutingVersion, error) {
	return l.oneVersion(ctx, `select `+versionColumns+` from dispatcher.routing_versions order by version desc limit 1`)
}

// Routing is one version, or ErrNoRouting.
func (l *Ledger) Routing(ctx context.Context, version int64) (RoutingVersion, error) {
	return l.oneVersion(ctx, `select `+versionColumns+` from dispatcher.routing_versions where version = $1`, version)
}

func (l *Ledger) oneVersion(ctx context.Context, sql string, args ...any) (RoutingVersion, error) {
	r, err := l.reports.Query(ctx, sql, args...)
	if err != nil {
		return RoutingVersion{}, wrap("read routing", err)
	}
	v, err := pgx.CollectExactlyOneRow(r, scanVersion)
	if errors.Is(err, pgx.ErrNoRows) {
		return RoutingVersion{}, ErrNoRouting
	}
	return v, wrap("read routing", err)
}

// RoutingVersions lists all versions, newest first.
func (l *Ledger) RoutingVersions(ctx context.Context) ([]RoutingVersion, error) {
	v, err := rows(ctx, l, scanVersion, `select `+versionColumns+` from dispatcher.routing_versions order by version desc`)
	return v, wrap("list routing versions", err)
}

// ApplyRouting makes a document the current routing, its channels and limits the ones
// that claims lock, and its routes those that have a cursor, in one transaction, and
// returns its version. Every claim that locks a channel after the commit sees the new
// version. It may return a VersionConflictError, or ErrRampMoved when n.Ramp is set.
//
// A raised limit acts at once. A lowered one acts at once too, but its running window
// keeps what was granted already. A removed limit goes to the history; if it comes back
// within its window it continues where it stood. A removed channel keeps its row until
// nothing is under way on it. The cursor of a route that stays keeps its place.
func (l *Ledger) ApplyRouting(ctx context.Context, n NewRouting) (version int64, err error) {
	if err := n.validate(); err != nil {
		return 0, fmt.Errorf("apply routing: %w", err)
	}
	err = pgx.BeginFunc(ctx, l.reports, func(tx pgx.Tx) error {
		at, err := lockRouting(ctx, tx)
		if err != nil {
			return err
		}
		if n.Expect != nil && (*n.Expect < at.base || *n.Expect > at.version) {
			return &VersionConflictError{Expected: *n.Expect, Current: at.version}
		}
		version = at.version + 1
		if n.Ramp != nil {
			if err := advance(ctx, tx, n.Ramp, version); err != nil {
				return err
			}
		}
		return applyAll(ctx, tx, version, &n)
	})
	if err != nil {
		return 0, wrap("apply routing", err)
	}
	return version, nil
}

// standing is where the routing stands: the current version, and the one that brought its
// document. Both are 0 when there is none.
type standing struct{ version, base int64 }

// lockRouting takes the appliers' lock, so that nothing changes until the transaction ends.
func lockRouting(ctx context.Context, tx pgx.Tx) (standing, error) {
	var at standing
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, routingLock); err != nil {
		return at, err
	}
	err := tx.QueryRow(ctx, `
		select version, coalesce(base, version) from dispatcher.routing_versions order by version desc limit 1`).
		Scan(&at.version, &at.base)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, nil
	}
	return at, err
}

// applyAll writes channels first, in the lock order of claims, then their limits, then the cursors.
func applyAll(ctx context.Context, tx pgx.Tx, version int64, n *NewRouting) error {
	channels, limits := specArrays(n.Channels)
	routes := append([]string{}, n.Routes...) // never null
	batch := &pgx.Batch{}
	batch.Queue(`select from dispatcher.channels order by channel for update`)
	batch.Queue(`insert into dispatcher.routing_versions (version, author, reason, document, base) values ($1, $2, $3, $4, $1)`,
		version, n.Author, n.Reason, n.Document)
	batch.Queue(upsertChannels, channels...)
	batch.Queue(`update dispatcher.channels set removed_at = now() where removed_at is null and channel <> all($1)`, channels[0])
	batch.Queue(retireLimits, limits[:3]...)
	batch.Queue(upsertLimits, limits...)
	batch.Queue(dropCursors, routes)
	batch.Queue(addCursors, routes)
	batch.Queue(supersedeRamps, routes, n.Author, version)
	batch.Queue(wakeWaiting)
	batch.Queue(notify, routingChannel, version)
	return tx.SendBatch(ctx, batch).Close()
}

// notify wakes all who call WatchRouting once the transaction has committed.
const notify = `select pg_notify($1, $2::bigint::text)`

// dropCursors locks in the order of claims before it deletes.
const dropCursors = `
	with gone as materialized (
	  select route from dispatcher.cursors where route <> all($1) order by route for update
	)
	delete from dispatcher.cursors where route in (select route from gone)`

const addCursors = `
	insert into dispatcher.cursors (route)
	select route from unnest($1::text[]) as n(route) order by route collate "C"
	on conflict (route) do nothing`

// wakeWaiting lets the messages that wait look again: what they wait for may have come
// with the new document, such as a higher limit, long before the window they wait for.
const wakeWaiting = `
	update dispatcher.messages set next_at = now()
	where seq in (select seq from dispatcher.messages where next_at > now() and state = 'waiting' for update skip locked)`

const upsertChannels = `
	insert into dispatcher.channels as c (channel, position, configured_max, active_max)
	select n.channel, n.position, n.max, n.max
	from unnest($1::text[], $2::int[], $3::bigint[]) as n(channel, position, max) order by n.channel collate "C"
	on conflict (channel) do update set position = excluded.position, configured_max = excluded.configured_max,
	  active_max = case when excluded.configured_max = 0 then 0 else greatest(excluded.configured_max, c.active) end,
	  removed_at = null`

// retireLimits moves limits that the document no longer has to the history.
const retireLimits = `
	with wanted as (
	  select * from unnest($1::text[], $2::int[], $3::text[]) as n(channel, window_seconds, unit)
	), gone as (
	  delete from dispatcher.limits l
	  where l.scope = 'channel' and not exists (
	    select from wanted n where n.channel = l.channel and n.window_seconds = l.window_seconds and n.unit = l.unit)
	  returning l.*
	)
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start, max, granted, reserved)
	select channel, scope, window_seconds, unit, window_start, max, granted, reserved from gone where granted > 0`

// upsertLimits takes the last window of a limit that comes back out of the history, so
// that nobody gets a window's slots twice by removing a limit and adding it again.
const upsertLimits = `
	with wanted as (
	  select * from unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) as n(channel, window_seconds, unit, max)
	), back as (
	  delete from dispatcher.limit_history h using wanted n
	  where h.channel = n.channel and h.scope = 'channel' and h.window_seconds = n.window_seconds and h.unit = n.unit
	    and h.window_start = (select max(o.window_start) from dispatcher.limit_history o
	      where o.channel = n.channel and o.scope = 'channel' and o.window_seconds = n.window_seconds and o.unit = n.unit)
	    and not exists (select from dispatcher.limits l
	      where l.channel = n.channel and l.scope = 'channel' and l.window_seconds = n.window_seconds and l.unit = n.unit)
	  returning h.*
	)
	insert into dispatcher.limits as l (channel, window_seconds, unit, configured_max, max, window_start, granted)
	select n.channel, n.window_seconds, n.unit, n.max, greatest(n.max, coalesce(b.granted, 0)),
	  coalesce(b.window_start, 'epoch'), coalesce(b.granted, 0)
	from wanted n left join back b using (channel, window_seconds, unit)
	on conflict (channel, scope, window_seconds, unit) do update
	  set configured_max = excluded.configured_max, max = greatest(excluded.configured_max, l.granted)`

// specArrays are the parameters of upsertChannels, and those of upsertLimits, of which
// retireLimits takes the first three.
func specArrays(specs []ChannelSpec) (channels, limits []any) {
	names, positions, active := []string{}, []int32{}, []int64{}
	channel, seconds, unit, most := []string{}, []int32{}, []string{}, []int64{}
	for i := range specs {
		c := &specs[i]
		names, positions, active = append(names, c.Name), append(positions, int32(i)), append(active, c.ActiveMax)
		for _, limit := range c.Limits {
			channel, seconds = append(channel, c.Name), append(seconds, int32(limit.Window.Seconds()))
			unit, most = append(unit, limit.Unit.String()), append(most, limit.Max)
		}
	}
	return []any{names, positions, active}, []any{channel, seconds, unit, most}
}

// WatchRouting calls changed once when it listens, and then after each routing that
// is applied by whatever process, until ctx ends or the connection breaks. The caller
// calls it again then; nothing is missed, because changed is called at the start.
func (l *Ledger) WatchRouting(ctx context.Context, changed func()) error {
	conn, err := l.connect(ctx)
	if err != nil {
		return wrap("watch routing", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, `listen `+routingChannel); err != nil {
		return wrap("watch routing", err)
	}
	for {
		changed()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return wrap("watch routing", err)
		}
	}
}

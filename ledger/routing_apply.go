package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// routingLock is the advisory lock of appliers; routingChannel is the channel that Watch listens
// on.
const (
	routingLock    int64 = 0x6c65646765720003
	routingChannel       = "dispatcher_routing"
)

// Apply makes a document the current routing in one transaction, and returns its version. Its
// channels and limits become those that claims lock, its routes those that have a cursor. Every
// claim that locks a channel after the commit sees the new version. It may return a
// VersionConflictError, or ErrRampMoved when n.Ramp is set.
//
// CreatedAt of the version is read while all channels are locked. So claims under earlier versions
// were made before it, and claims under this version come after it.
//
// A raised limit acts at once. A lowered one acts at once too, but its running window keeps what
// was granted already. Windows that are over keep the maximum that held in them. A limit that is
// added or comes back begins with what attempts have taken in its running window; so does a limit
// of a day that begins at another time in the document's zone. These attempts are counted before
// claims are held up. A removed channel keeps its row until it has no attempt in flight. The cursor
// of a route that stays keeps its position, even when the members change.
//
// Apply then wakes waiting messages, except after the step of a ramp, which frees nothing that they
// could wait for. It does so after the commit, in small batches, so that no claim is held up, and
// before it returns. If it fails to wake them, the version is still in force, Apply returns no
// error, and Instances.Forget of any instance wakes the rest.
func (s *Routing) Apply(ctx context.Context, n NewRouting) (version int64, err error) {
	if err := n.validate(); err != nil {
		return 0, fmt.Errorf("apply routing: %w", err)
	}
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		version, err = apply(ctx, tx, &n)
		return err
	})
	if err != nil {
		return 0, wrap("apply routing", err)
	}
	if n.wakes() {
		// an error would say that nothing was applied; Instances.Forget wakes the rest
		_ = s.wake(ctx, version)
	}
	return version, nil
}

// wakes reports whether Apply wakes waiting messages.
func (n *NewRouting) wakes() bool { return n.Ramp == nil }

// apply is the transaction of Apply.
func apply(ctx context.Context, tx pgx.Tx, n *NewRouting) (version int64, err error) {
	current, err := lockRouting(ctx, tx)
	if err != nil {
		return 0, err
	}
	if err := current.holds(n.Expect); err != nil {
		return 0, err
	}
	version = current.Version + 1
	if n.Ramp != nil {
		if err := advance(ctx, tx, n.Ramp, n, version); err != nil {
			return 0, err
		}
	}
	if err := endRamps(ctx, tx, n, version); err != nil {
		return 0, err
	}
	var effects []byte
	if n.Effects != nil && current.Version > 0 {
		effects = n.Effects(current) // before a channel is locked: reading a document takes a while
	}
	beginning, err := begin(ctx, tx, n, n.allLimits()) // likewise
	if err != nil {
		return 0, err
	}
	rotations, err := writeDocument(ctx, tx, version, n, effects, beginning)
	if err != nil {
		return 0, err
	}
	return version, writeRotations(ctx, tx, version, n, rotations)
}

// lockRouting takes the appliers' lock, so that the routing does not change until the transaction
// ends. It returns the current version; its Version is 0 when there is none.
func lockRouting(ctx context.Context, tx pgx.Tx) (RoutingVersion, error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, routingLock); err != nil {
		return RoutingVersion{}, err
	}
	current, err := readVersion(ctx, tx, nil, nil)
	if errors.Is(err, ErrNoRouting) {
		return RoutingVersion{}, nil
	}
	return current, err
}

// holds returns a VersionConflictError unless a change of the document that is based on version
// expect may follow the current version. A nil expect stands for any version.
func (v *RoutingVersion) holds(expect *int64) error {
	if expect != nil && (*expect < v.Base || *expect > v.Version) {
		return &VersionConflictError{Expected: *expect, Current: v.Version}
	}
	return nil
}

// insertVersion makes CreatedAt the present time, which is after all locks taken before the
// statement, and in any case later than the version before, even when the clock was set back. So
// does writeEffects.
const insertVersion = `
	insert into dispatcher.routing_versions (version, author, reason, document, routes, base,
	  effects, waking, via, created_at)
	values ($1, $2, $3, $4, $5, $1, nullif($6, '')::jsonb, $7, $8,
	  greatest(clock_timestamp(),
	  (select created_at + interval '1 microsecond' from dispatcher.routing_versions
	  order by version desc limit 1)))`

// lockAll locks all channels and limits, in the order of claims, and then reads the clock.
func lockAll(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select from dispatcher.channels order by channel for update`)
	batch.Queue(`select from dispatcher.limits
		order by channel, scope, window_seconds, unit for update`)
	batch.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error {
		return row.Scan(&now)
	})
	err = tx.SendBatch(ctx, batch).Close() // not in the return statement: it sets now
	return now, err
}

// writeDocument writes the channels and then their limits, in the lock order of claims. It returns
// the cursors of the routes that stay, locked, with their rotations.
func writeDocument(
	ctx context.Context, tx pgx.Tx, version int64, n *NewRouting, effects []byte, b *beginning,
) (rotations []rotation, err error) {
	now, err := lockAll(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := b.findLate(ctx, tx); err != nil {
		return nil, err
	}
	if err := b.finish(ctx, tx, now); err != nil {
		return nil, err
	}
	channels, specs, windows := channelSpecs(n.Channels), limitSpecs(b.limits), running(now, n.Zone)
	batch := &pgx.Batch{}
	batch.Queue(insertVersion, version, n.Author, n.Reason, n.Document, append([]RouteSpec{}, n.Routes...),
		string(effects), n.wakes(), n.Via)
	batch.Queue(upsertChannels, channels...)
	batch.Queue(`update dispatcher.channels set removed_at = now() where removed_at is null
		and channel <> all($1)`, channels[0])
	if b.recuts() { // else claims would wait just for its planning
		batch.Queue(recutWindows, b.recut()...)
	}
	batch.Queue(closeWindows, windows...)
	batch.Queue(retireLimits, specs[:5]...)
	if len(b.limits) > 0 { // likewise
		batch.Queue(upsertLimits, slices.Concat(windows, specs, b.arguments())...)
	}
	batch.Queue(dropCursors, n.routeNames())
	batch.Queue(lockRotations).Query(func(rows pgx.Rows) error {
		rotations, err = pgx.CollectRows(rows, scanRotation)
		return err
	})
	err = tx.SendBatch(ctx, batch).Close() // not in the return statement: it sets rotations
	return rotations, err
}

// routeNames never returns nil: a null array would match no route in SQL.
func (n *NewRouting) routeNames() []string {
	names := make([]string, len(n.Routes))
	for i := range n.Routes {
		names[i] = n.Routes[i].Name
	}
	return names
}

// notify wakes all callers of Watch when the transaction commits.
const notify = `select pg_notify($1, $2::bigint::text)`

const upsertChannels = `
	insert into dispatcher.channels as c (channel, position, configured_max, active_max)
	select n.channel, n.position, n.max, n.max
	from unnest($1::text[], $2::int[], $3::bigint[]) as n(channel, position, max)
	  order by n.channel collate "C"
	on conflict (channel) do update set position = excluded.position,
	  configured_max = excluded.configured_max,
	  active_max = case when excluded.configured_max = 0 then 0
	    else greatest(excluded.configured_max, c.active) end,
	  removed_at = null`

// ApplyEffects applies the current document with other effects as a new version, and returns it. It
// returns ErrNoRouting when there is no document. It returns a VersionConflictError when n.Expect
// is no longer the current version, because effects are computed for one document and its effects.
//
// It locks no channel, so it holds up no claim. A claim reads the current version once, after its
// locks, and so is planned under either version. For the same reason CreatedAt is less exact than
// with Apply: between it and the commit, some milliseconds later, claims are still made under the
// version before. Waiting messages are not woken: they wait for a slot, a ready channel or a time,
// and effects bring none of these. Effects change only which channel is drawn first, and a message
// is planned under the version that is current when it is due.
func (s *Routing) ApplyEffects(ctx context.Context, n NewEffects) (version int64, err error) {
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		at, err := lockRouting(ctx, tx)
		switch {
		case err != nil:
			return err
		case at.Version == 0:
			return ErrNoRouting
		case at.Version != n.Expect:
			return &VersionConflictError{Expected: n.Expect, Current: at.Version}
		}
		version = at.Version + 1
		return writeEffects(ctx, tx, &at, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("apply effects: %w", clean(err))
	}
	return version, nil
}

// writeEffects copies the document into the new version, so that each version can be read by
// itself, also by an instance of a release that knows no effects.
func writeEffects(ctx context.Context, tx pgx.Tx, at *RoutingVersion, n *NewEffects) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		insert into dispatcher.routing_versions (version, author, reason, document, routes, effects,
		  base, via, created_at)
		select version + 1, $2, $3, document, routes, nullif($4, '')::jsonb, $5, 'dispatcher',
		  greatest(clock_timestamp(),
		  (select created_at + interval '1 microsecond' from dispatcher.routing_versions
		  order by version desc limit 1))
		from dispatcher.routing_versions where version = $1`,
		at.Version, n.Author, n.Reason, string(n.Overrides), at.Base)
	batch.Queue(notify, routingChannel, at.Version+1)
	return tx.SendBatch(ctx, batch).Close()
}

package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// An instance claimed its attempts without outcome, by the database's clock, between oldest_open_at
// (or its last heartbeat, when nothing was open then) and maxSilence after the last heartbeat:
// Lock returns an error after that. slack covers claims that were committed but not counted yet
// when the heartbeat was composed; it is several times the timeouts that bound a claim. These
// bounds keep the scan of recovery short: it reads the block ranges of attempts that have rows of
// that time, and those that are not summarised yet.
const (
	maxSilence = 5 * time.Minute
	slack      = time.Minute
)

// claimedBy is the condition that instance i claimed attempt a, which has no outcome.
var claimedBy = fmt.Sprintf(`(a.instance = i.id and a.outcome is null
	and a.claimed_at >= least(i.oldest_open_at, i.last_seen) - interval '%d seconds'
	and a.claimed_at <= i.last_seen + interval '%d seconds')`,
	int(slack.Seconds()), int((maxSilence + slack).Seconds()))

// hasOpen is the condition that instance i has an attempt without outcome.
var hasOpen = `exists (select from dispatcher.attempts a where ` + claimedBy + `)`

// isDead is the condition that instance i has left, or has been silent for $1.
const isDead = `(i.left_at is not null or i.last_seen < clock_timestamp() - $1::interval)`

// heardOthers is the condition that this instance, $2, has sent heartbeats for $1 without a break.
// After an outage of the database, the first instance to come back finds all others silent. After
// $1 every live instance has sent a heartbeat again.
const heardOthers = `exists (
	    select from dispatcher.instances own where own.id = $2
	      and own.last_seen >= clock_timestamp() - $1::interval
	      and own.beating_since <= clock_timestamp() - $1::interval)`

// Abandoned lists up to limit attempts without outcome, oldest first, of instances that have left
// or have sent no heartbeat for deadAfter. They were claimed more than sendTimeout ago, so that
// nobody is still sending them. A silent instance counts as dead only when this one's own
// heartbeats have been unbroken for deadAfter, see Beat: otherwise answers of the other may still
// be settled. The caller settles the attempts as Unknown. When two instances do that at once, the
// second settlement has no effect. The slots may have been given back before, see ReleaseSlots.
func (s *Settlements) Abandoned(
	ctx context.Context, deadAfter, sendTimeout time.Duration, limit int,
) ([]Open, error) {
	if lost, err := s.anyLost(ctx, deadAfter); err != nil || !lost {
		return nil, wrap("look for abandoned attempts", err)
	}
	r, err := s.hot.Query(ctx, selectAbandoned, deadAfter, s.instance.Load(), sendTimeout, limit)
	if err != nil {
		return nil, wrap("look for abandoned attempts", err)
	}
	open, err := pgx.CollectRows(r, scanOpen)
	return open, wrap("look for abandoned attempts", err)
}

// selectAbandoned finds the attempts of each instance by the period in which it claimed them.
var selectAbandoned = `
	select ` + messageColumns + `, p.envelope,
	  a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
	    coalesce(a.ranking::text, ''), a.claimed_at
	from dispatcher.instances i
	cross join lateral (
	  select a.* from dispatcher.attempts a
	  where ` + claimedBy + ` and a.claimed_at < clock_timestamp() - $3::interval
	  order by a.claimed_at, a.message_seq limit $4) a
	cross join lateral (
	  select m.* from dispatcher.messages m where m.seq = a.message_seq limit 1) m
	left join dispatcher.payloads p on p.seq = m.seq
	where ` + isDead + ` and (i.left_at is not null or ` + heardOthers + `)
	order by a.claimed_at, a.message_seq limit $4`

// anyLost reports whether an instance is dead. Only then are the attempts of all days read.
func (s *db) anyLost(ctx context.Context, deadAfter time.Duration) (lost bool, err error) {
	err = s.hot.QueryRow(ctx, `select exists (select from dispatcher.instances i where `+
		isDead+`)`, deadAfter).Scan(&lost)
	return lost, err
}

func scanOpen(r pgx.CollectableRow) (Open, error) {
	var o Open
	var m messageRow
	var ranking string
	a := &o.Attempt
	err := r.Scan(append(m.targets(), &m.m.Envelope,
		&a.Number, &a.Channel, &a.Reason, &a.Segments, &a.PriceMicros, &a.Currency, &ranking,
		&o.ClaimedAt)...)
	o.Message = m.message()
	o.ClaimedAt = o.ClaimedAt.UTC()
	a.Ranking = document(ranking)
	return o, err
}

// Forget deletes the rows of dead instances that have no attempt without outcome, and the channels
// that were removed from the routing and have no attempt in flight. It also wakes the messages that
// an applier of a routing has not woken, see Routing.Apply.
func (s *Instances) Forget(ctx context.Context, deadAfter time.Duration) error {
	lost, err := s.anyLost(ctx, deadAfter)
	if err != nil {
		return wrap("forget instances", err)
	}
	batch := &pgx.Batch{}
	if lost {
		batch.Queue(`delete from dispatcher.instances i where `+isDead+` and not `+hasOpen,
			deadAfter)
	}
	batch.Queue(`
		with idle as (
		  select channel from dispatcher.channels c join dispatcher.freed_slots f using (channel)
		  where c.removed_at is not null and c.active + c.freed = f.slots
		  order by channel for update of c
		)
		delete from dispatcher.channels where channel in (select channel from idle)`)
	if err := s.hot.SendBatch(ctx, batch).Close(); err != nil {
		return wrap("forget instances", err)
	}
	return wrap("wake waiting messages", s.routing.wakeForOthers(ctx))
}

// releaseBatch is how many slots one transaction gives back. It is small, so that nobody waits long
// for a channel.
const releaseBatch = 500

// giveBack takes the slots from the attempts in "ending", which must be locked.
const giveBack = `
	, freed as (
	  update dispatcher.attempts a set freed = true from ending e
	  where a.message_seq = e.message_seq and a.attempt = e.attempt and not a.freed
	  returning a.channel
	), counted as (
	  insert into dispatcher.freed_slots as f (channel, slots)
	  select channel, count(*) from freed join dispatcher.channels using (channel)
	  group by channel order by channel
	  on conflict (channel) do update set slots = f.slots + excluded.slots
	)`

// endHolds gives back slots that were held beyond their time. Each attempt is looked up by its key:
// a join could read the attempts of all days.
const endHolds = `
	with over as materialized (
	  select message_seq, attempt from dispatcher.held where held_until <= now()
	  order by held_until limit $1
	), ending as materialized (
	  select a.message_seq, a.attempt from over o, lateral (
	    select n.message_seq, n.attempt from dispatcher.attempts n
	    where n.message_seq = o.message_seq and n.attempt = o.attempt and n.held_until <= now()
	      and not n.freed for update skip locked) a
	)` + giveBack + `
	select count(*) from freed`

// endDead gives back the slots of attempts without outcome of dead instances. It finds them by the
// period in which the instance claimed them.
var endDead = `
	with open as materialized (
	  select a.message_seq, a.attempt
	  from dispatcher.instances i cross join lateral (
	    select a.message_seq, a.attempt from dispatcher.attempts a
	    where ` + claimedBy + ` and not a.freed order by a.claimed_at limit $3) a
	  where ` + isDead + ` and ` + heardOthers + `
	  order by a.message_seq, a.attempt limit $3
	), ending as materialized (
	  select a.message_seq, a.attempt from open o cross join lateral (
	    select n.message_seq, n.attempt from dispatcher.attempts n
	    where n.message_seq = o.message_seq and n.attempt = o.attempt and n.outcome is null
	      and not n.freed for update skip locked) a
	)` + giveBack + `
	select count(*) from freed`

// ReleaseSlots gives back active slots that no settlement or receipt will give back: those held
// beyond their time, and those of attempts without outcome whose instance has been silent for
// deadAfter. The latter are given back only if this instance's own heartbeats have been unbroken
// for deadAfter, see Beat. Such an attempt stays open until it is settled, see Abandoned, which
// does not free a second slot. ReleaseSlots works in small batches, skips locked attempts, and
// returns how many slots it gave back, also with an error.
func (s *Settlements) ReleaseSlots(
	ctx context.Context, deadAfter time.Duration,
) (freed int64, err error) {
	var over, gone bool
	err = s.hot.QueryRow(ctx, `
		select exists (select from dispatcher.held where held_until <= now()),
		  exists (select from dispatcher.instances i where `+isDead+`)`, deadAfter).
		Scan(&over, &gone)
	if err != nil {
		return 0, wrap("release slots", err)
	}
	var late, lost int64
	if over {
		if late, err = s.releaseAll(ctx, endHolds, releaseBatch); err != nil {
			return late, wrap("release slots held too long", err)
		}
	}
	if !gone {
		return late, nil
	}
	lost, err = s.releaseAll(ctx, endDead, deadAfter, s.instance.Load(), releaseBatch)
	return late + lost, wrap("release slots of dead instances", err)
}

// releaseAll repeats a statement until its batch is not full.
func (s *Settlements) releaseAll(
	ctx context.Context, sql string, args ...any,
) (freed int64, err error) {
	for n := int64(releaseBatch); n == releaseBatch; freed += n {
		if err := s.hot.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			return freed, err
		}
	}
	return freed, nil
}

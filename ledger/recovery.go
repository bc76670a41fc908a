package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// An instance claimed its attempts without outcome, by the database's clock, between oldest_open_at
// (or its registration, before the first heartbeat) and maxSilence after the last heartbeat: Lock
// returns an error after that. Those that are in open_claims get their rows first, see storeLost.
// slack covers claims that were committed but that the heartbeat, when it was composed, did not
// count yet; it is several times the timeouts that bound a claim. oldest_open_at is after the last
// heartbeat when the clock was set back in between. These bounds keep the scan of recovery short:
// it reads the block ranges of attempts that have rows of that time, and those that are not
// summarised yet.
const (
	maxSilence = 5 * time.Minute
	slack      = time.Minute

	// openOf is the condition that attempt a has no outcome and is one of instance i.
	openOf = `a.instance = i.id and a.outcome is null
	    and a.claimed_at >= least(i.oldest_open_at, i.last_seen) - @slack::interval
	    and a.claimed_at <= greatest(i.oldest_open_at, i.last_seen) + @max_silence::interval
	      + @slack::interval`
)

// isDead is the condition that instance i is dead: it has left, or has been silent for @dead_after.
// A silent one counts only while this instance, @self, has sent heartbeats for @dead_after without
// a break: after an outage of the database, the first instance to come back finds all others
// silent, and after @dead_after every live one has sent a heartbeat again.
const isDead = `(i.left_at is not null
	  or i.last_seen < clock_timestamp() - @dead_after::interval and exists (
	    select from dispatcher.instances own where own.id = @self
	      and own.last_seen >= clock_timestamp() - @dead_after::interval
	      and own.beating_since <= clock_timestamp() - @dead_after::interval))`

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
	if err := s.storeLost(ctx, deadAfter); err != nil {
		return nil, wrap("store abandoned attempts", err)
	}
	r, err := s.hot.Query(ctx, selectAbandoned, deadAfter, s.instance.Load(), slack, maxSilence,
		limit, sendTimeout)
	if err != nil {
		return nil, wrap("look for abandoned attempts", err)
	}
	open, err := pgx.CollectRows(r, scanOpen)
	return open, wrap("look for abandoned attempts", err)
}

// storeLost gives the attempts that dead instances left in open_claims their rows.
func (s *Settlements) storeLost(ctx context.Context, deadAfter time.Duration) error {
	_, err := s.hot.Exec(ctx, storeLost, deadAfter, s.instance.Load())
	return err
}

var storeLost = named(recoveryNames[:2], `
	select from dispatcher.store_open_claims(array(
	  select c.first_seq from dispatcher.open_claims c
	  join dispatcher.instances i on i.id = c.instance where `+isDead+`))`)

// recoveryNames are the parameters of selectAbandoned; releaseSlots has all but the last.
var recoveryNames = []string{
	"dead_after", "self", "slack", "max_silence", "limit", "send_timeout",
}

// selectAbandoned finds the attempts of each instance by the period in which it claimed them.
var selectAbandoned = named(recoveryNames, `
	select `+messageColumns+`, p.envelope,
	  a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
	    coalesce(a.ranking::text, ''), a.claimed_at, coalesce(i.key_id, '')
	from dispatcher.instances i
	cross join lateral (
	  select a.* from dispatcher.attempts a
	  where `+openOf+`
	    and a.claimed_at < clock_timestamp() - @send_timeout::interval
	  order by a.claimed_at, a.message_seq limit @limit) a
	cross join lateral (
	  select m.* from dispatcher.messages m where m.seq = a.message_seq limit 1) m
	left join dispatcher.payloads p on p.seq = m.seq
	where `+isDead+`
	order by a.claimed_at, a.message_seq limit @limit`)

// anyLost reports whether an instance is dead. Only then are the attempts of all days read.
func (s *db) anyLost(ctx context.Context, deadAfter time.Duration) (lost bool, err error) {
	err = s.hot.QueryRow(ctx, `
		select exists (select from dispatcher.instances
		  where left_at is not null or last_seen < clock_timestamp() - $1::interval)`, deadAfter).
		Scan(&lost)
	return lost, err
}

func scanOpen(r pgx.CollectableRow) (Open, error) {
	var o Open
	var m messageRow
	var ranking string
	a := &o.Attempt
	err := r.Scan(append(m.targets(), &m.m.Envelope,
		&a.Number, &a.Channel, &a.Reason, &a.Segments, &a.PriceMicros, &a.Currency, &ranking,
		&o.ClaimedAt, &o.KeyID)...)
	o.Message = m.message()
	o.ClaimedAt = o.ClaimedAt.UTC()
	a.Ranking = document(ranking)
	return o, err
}

// Forget deletes the rows of instances that have left or have been silent for deadAfter; the
// trigger instances_kept keeps those with an attempt without outcome. It also deletes the channels
// that were removed from the routing and have no attempt in flight. And it wakes the messages that
// an applier of a routing has not woken, see Routing.Apply.
func (s *Instances) Forget(ctx context.Context, deadAfter time.Duration) error {
	lost, err := s.anyLost(ctx, deadAfter)
	if err != nil {
		return wrap("forget instances", err)
	}
	batch := &pgx.Batch{}
	if lost {
		batch.Queue(`
			delete from dispatcher.instances
			where left_at is not null or last_seen < clock_timestamp() - $1::interval`, deadAfter)
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

// releaseBatch is how many slots of either kind one transaction gives back. It is small, so that
// nobody waits long for a channel.
const releaseBatch = 500

// releaseSlots gives back slots that were held beyond their time, and those of attempts without
// outcome of dead instances. It finds the latter by the period in which the instance claimed them.
// Each attempt is then looked up by its key: a join could read the attempts of all days.
var releaseSlots = named(recoveryNames[:5], `
	with found as materialized (
	  (select message_seq, attempt from dispatcher.held where held_until <= now()
	    order by held_until limit @limit)
	  union all
	  (select a.message_seq, a.attempt
	  from dispatcher.instances i cross join lateral (
	    select a.message_seq, a.attempt from dispatcher.attempts a
	    where `+openOf+` and not a.freed
	    order by a.claimed_at limit @limit) a
	  where `+isDead+`
	  limit @limit)
	), ending as materialized (
	  select a.message_seq, a.attempt from found o cross join lateral (
	    select n.message_seq, n.attempt from dispatcher.attempts n
	    where n.message_seq = o.message_seq and n.attempt = o.attempt and not n.freed
	      and (n.outcome is null or n.held_until <= now()) for update skip locked) a
	), freed as (
	  update dispatcher.attempts a set freed = true from ending e
	  where a.message_seq = e.message_seq and a.attempt = e.attempt and not a.freed
	  returning a.channel
	), counted as (
	  insert into dispatcher.freed_slots as f (channel, slots)
	  select channel, count(*) from freed join dispatcher.channels using (channel)
	  group by channel order by channel
	  on conflict (channel) do update set slots = f.slots + excluded.slots
	)
	select count(*) from freed`)

// ReleaseSlots gives back active slots that no settlement or receipt will give back: those held
// beyond their time, and those of attempts without outcome whose instance is dead, as in Abandoned.
// Such an attempt stays open until it is settled, see Abandoned, which does not free a second slot.
// It also gives attempts of this process that nobody has answered for storeAfter a row.
// ReleaseSlots works in small batches, skips locked attempts, and returns how many slots it gave
// back, also with an error.
func (s *Settlements) ReleaseSlots(
	ctx context.Context, deadAfter time.Duration,
) (freed int64, err error) {
	var due, slow bool
	err = s.hot.QueryRow(ctx, `
		select exists (select from dispatcher.held where held_until <= now())
		  or exists (select from dispatcher.instances
		    where left_at is not null or last_seen < clock_timestamp() - $1::interval),
		  exists (select from dispatcher.open_claims
		    where instance = $2 and claimed_at <= clock_timestamp() - $3::interval)`,
		deadAfter, s.instance.Load(), storeAfter).
		Scan(&due, &slow)
	if err == nil && due {
		freed, err = s.releaseDue(ctx, deadAfter)
	}
	if slow { // also if no slot could be released
		err = errors.Join(err, s.storeOwn(ctx, s.instance.Load(), storeAfter))
	}
	return freed, wrap("release slots", err)
}

func (s *Settlements) releaseDue(
	ctx context.Context, deadAfter time.Duration,
) (freed int64, err error) {
	if err := s.storeLost(ctx, deadAfter); err != nil {
		return 0, err
	}
	for n := int64(releaseBatch); n >= releaseBatch; freed += n {
		n = 0
		err := s.hot.QueryRow(ctx, releaseSlots, deadAfter, s.instance.Load(), slack, maxSilence,
			releaseBatch).Scan(&n)
		if err != nil {
			return freed, err
		}
	}
	return freed, nil
}

package ledger

import (
	"context"
	"fmt"
	"time"
)

// releaseBatch is how many slots one transaction gives back: few enough that nobody waits long
// for a channel.
const releaseBatch = 500

// giveBack takes the slots away from the attempts in "ending", which has locked them, and counts
// them. The channels are locked by name before they are written, as in a claim; active_max
// sinks with active after it was lowered below it.
const giveBack = `
	, freed as (
	  update dispatcher.attempts a set freed = true from ending e
	  where a.message_seq = e.message_seq and a.attempt = e.attempt and not a.freed
	  returning a.channel
	), leaving as (
	  select channel, count(*) as n from freed group by channel
	), locked as materialized (
	  select c.channel from dispatcher.channels c where c.channel in (select channel from leaving)
	  order by c.channel for update
	), lowered as (
	  update dispatcher.channels c set active = c.active - l.n,
	    active_max = case when c.configured_max = 0 then 0
	      else greatest(c.configured_max, c.active - l.n) end
	  from leaving l where c.channel = l.channel and l.channel in (select channel from locked)
	)`

// endHolds finds slots whose time is over.
const endHolds = `
	with ending as materialized (
	  select a.message_seq, a.attempt from dispatcher.attempts a
	  where a.held_until <= now() and not a.freed
	  order by a.held_until limit $1 for update skip locked
	)` + giveBack + `
	select count(*) from freed`

// endDead finds the open attempts of instances that are gone. An instance of an earlier release,
// which has no counts, would give the slot of such an attempt back once more when it settles it. So
// while one is there, the slots stay with their attempts until those are settled, as before.
var endDead = `
	with ending as materialized (
	  select a.message_seq, a.attempt
	  from dispatcher.instances i join dispatcher.attempts a on ` + claimedBy + `
	  where ` + isDead + ` and i.counts is not null and not a.freed and not exists (
	    select from dispatcher.instances o
	    where o.counts is null and o.left_at is null
	      and o.last_seen >= clock_timestamp() - $1::interval)
	    and ` + fmt.Sprintf(heardOthers, 3) + `
	  order by a.message_seq, a.attempt limit $2 for update of a skip locked
	)` + giveBack + `
	select count(*) from freed`

// ReleaseSlots gives active slots back that nobody is going to: those that are held beyond their
// time, and those of attempts without outcome whose instance has been silent for deadAfter. The
// latter only if this instance's own heart-beats have been unbroken for deadAfter, see Beat. Such
// an attempt stays open until it is settled, see Abandoned, which then frees no second slot. It
// works in small batches, passes over what somebody else is deciding about, and returns how many
// slots it gave back, also with an error.
func (s *Settlements) ReleaseSlots(ctx context.Context, deadAfter time.Duration) (freed int64, err error) {
	late, err := s.releaseAll(ctx, endHolds, releaseBatch)
	if err != nil {
		return late, wrap("release slots held too long", err)
	}
	lost, err := s.releaseAll(ctx, endDead, deadAfter, releaseBatch, s.instance.Load())
	return late + lost, wrap("release slots of dead instances", err)
}

// releaseAll repeats a statement until it finds no full batch.
func (s *Settlements) releaseAll(ctx context.Context, sql string, args ...any) (freed int64, err error) {
	for n := int64(releaseBatch); n == releaseBatch; freed += n {
		if err := s.hot.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			return freed, err
		}
	}
	return freed, nil
}

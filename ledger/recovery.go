package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// An attempt of an instance without outcome was claimed, by the database's clock,
// between oldest_open_at (or the last heart-beat, when nothing was open then) and
// maxSilence after the last heart-beat: Lock refuses beyond that. slack covers claims
// that were committed but not yet counted when the heart-beat was composed; it is several times
// the timeouts that bound a claim. These bounds make recovery a short scan of an index.
const (
	maxSilence = 5 * time.Minute
	slack      = time.Minute
)

// claimedBy is the condition that attempt a was claimed by instance i and has no outcome.
var claimedBy = fmt.Sprintf(`(a.instance = i.id and a.outcome is null
	and a.claimed_at >= least(i.oldest_open_at, i.last_seen) - interval '%d seconds'
	and a.claimed_at <= i.last_seen + interval '%d seconds')`,
	int(slack.Seconds()), int((maxSilence + slack).Seconds()))

// hasOpen is the condition that instance i has an attempt without outcome.
var hasOpen = `exists (select from dispatcher.attempts a where ` + claimedBy + `)`

// isDead is the condition that instance i is gone: it left, or it has been silent for $1.
const isDead = `(i.left_at is not null or i.last_seen < clock_timestamp() - $1::interval)`

// heardOthers is the condition that this instance, the parameter of its number, has itself been
// heard of for $1 without a break. After the database was away for all, the first to come back
// finds all others silent; by then, whoever lives has been heard of, too.
const heardOthers = `exists (
	    select from dispatcher.instances own where own.id = $%d
	      and own.last_seen >= clock_timestamp() - $1::interval and own.beating_since <= clock_timestamp() - $1::interval)`

// Abandoned lists up to limit attempts without outcome, oldest first, that belong to instances
// without a heart-beat for deadAfter and that were claimed more than sendTimeout ago, so that
// nobody can still be sending them. Instances that did not leave count as lost only when this one's
// own heart-beats have been unbroken for deadAfter, see Beat: the answers of the others may be on
// their way. The caller settles the attempts as Unknown; when two instances do that at once, the
// second settlement has no effect. Their slots may be free by then, see ReleaseSlots.
func (s *Settlements) Abandoned(ctx context.Context, deadAfter, sendTimeout time.Duration, limit int) ([]Open, error) {
	r, err := s.hot.Query(ctx, `
		select `+messageColumns+`,
		  a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
		    coalesce(a.ranking::text, ''), a.claimed_at
		from dispatcher.instances i
		join dispatcher.attempts a on `+claimedBy+`
		join dispatcher.messages m on m.seq = a.message_seq
		where `+isDead+` and a.claimed_at < clock_timestamp() - $2::interval
		  and (i.left_at is not null or `+fmt.Sprintf(heardOthers, 4)+`)
		order by a.claimed_at limit $3`,
		deadAfter, sendTimeout, limit, s.instance.Load())
	if err != nil {
		return nil, wrap("look for abandoned attempts", err)
	}
	open, err := pgx.CollectRows(r, scanOpen)
	return open, wrap("look for abandoned attempts", err)
}

func scanOpen(r pgx.CollectableRow) (Open, error) {
	var o Open
	var m messageRow
	var ranking string
	a := &o.Attempt
	err := r.Scan(append(m.targets(),
		&a.Number, &a.Channel, &a.Reason, &a.Segments, &a.PriceMicros, &a.Currency, &ranking, &o.ClaimedAt)...)
	o.Message = m.message()
	o.ClaimedAt = o.ClaimedAt.UTC()
	a.Ranking = document(ranking)
	return o, err
}

// Forget tidies up: it drops the rows of instances that are gone and have nothing open, and
// the channels that were removed from the routing and have nothing under way any more, and it
// wakes the messages that the applier of a routing did not get to wake, see Routing.Apply.
func (s *Instances) Forget(ctx context.Context, deadAfter time.Duration) error {
	batch := &pgx.Batch{}
	batch.Queue(`delete from dispatcher.instances i where `+isDead+` and not `+hasOpen, deadAfter)
	batch.Queue(`
		with idle as (
		  select channel from dispatcher.channels where removed_at is not null and active = 0
		  order by channel for update
		)
		delete from dispatcher.channels where channel in (select channel from idle)`)
	if err := s.hot.SendBatch(ctx, batch).Close(); err != nil {
		return wrap("forget instances", err)
	}
	return wrap("wake waiting messages", s.routing.wakeForOthers(ctx))
}

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// beginning is what limits begin with that are added by a document: what attempts have
// taken in the running windows. It is counted twice: nearly all of it before the channels are locked, so
// that claims are not held up, and under the locks only what was claimed since "from".
type beginning struct {
	zone  *time.Location
	now   time.Time
	from  time.Time // every attempt that was claimed before had been committed when counting began
	added []addition
}

// addition is a limit that is added.
type addition struct {
	ownLimit
	at      int // its position among the limits of the document
	start   time.Time
	counted int64
}

// startOfCounting reads when the oldest claim or settlement under way began, which has not
// committed what it may have claimed since. Sessions of another role do not show when they
// began; a few seconds are for them. The ledger's timeouts end whatever takes longer than slack.
const startOfCounting = `
	select clock_timestamp(), greatest(clock_timestamp() - $1::interval, least(clock_timestamp() - interval '5 seconds',
	  (select min(xact_start) from pg_stat_activity where datname = current_database() and application_name = $2)))`

// begin counts what limits that are about to be added begin with, up to begin.from. Nobody adds or
// removes limits meanwhile.
//
// What the attempts of a prefix are is not known here, since numbers stand in the envelopes alone. A
// limit of a prefix begins with nothing, as does one of a second, which is over by the time that it
// is in force, and any whose window has no known beginning.
func begin(ctx context.Context, tx pgx.Tx, n *NewRouting, limits []ownLimit) (*beginning, error) {
	b := &beginning{zone: n.Zone}
	r, err := tx.Query(ctx, `select channel, scope, window_seconds, unit, coalesce(currency, '') from dispatcher.limits`)
	if err != nil {
		return nil, err
	}
	type key struct {
		Channel, Scope string
		Seconds        int
		Unit, Currency string
	}
	keys, err := pgx.CollectRows(r, pgx.RowToStructByPos[key])
	if err != nil {
		return nil, err
	}
	there := make(map[key]bool, len(keys))
	for _, k := range keys {
		there[k] = true
	}
	for i, l := range limits {
		unknown := l.Scope.Prefix != "" || l.Window == admission.Second || l.Window == admission.Day && b.zone == nil
		if !unknown && !there[key{l.channel, l.Scope.String(), l.Window.Seconds(), l.Unit.String(), l.Currency}] {
			b.added = append(b.added, addition{ownLimit: l, at: i})
		}
	}
	return b, b.first(ctx, tx)
}

// first counts up to b.from.
func (b *beginning) first(ctx context.Context, tx pgx.Tx) error {
	if len(b.added) == 0 {
		return nil
	}
	if err := tx.QueryRow(ctx, startOfCounting, slack, hotSettings["application_name"]).Scan(&b.now, &b.from); err != nil {
		return err
	}
	for i := range b.added {
		b.added[i].start = b.added[i].Window.Start(b.now, b.zone)
	}
	return b.count(ctx, tx, func(a *addition) (from, to time.Time) { return a.start, b.from })
}

// finish counts the rest, now that all channels are locked and nobody claims. A window that has
// begun meanwhile takes the place of the one that was counted.
func (b *beginning) finish(ctx context.Context, tx pgx.Tx, now time.Time) error {
	for i := range b.added {
		a := &b.added[i]
		if start := a.Window.Start(now, b.zone); start.After(a.start) {
			a.start, a.counted = start, 0
		}
	}
	return b.count(ctx, tx, func(a *addition) (from, to time.Time) {
		if a.start.After(b.from) {
			return a.start, time.Time{}
		}
		return b.from, time.Time{}
	})
}

// arguments are what upsertLimits takes of it, for n limits.
func (b *beginning) arguments(n int) []any {
	starts, counted := make([]pgtype.Timestamptz, n), make([]int64, n)
	for i := range b.added {
		if a := &b.added[i]; a.counted > 0 {
			starts[a.at], counted[a.at] = instant(a.start), a.counted
		}
	}
	return []any{starts, counted}
}

// countTaken sums up what was claimed in a time by channel, tenant and currency. An attempt that was not
// taken has no segments of its own any more, but a limit in segments has counted it.
const countTaken = `
	select a.channel, coalesce(m.tenant, '') as tenant, a.currency, count(*),
	  sum(case when a.outcome in ('rejected', 'refused', 'throttled') then coalesce(m.segments, a.segments) else a.segments end)::bigint,
	  sum(a.price_micros)::bigint
	from (
	  select message_seq, channel, outcome, segments, price_micros, currency from dispatcher.attempts
	  where claimed_at >= $1 and claimed_at < coalesce($2::timestamptz, 'infinity') offset 0
	) a left join lateral (
	  select tenant, segments from dispatcher.messages m where $3 and m.seq = a.message_seq offset 0
	) m on true
	group by 1, 2, 3`

// taken is a row of countTaken.
type taken struct {
	Channel, Tenant, Currency  string
	Messages, Segments, Micros int64
}

// count adds to each limit what was taken in a time of its own. Limits of the same time are counted
// together.
func (b *beginning) count(ctx context.Context, tx pgx.Tx, when func(*addition) (from, to time.Time)) error {
	type period struct{ from, to time.Time }
	groups, perMessage := map[period][]*addition{}, false
	for i := range b.added {
		a := &b.added[i]
		from, to := when(a)
		if to.IsZero() || from.Before(to) {
			groups[period{from, to}] = append(groups[period{from, to}], a)
		}
		perMessage = perMessage || a.Scope.Tenant != "" || a.Unit == admission.Segments
	}
	for p, group := range groups {
		r, err := tx.Query(ctx, countTaken, p.from, instant(p.to), perMessage)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(r, pgx.RowToStructByPos[taken])
		if err != nil {
			return err
		}
		for _, a := range group {
			a.add(all)
		}
	}
	return nil
}

// add counts what the limit covers.
func (a *addition) add(all []taken) {
	for i := range all {
		t := &all[i]
		if a.channel != "" && a.channel != t.Channel || a.Scope.Tenant != "" && a.Scope.Tenant != t.Tenant {
			continue
		}
		switch a.Unit {
		case admission.Messages:
			a.counted += t.Messages
		case admission.Segments:
			a.counted += t.Segments
		case admission.Money:
			if a.Currency == t.Currency {
				a.counted += t.Micros
			}
		}
	}
}

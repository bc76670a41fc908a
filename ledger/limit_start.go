package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// beginning counts what attempts have already taken in the running windows of limits that a
// document adds, and of limits of a day whose day begins at another time in its zone. It counts
// twice: nearly everything before the channels are locked, so that claims are not held up, and
// under the locks only what was claimed since "from".
type beginning struct {
	zone  *time.Location
	now   time.Time
	from  time.Time // attempts claimed before this were committed when counting began
	added []addition
	// limits are those of the document, and those of tenants that come from its limits of each tenant.
	limits []ownLimit
}

// addition is a limit that is added, or one whose window is recut.
type addition struct {
	ownLimit
	at      int  // its position among the limits of the document
	recut   bool // the limit exists, and its window does not begin when the running one does
	late    bool // the limit was found under the locks: nothing is counted yet
	start   time.Time
	counted int64
	// byTenant is what each tenant has taken, for a limit of each tenant.
	byTenant map[string]int64
}

// startOfCounting reads when the oldest running claim or settlement began: what it has claimed
// since may not be committed yet. pg_stat_activity does not show when sessions of another role
// began, so the result is at least five seconds ago. The ledger's timeouts end any transaction that
// runs longer than slack.
const startOfCounting = `
	select clock_timestamp(), greatest(clock_timestamp() - $1::interval,
	  least(clock_timestamp() - interval '5 seconds',
	  (select min(xact_start) from pg_stat_activity where datname = current_database()
	    and application_name = $2)))`

// begin counts, up to beginning.from, what limits that are added or recut begin with. The lock of
// the routing is held, so no other transaction adds or removes limits.
//
// A limit of a second begins with nothing, because its window is over when it comes into force. So
// does one whose window has no known beginning, and a prepaid budget: what was sent before it was
// paid for does not count.
func begin(ctx context.Context, tx pgx.Tx, n *NewRouting, limits []ownLimit) (*beginning, error) {
	b := &beginning{zone: n.Zone}
	there, err := readWindows(ctx, tx)
	if err != nil {
		return nil, err
	}
	b.limits = withTenants(limits, there)
	b.find(there, 0)
	return b, b.first(ctx, tx)
}

// find adds to b.added the limits, from position from on, that do not exist or whose window is
// recut.
func (b *beginning) find(there map[limitKey]limitWindow, from int) {
	for i, l := range b.limits[from:] {
		if l.Window == admission.Second || l.Window == admission.Prepaid ||
			l.Window == admission.Day && b.zone == nil {
			continue
		}
		k := l.place()
		k.currency = l.Currency
		w, found := there[k]
		if !found || w.recut(l.Window, b.zone) {
			b.added = append(b.added, addition{
				ownLimit: l, at: from + i, recut: found, late: from > 0,
			})
		}
	}
}

// findLate is find for the rows of tenants that claims have made since. All channels are locked.
func (b *beginning) findLate(ctx context.Context, tx pgx.Tx) error {
	if eachTenant(b.limits) == nil {
		return nil
	}
	there, err := readWindows(ctx, tx)
	if err != nil {
		return err
	}
	from := len(b.limits)
	b.limits = withTenants(b.limits, there)
	b.find(there, from)
	return nil
}

// limitKey identifies a limit with counters of its own.
type limitKey struct {
	channel, scope string
	seconds        int
	unit, currency string
}

// limitWindow is the window in which a limit counts, and the time at which it was read.
type limitWindow struct{ start, now time.Time }

// readWindows reads the windows of all limits.
func readWindows(ctx context.Context, tx pgx.Tx) (map[limitKey]limitWindow, error) {
	r, err := tx.Query(ctx, `
		select channel, scope, window_seconds, unit, coalesce(currency, ''), window_start,
		  clock_timestamp() from dispatcher.limits`)
	if err != nil {
		return nil, err
	}
	windows := map[limitKey]limitWindow{}
	var k limitKey
	var w limitWindow
	_, err = pgx.ForEachRow(r, []any{
		&k.channel, &k.scope, &k.seconds, &k.unit, &k.currency,
		&w.start, &w.now,
	}, func() error {
		windows[k] = w
		return nil
	})
	return windows, err
}

// recut reports whether the open window of a limit of a day is not the running day of the zone, and
// has to be cut anew: it began in another zone, or is an older day. A window that begins in the
// future stays: the clock has gone back. A window that was a day of this zone and is over is not
// recut; closeWindows closes it, as nothing has been claimed since.
func (w limitWindow) recut(window admission.Window, zone *time.Location) bool {
	if window != admission.Day || w.start.Unix() <= 0 || w.start.After(w.now) {
		return false
	}
	left := w.start.Equal(window.Start(w.start, zone)) && !window.End(w.start, zone).After(w.now)
	return !left && !w.start.Equal(window.Start(w.now, zone))
}

// first counts up to b.from. It keeps the planner from sequential scans for the rest of the
// transaction: without statistics of the day it would choose them for the last few seconds.
func (b *beginning) first(ctx context.Context, tx pgx.Tx) error {
	if len(b.added) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `set local enable_seqscan = off`); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, startOfCounting, slack, hotSettings["application_name"]).
		Scan(&b.now, &b.from); err != nil {
		return err
	}
	for i := range b.added {
		b.added[i].start = b.added[i].Window.Start(b.now, b.zone)
	}
	return b.count(ctx, tx, func(a *addition) (from, to time.Time) { return a.start, b.from })
}

// finish counts the rest, now that all channels are locked and nothing is claimed. When a new
// window has begun meanwhile, the count of the old one is dropped.
func (b *beginning) finish(ctx context.Context, tx pgx.Tx, now time.Time) error {
	for i := range b.added {
		a := &b.added[i]
		if start := a.Window.Start(now, b.zone); start.After(a.start) {
			a.start, a.counted, a.byTenant = start, 0, nil
		}
	}
	err := b.count(ctx, tx, func(a *addition) (from, to time.Time) {
		if a.late || a.start.After(b.from) {
			return a.start, time.Time{}
		}
		return b.from, time.Time{}
	})
	if err != nil {
		return err
	}
	b.addCounted()
	return nil
}

// arguments are the parameters of upsertLimits that come from the counts, for all limits.
func (b *beginning) arguments() []any {
	n := len(b.limits)
	starts, counted := make([]pgtype.Timestamptz, n), make([]int64, n)
	for i := range b.added {
		if a := &b.added[i]; a.counted > 0 {
			starts[a.at], counted[a.at] = instant(a.start), a.counted
		}
	}
	return []any{starts, counted}
}

// recuts reports whether recutWindows has anything to do.
func (b *beginning) recuts() bool {
	return slices.ContainsFunc(b.added, func(a addition) bool { return a.recut })
}

// recut are the parameters of recutWindows.
func (b *beginning) recut() []any {
	channel, scope, unit := []string{}, []string{}, []string{}
	starts, counted := []time.Time{}, []int64{}
	for i := range b.added {
		if a := &b.added[i]; a.recut {
			channel, scope, unit = append(channel, a.channel), append(scope, a.Scope.String()),
				append(unit, a.Unit.String())
			starts, counted = append(starts, a.start), append(counted, a.counted)
		}
	}
	return []any{channel, scope, unit, starts, counted}
}

// countTaken sums up what was claimed in a period, by channel, tenant, currency and matching
// prefixes of $4. An attempt that was not taken has no segments any more, but a limit in segments
// has counted it: so the message's segments are used. Numbers stand only in the envelopes. A number
// that PostgreSQL cannot read counts for every prefix, as it may have one of them. A number is cut
// to each length in $5 and then compared, so that hundreds of prefixes take no longer than one.
const countTaken = `
	select a.channel, coalesce(m.tenant, '') as tenant, a.currency,
	  coalesce(m.prefixes, '{}') as prefixes, count(*),
	  sum(case when a.outcome in ('rejected', 'refused', 'throttled')
	    then coalesce(m.segments, a.segments) else a.segments end)::bigint,
	  sum(a.price_micros)::bigint
	from (
	  select message_seq, channel, outcome, segments, price_micros, currency
	    from dispatcher.all_attempts
	  where claimed_at >= $1 and claimed_at < coalesce($2::timestamptz, 'infinity') offset 0
	) a left join lateral (
	  select tenant, segments, case when cardinality($4::text[]) > 0 then (
	      select case when n is null then $4
	        else array(select left(n, k) from unnest($5::int[]) k where left(n, k) = any($4)) end
	      from (select dispatcher.number_of(p.envelope) as n from dispatcher.payloads p
	        where p.seq = a.message_seq) p) end as prefixes
	  from dispatcher.messages m where $3 and m.seq = a.message_seq offset 0
	) m on true
	group by 1, 2, 3, 4`

// taken is a row of countTaken.
type taken struct {
	Channel, Tenant, Currency  string
	Prefixes                   []string
	Messages, Segments, Micros int64
}

// count adds to each limit what was taken in the period that when returns for it. Limits of the
// same period are counted by one query.
func (b *beginning) count(
	ctx context.Context, tx pgx.Tx, when func(*addition) (from, to time.Time),
) error {
	type period struct{ from, to time.Time }
	groups, perMessage, prefixes, lengths := map[period][]*addition{}, false, []string{}, []int32{}
	for i := range b.added {
		a := &b.added[i]
		from, to := when(a)
		if to.IsZero() || from.Before(to) {
			groups[period{from, to}] = append(groups[period{from, to}], a)
		}
		perMessage = perMessage || a.Scope != admission.Scope{} || a.Unit == admission.Segments
		if p := a.Scope.Prefix; p != "" {
			prefixes, lengths = append(prefixes, p), append(lengths, int32(len(p))) //nolint:gosec // Of a telephone number.
		}
	}
	slices.Sort(lengths)
	lengths = slices.Compact(lengths)
	for p, group := range groups {
		r, err := tx.Query(ctx, countTaken, p.from, instant(p.to), perMessage, prefixes, lengths)
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

// add counts the rows that the limit covers.
func (a *addition) add(all []taken) {
	for i := range all {
		t := &all[i]
		if a.channel != "" && a.channel != t.Channel {
			continue
		}
		if a.Scope.Each() && t.Tenant != "" {
			if a.byTenant == nil {
				a.byTenant = map[string]int64{}
			}
			a.byTenant[t.Tenant] += a.units(t)
		}
		if a.covers(t) {
			a.counted += a.units(t)
		}
	}
}

// units is the amount of a row in the unit of the limit.
func (a *addition) units(t *taken) int64 {
	switch {
	case a.Unit == admission.Segments:
		return t.Segments
	case a.Unit == admission.Messages:
		return t.Messages
	case a.Currency == t.Currency:
		return t.Micros
	}
	return 0
}

// covers reports whether the scope of the limit covers the row.
func (a *addition) covers(t *taken) bool {
	switch {
	case a.Scope.Tenant != "":
		return a.Scope.Tenant == t.Tenant
	case a.Scope.Prefix != "":
		return slices.Contains(t.Prefixes, a.Scope.Prefix)
	}
	return true
}

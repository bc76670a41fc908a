package ledger

import (
	"time"

	"dispatcher/admission"
)

// closeWindows moves windows that are over, and that no claim has rolled yet, into the history. It
// runs before the new limits are written, so that a closed window keeps the maximum that held in
// it.
const closeWindows = `
	with kept as (
	  insert into dispatcher.limit_history
	    (channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	      since)
	  select l.channel, l.scope, l.window_seconds, l.unit, l.window_start, l.max, l.granted,
	    l.reserved, l.currency, l.since
	  from dispatcher.limits l
	  join unnest($1::int[], $2::timestamptz[]) as r(window_seconds, start) using (window_seconds)
	  where l.window_start > 'epoch' and l.window_start < r.start and l.granted > 0
	)
	update dispatcher.limits l set window_start = r.start, granted = 0, max = l.configured_max,
	  reserved = 0, taken = null
	from unnest($1::int[], $2::timestamptz[]) as r(window_seconds, start)
	where r.window_seconds = l.window_seconds and l.window_start > 'epoch'
	  and l.window_start < r.start`

// recutWindows moves limits of a day, whose day begins at another time than before, into the
// running day, with what was counted in it. It runs before closeWindows, which then closes what is
// left of the day before.
//
//   - When the new day begins later than the window of the limit, that window goes to the history
//     and ends now.
//   - When the new day begins earlier, it includes the window and all windows in the history since
//     then. They are deleted from the history, so that no moment is in two windows.
const recutWindows = `
	with cut as (
	  select l.channel, l.scope, l.window_seconds, l.unit, l.currency, n.start,
	    l.window_start < n.start as later,
	    case when l.window_start > clock_timestamp() - interval '23 hours'
	      then clock_timestamp() end as until, n.counted
	  from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[],
	    $5::bigint[]) as n(channel, scope, unit, start, counted)
	  join dispatcher.limits l on l.channel = n.channel and l.scope = n.scope
	    and l.window_seconds = 86400 and l.unit = n.unit
	  where l.window_start <> n.start
	), kept as (
	  insert into dispatcher.limit_history
	    (channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	      since, until)
	  select channel, scope, window_seconds, unit, l.window_start, l.max, l.granted, l.reserved,
	    l.currency, l.since, c.until
	  from dispatcher.limits l join cut c using (channel, scope, window_seconds, unit)
	  where c.later and l.granted > 0
	), gone as (
	  delete from dispatcher.limit_history h using cut c
	  where h.channel = c.channel and h.scope = c.scope and h.window_seconds = c.window_seconds
	    and h.unit = c.unit
	    and h.currency is not distinct from c.currency and h.window_start >= c.start
	)
	update dispatcher.limits l
	set window_start = c.start, granted = c.counted, max = greatest(l.configured_max, c.counted),
	  reserved = 0, taken = null
	from cut c
	where l.channel = c.channel and l.scope = c.scope and l.window_seconds = c.window_seconds
	  and l.unit = c.unit`

// retireLimits moves limits that the document no longer has to the history, unless they never
// counted anything. A limit in another currency is another limit: what was granted in the old
// currency says nothing about the new one. A sliding limit whose window has just begun may have
// granted nothing, but its release time still prevents a second burst, so it is kept too. A limit
// that has opened no window since it came back is not: it is in the history from the time before. A
// second that has not begun is kept even if it granted nothing: its until tells that the running
// second, which is in the history already, does not count later claims.
const retireLimits = `
	with wanted as (
	  select channel, scope, window_seconds, unit, nullif(currency, '') as currency
	  from unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::text[]) as n(channel, scope,
	    window_seconds, unit, currency)
	), gone as (
	  delete from dispatcher.limits l
	  where not exists (
	    select from wanted n
	    where n.channel = l.channel and n.scope = l.scope and n.window_seconds = l.window_seconds
	      and n.unit = l.unit
	      and n.currency is not distinct from l.currency)
	  returning l.*
	)
	insert into dispatcher.limit_history
	  (channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	    next_at, pace, taken, since, until)
	select channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	  next_at, pace, taken, since, clock_timestamp()
	from gone where granted > 0 or next_at > now() and window_start > 'epoch'
	  or window_seconds = 1 and unit = 'messages' and window_start > clock_timestamp()`

// upsertLimits writes the limits of the document. A limit that comes back gets its running window
// back from the history: removing a limit and adding it again must not give the slots of a window
// twice. When its day now begins earlier, it gets back all windows since then. The release time of
// its next unit comes from its last window, however old. A limit that is added begins with what was
// counted for it, see beginning; a prepaid budget has the sum of its top-ups. A limit that stays
// keeps its release time and its tallies, and reserves no more than it has left. since is when the
// limit began: a refund counts only for money taken after it, and so never in another currency.
var upsertLimits = named(wantedNames, `
	with wanted as (
	  select n.channel, n.scope, n.window_seconds, n.unit,
	    n.max + case when n.window_seconds = 2147483647 then coalesce((
	      select sum(t.micros)::bigint from dispatcher.top_ups t where t.channel = n.channel
	        and t.scope = n.scope and t.currency = n.currency), 0) else 0 end as max,
	    nullif(n.currency, '') as currency, n.start, n.counted,
	    coalesce(r.start, '-infinity') as running
	  from unnest(@channels::text[], @scopes::text[], @windows::int[], @units::text[],
	    @currencies::text[], @maxes::bigint[], @starts::timestamptz[], @counted::bigint[])
	    as n(channel, scope, window_seconds, unit, currency, max, start, counted)
	  left join unnest(@lengths::int[], @running_since::timestamptz[])
	    as r(window_seconds, start) using (window_seconds)
	  where true
	), added as (
	  select * from wanted n where not exists (
	    select from dispatcher.limits l
	    where l.channel = n.channel and l.scope = n.scope and l.window_seconds = n.window_seconds
	      and l.unit = n.unit)
	), last as (
	  select h.* from added n, lateral (
	    select * from dispatcher.limit_history h
	    where h.channel = n.channel and h.scope = n.scope and h.window_seconds = n.window_seconds
	      and h.unit = n.unit
	      and h.currency is not distinct from n.currency
	    order by h.window_start desc limit 1) h
	), back as (
	  select b.channel, b.scope, b.window_seconds, b.unit, b.currency, b.granted, b.taken,
	    case when b.window_start > clock_timestamp() then b.window_start
	      else coalesce(n.start, b.window_start) end as start
	  from added n join last b using (channel, scope, window_seconds, unit)
	  where b.window_start >= n.running
	), gone as (
	  delete from dispatcher.limit_history h using back b
	  where h.channel = b.channel and h.scope = b.scope and h.window_seconds = b.window_seconds
	    and h.unit = b.unit
	    and h.currency is not distinct from b.currency and h.window_start >= b.start
	)
	insert into dispatcher.limits as l
	  (channel, scope, window_seconds, unit, currency, configured_max, max, window_start, granted,
	    next_at, pace, taken, since)
	select n.channel, n.scope, n.window_seconds, n.unit, n.currency, n.max,
	  greatest(n.max, g.granted),
	  coalesce(b.start, n.start, 'epoch'), g.granted, p.next_at, p.pace, b.taken, clock_timestamp()
	from wanted n left join back b using (channel, scope, window_seconds, unit)
	  left join last p using (channel, scope, window_seconds, unit),
	  lateral (select greatest(coalesce(b.granted, 0),
	    case when b.start > n.start then 0 else coalesce(n.counted, 0) end) as granted) g
	on conflict (channel, scope, window_seconds, unit) do update
	  set configured_max = excluded.configured_max,
	    max = greatest(excluded.configured_max, l.granted),
	    reserved = least(l.reserved, greatest(excluded.configured_max - l.granted, 0))`)

// wantedNames are the names of the parameters from running, limitSpecs and beginning.arguments.
var wantedNames = []string{
	"lengths", "running_since", "channels", "scopes", "windows", "units", "currencies", "maxes",
	"starts", "counted",
}

// channelSpecs are the parameters of upsertChannels.
func channelSpecs(specs []ChannelSpec) []any {
	names, positions, active := []string{}, []int32{}, []int64{}
	for i := range specs {
		names, positions, active = append(names, specs[i].Name), append(positions, int32(i)),
			append(active, specs[i].ActiveMax)
	}
	return []any{names, positions, active}
}

// ownLimit is a limit with its channel, which is empty for a limit over all channels.
type ownLimit struct {
	channel string
	*admission.Limit
}

// allLimits are all limits of the document.
func (n *NewRouting) allLimits() []ownLimit {
	var all []ownLimit
	for i := range n.Limits {
		all = append(all, ownLimit{"", &n.Limits[i]})
	}
	for i := range n.Channels {
		c := &n.Channels[i]
		for j := range c.Limits {
			all = append(all, ownLimit{c.Name, &c.Limits[j]})
		}
	}
	return all
}

// limitSpecs are the parameters of upsertLimits that describe limits. retireLimits takes all of
// them but the last.
func limitSpecs(limits []ownLimit) []any {
	n := len(limits)
	channel, scope, seconds, unit := make([]string, n), make([]string, n), make([]int32, n),
		make([]string, n)
	most, currency := make([]int64, n), make([]string, n)
	for i, l := range limits {
		channel[i], scope[i], seconds[i] = l.channel, l.Scope.String(), int32(l.Window.Seconds())
		unit[i], most[i], currency[i] = l.Unit.String(), l.Max, l.Currency
	}
	return []any{channel, scope, seconds, unit, currency, most}
}

// running are the lengths and beginnings of the windows that contain a moment: two parameters of
// closeWindows and upsertLimits. Without a zone the day is left out, as its beginning is not known.
func running(now time.Time, zone *time.Location) []any {
	var seconds []int32
	var starts []time.Time
	for _, w := range [...]admission.Window{
		admission.Second, admission.Minute, admission.Hour,
		admission.Day,
	} {
		if w == admission.Day && zone == nil {
			continue
		}
		seconds, starts = append(seconds, int32(w.Seconds())), append(starts, w.Start(now, zone))
	}
	return []any{seconds, starts}
}

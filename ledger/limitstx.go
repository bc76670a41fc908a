package ledger

import "dispatcher/admission"

// retireLimits moves limits that the document no longer has to the history, unless they never
// counted anything.
const retireLimits = `
	with wanted as (
	  select * from unnest($1::text[], $2::text[], $3::int[], $4::text[]) as n(channel, scope, window_seconds, unit)
	), gone as (
	  delete from dispatcher.limits l
	  where not exists (
	    select from wanted n
	    where n.channel = l.channel and n.scope = l.scope and n.window_seconds = l.window_seconds and n.unit = l.unit)
	  returning l.*
	)
	insert into dispatcher.limit_history
	  (channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency, next_at, taken)
	select channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency, next_at, taken
	from gone where granted > 0 or next_at > now()`

// upsertLimits takes the last window of a limit that comes back out of the history, so
// that nobody gets a window's slots twice by removing a limit and adding it again. A limit that
// stays keeps its place and its tallies. since is when the limit began: nobody gets money back that
// he took before, least of all in another currency.
const upsertLimits = `
	with wanted as (
	  select channel, scope, window_seconds, unit, max, nullif(currency, '') as currency
	  from unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::bigint[], $6::text[])
	    as n(channel, scope, window_seconds, unit, max, currency)
	), back as (
	  delete from dispatcher.limit_history h using wanted n
	  where h.channel = n.channel and h.scope = n.scope and h.window_seconds = n.window_seconds and h.unit = n.unit
	    and h.window_start = (select max(o.window_start) from dispatcher.limit_history o
	      where o.channel = n.channel and o.scope = n.scope and o.window_seconds = n.window_seconds and o.unit = n.unit)
	    and not exists (select from dispatcher.limits l
	      where l.channel = n.channel and l.scope = n.scope and l.window_seconds = n.window_seconds and l.unit = n.unit)
	  returning h.*
	)
	insert into dispatcher.limits as l
	  (channel, scope, window_seconds, unit, currency, configured_max, max, window_start, granted, next_at, taken, since)
	select n.channel, n.scope, n.window_seconds, n.unit, n.currency, n.max, greatest(n.max, coalesce(b.granted, 0)),
	  coalesce(b.window_start, 'epoch'), coalesce(b.granted, 0), b.next_at, b.taken, clock_timestamp()
	from wanted n left join back b using (channel, scope, window_seconds, unit)
	on conflict (channel, scope, window_seconds, unit) do update
	  set configured_max = excluded.configured_max, max = greatest(excluded.configured_max, l.granted),
	    since = case when l.currency is distinct from excluded.currency then excluded.since else l.since end,
	    currency = excluded.currency`

// channelSpecs are the parameters of upsertChannels.
func channelSpecs(specs []ChannelSpec) []any {
	names, positions, active := []string{}, []int32{}, []int64{}
	for i := range specs {
		names, positions, active = append(names, specs[i].Name), append(positions, int32(i)), append(active, specs[i].ActiveMax)
	}
	return []any{names, positions, active}
}

// limitSpecs are the parameters of upsertLimits, of which retireLimits takes the first four.
func limitSpecs(n *NewRouting) []any {
	channel, scope, seconds, unit, most, currency := []string{}, []string{}, []int32{}, []string{}, []int64{}, []string{}
	add := func(name string, limits []admission.Limit) {
		for i := range limits {
			l := &limits[i]
			channel, scope, seconds = append(channel, name), append(scope, l.Scope.String()), append(seconds, int32(l.Window.Seconds()))
			unit, most, currency = append(unit, l.Unit.String()), append(most, l.Max), append(currency, l.Currency)
		}
	}
	add("", n.Limits)
	for i := range n.Channels {
		add(n.Channels[i].Name, n.Channels[i].Limits)
	}
	return []any{channel, scope, seconds, unit, most, currency}
}

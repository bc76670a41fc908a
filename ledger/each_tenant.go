package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// A limit of each tenant (admission.EachTenant) has a row that counts nothing and says what each
// tenant may take. The row of a tenant is made by the first claim that needs it.

// makeTenantLimits creates the rows that some scopes lack, in the lock order, while their channels
// are locked. A limit that an earlier document removed, or whose row was dropped as idle while the
// clock was ahead, continues in the window that it had then, if the history has no later one. When
// that window is over, only its release time is kept, and the window stays in the history. A day
// counts as over 25 hours after its beginning, see facts.window_evidence. A prepaid budget begins
// with the sum of its top-ups. When another claim creates the same row at the same time, the
// statement waits for it.
const makeTenantLimits = `
	with wanted as (
	  select n.channel, n.scope, e.window_seconds, e.unit, e.configured_max, e.currency
	  from unnest($1::text[], $2::text[]) as n(channel, scope)
	  join dispatcher.limits e on e.channel = n.channel and e.scope = 'tenant:*'
	  where n.scope like 'tenant:%' and not exists (
	    select from dispatcher.limits l
	    where l.channel = n.channel and l.scope = n.scope and l.window_seconds = e.window_seconds
	      and l.unit = e.unit)
	), last as (
	  select h.*, h.window_start + case h.window_seconds when 86400 then interval '25 hours'
	    else make_interval(secs => h.window_seconds) end > clock_timestamp() as running
	  from wanted n, lateral (
	    select * from dispatcher.limit_history h
	    where h.channel = n.channel and h.scope = n.scope and h.window_seconds = n.window_seconds
	      and h.unit = n.unit and h.currency is not distinct from n.currency
	    order by h.window_start desc limit 1) h
	), gone as (
	  delete from dispatcher.limit_history h using last b
	  where h.channel = b.channel and h.scope = b.scope and h.window_seconds = b.window_seconds
	    and h.unit = b.unit and h.currency is not distinct from b.currency
	    and h.window_start = b.window_start and b.running
	)
	insert into dispatcher.limits (channel, scope, window_seconds, unit, currency, configured_max,
	  max, window_start, granted, next_at, pace, taken, since)
	select n.channel, n.scope, n.window_seconds, n.unit, n.currency, m.configured,
	  greatest(m.configured, r.granted), coalesce(r.window_start, 'epoch'),
	  coalesce(r.granted, 0), b.next_at, b.pace, r.taken, clock_timestamp()
	from wanted n left join last b using (channel, scope, window_seconds, unit)
	  left join last r on r.running and r.channel = n.channel and r.scope = n.scope
	    and r.window_seconds = n.window_seconds and r.unit = n.unit,
	lateral (select n.configured_max + case when n.window_seconds = 2147483647 then coalesce((
	    select sum(t.micros)::bigint from dispatcher.top_ups t where t.channel = n.channel
	      and t.scope = n.scope and t.currency = n.currency), 0) else 0 end as configured) m
	order by n.channel, n.scope, n.window_seconds, n.unit
	on conflict (channel, scope, window_seconds, unit) do nothing`

// tenantArrays are the parameters of makeTenantLimits.
func tenantArrays(scopes []ScopeRef) []any {
	channel, scope := []string{}, []string{}
	for i := range scopes {
		if s := &scopes[i]; s.Scope.Tenant != "" && !s.Scope.Each() {
			channel, scope = append(channel, s.Channel), append(scope, s.Scope.String())
		}
	}
	return []any{channel, scope}
}

// place is the key of the row of a limit: limitKey without the currency.
func (k *limitKey) place() limitKey {
	return limitKey{channel: k.channel, scope: k.scope, seconds: k.seconds, unit: k.unit}
}

func (l *ownLimit) place() limitKey {
	return limitKey{
		channel: l.channel, scope: l.Scope.String(), seconds: l.Window.Seconds(),
		unit: l.Unit.String(),
	}
}

// eachTenant are the limits of each tenant among limits, by the key of their row.
func eachTenant(limits []ownLimit) map[limitKey]ownLimit {
	var each map[limitKey]ownLimit
	for i := range limits {
		if limits[i].Scope.Each() {
			if each == nil {
				each = map[limitKey]ownLimit{}
			}
			each[limits[i].place()] = limits[i]
		}
	}
	return each
}

// ofTenant is the limit of one tenant that a limit of each tenant stands for.
func (l *ownLimit) ofTenant(tenant string) ownLimit {
	own := l.Own(tenant)
	return ownLimit{l.channel, &own}
}

// withTenants adds to the limits of a document those of tenants that have rows, with the values of
// the document's limits of each tenant.
func withTenants(limits []ownLimit, there map[limitKey]limitWindow) []ownLimit {
	each := eachTenant(limits)
	if each == nil {
		return limits
	}
	named := make(map[limitKey]bool, len(limits))
	for i := range limits {
		named[limits[i].place()] = true
	}
	documented := len(limits)
	for k := range there {
		scope, err := admission.ParseScope(k.scope)
		if err != nil || scope.Tenant == "" || named[k.place()] {
			continue
		}
		of := k.place()
		of.scope = admission.Scope{Tenant: admission.EachTenant}.String()
		if l, ok := each[of]; ok {
			named[k.place()] = true
			limits = append(limits, l.ofTenant(scope.Tenant))
		}
	}
	slices.SortFunc(limits[documented:], compareLimits)
	return limits
}

// compareLimits is the lock order.
func compareLimits(a, b ownLimit) int {
	m, n := a.place(), b.place()
	return cmp.Or(cmp.Compare(m.channel, n.channel), cmp.Compare(m.scope, n.scope),
		cmp.Compare(m.seconds, n.seconds), cmp.Compare(m.unit, n.unit))
}

// addCounted is for limits of each tenant that the document adds: it adds the limit of every tenant
// that has taken something in the running window.
func (b *beginning) addCounted() {
	named := make(map[limitKey]bool, len(b.limits))
	for i := range b.limits {
		named[b.limits[i].place()] = true
	}
	for i := range len(b.added) {
		a := b.added[i]
		tenants := make([]string, 0, len(a.byTenant))
		for tenant := range a.byTenant {
			tenants = append(tenants, tenant)
		}
		slices.Sort(tenants)
		for _, tenant := range tenants {
			own := a.ofTenant(tenant)
			if a.byTenant[tenant] == 0 || named[own.place()] {
				continue
			}
			b.added = append(b.added, addition{
				ownLimit: own, at: len(b.limits), start: a.start, counted: a.byTenant[tenant],
			})
			b.limits = append(b.limits, own)
		}
	}
}

// idleTenants is how long after the beginning of its last window the row of an idle tenant is
// dropped. No window is longer than a day of 25 hours.
const idleTenants = 48 * time.Hour

// idleLimits are the rows that were made for tenants which then took nothing for $1, except those
// that the document names. A prepaid budget that has granted something stays, because its window
// has no end.
const idleLimits = `
	  from dispatcher.limits l
	  join dispatcher.limits e on e.channel = l.channel and e.scope = 'tenant:*'
	    and e.window_seconds = l.window_seconds and e.unit = l.unit
	  where l.scope like 'tenant:%' and l.scope <> 'tenant:*'
	    and (l.window_seconds < 2147483647 or l.granted = 0)
	    and greatest(l.window_start, l.since, coalesce(l.next_at, 'epoch')) < now() - $1::interval
	    and not exists (
	      select from unnest($2::text[], $3::text[], $4::int[], $5::text[])
	        as n(channel, scope, window_seconds, unit)
	      where n.channel = l.channel and n.scope = l.scope
	        and n.window_seconds = l.window_seconds and n.unit = l.unit)`

// hasIdle reports whether idleLimits finds any row.
const hasIdle = `select exists (select ` + idleLimits + `)`

// dropIdle drops a batch of idleLimits. All channels are locked, so no claim is between creating a
// row and reading it.
const dropIdle = `
	with idle as (
	  select l.channel, l.scope, l.window_seconds, l.unit ` + idleLimits + `
	  order by l.channel, l.scope, l.window_seconds, l.unit limit $6 for update of l
	), gone as (
	  delete from dispatcher.limits l using idle i
	  where l.channel = i.channel and l.scope = i.scope and l.window_seconds = i.window_seconds
	    and l.unit = i.unit
	  returning l.*
	), kept as (
	  insert into dispatcher.limit_history
	    (channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	      since)
	  select channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
	    since
	  from gone where granted > 0
	)
	select count(*) from gone`

// DropIdleTenants drops, for limits of each tenant, the rows of the tenants that took nothing in
// the last two days. What their last windows granted stays in the history, and the next claim that
// needs a row creates it again. channels and over are those of routing version: limits that it
// names stay, and nothing is dropped when another version is current. Claims wait for milliseconds,
// and only while there is something to drop. It returns how many rows it dropped, also with an
// error.
func (s *Limits) DropIdleTenants(
	ctx context.Context, version int64, channels []ChannelSpec, over []admission.Limit,
) (dropped int64, err error) {
	named := (&NewRouting{Channels: channels, Limits: over}).allLimits()
	if eachTenant(named) == nil {
		return 0, nil
	}
	arguments := append([]any{idleTenants}, limitSpecs(named)[:4]...)
	for n := int64(dropBatch); n == dropBatch; dropped += n {
		n = 0
		var found bool
		err := s.reports.QueryRow(ctx, hasIdle, arguments...).Scan(&found)
		if err == nil && found {
			err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
				n, err = dropIdleUnder(ctx, tx, version, append(arguments, dropBatch))
				return err
			})
		}
		if err != nil {
			return dropped, wrap("drop limits of idle tenants", err)
		}
	}
	return dropped, nil
}

// dropIdleUnder drops one batch, if version is current. It takes the appliers' lock first, as Apply
// does.
func dropIdleUnder(
	ctx context.Context, tx pgx.Tx, version int64, arguments []any,
) (dropped int64, err error) {
	current, err := lockRouting(ctx, tx)
	if err != nil || current.Version != version {
		return 0, err
	}
	if _, err := tx.Exec(ctx,
		`select from dispatcher.channels order by channel for update`); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, dropIdle, arguments...).Scan(&dropped)
	return dropped, err
}

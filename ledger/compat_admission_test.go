package ledger_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// What the release before migration 004 says to the database about limits, slots and instances,
// word for word, for one row each. It may go on saying it until its last instance is replaced.
const (
	oldRegister = `
		insert into dispatcher.instances (region, host, version) values ($1, $2, $3) returning id`
	oldLimits = `
	select channel, window_seconds, unit, configured_max, max, window_start, granted
	from dispatcher.limits
	where channel = any($1) and scope = 'channel'
	order by channel, scope, window_seconds, unit for update`
	oldUpdateLimits = `
	update dispatcher.limits l set granted = n.granted, max = n.max, window_start = n.window_start
	from unnest($1::text[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[])
	  as n(channel, window_seconds, unit, granted, max, window_start)
	where l.channel = n.channel and l.scope = 'channel' and l.window_seconds = n.window_seconds
	  and l.unit = n.unit`
	oldHistory = `
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, granted, max,
	  window_start)
	select n.channel, 'channel', n.window_seconds, n.unit, n.granted, n.max, n.window_start
	from unnest($1::text[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[])
	  as n(channel, window_seconds, unit, granted, max, window_start)`
	oldRetire = `
	with wanted as (
	  select * from unnest($1::text[], $2::int[], $3::text[]) as n(channel, window_seconds, unit)
	), gone as (
	  delete from dispatcher.limits l
	  where l.scope = 'channel' and not exists (
	    select from wanted n where n.channel = l.channel and n.window_seconds = l.window_seconds
	      and n.unit = l.unit)
	  returning l.*
	)
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start, max,
	  granted, reserved)
	select channel, scope, window_seconds, unit, window_start, max, granted, reserved from gone
	where granted > 0`
	oldUpsert = `
	insert into dispatcher.limits as l (channel, window_seconds, unit, configured_max, max,
	  window_start, granted)
	select n.channel, n.window_seconds, n.unit, n.max, greatest(n.max, 0), 'epoch', 0
	from unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) as n(channel, window_seconds, unit,
	  max)
	on conflict (channel, scope, window_seconds, unit) do update
	  set configured_max = excluded.configured_max, max = greatest(excluded.configured_max,
	    l.granted)`
	oldDue = `
	select m.seq, m.id, m.lane, m.tenant, m.state, m.next_at, m.tried from dispatcher.messages m
	where m.next_at <= now() and m.seq <> all($2::bigint[]) order by m.next_at
	  limit $1 for update skip locked`
	oldAttempt = `
	insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments, price_micros,
	  currency, ranking,
	  claimed_at, instance) values ($1, 1, 'a', 'first_choice', 1, 28000, 'GBP', null, now(), $2)`
	oldSettle = `
	with done as (
	  update dispatcher.attempts a
	  set outcome = 'accepted', provider_reference = 'ref', settled_at = now(),
	    answers = a.answers + 1
	  where a.message_seq = $1 and a.outcome is null returning a.channel, a.answers
	), leaving as (
	  select channel, count(*) as n from done where answers = 1 group by channel
	)
	update dispatcher.channels c set active = c.active - l.n,
	  active_max = case when c.configured_max = 0 then 0
	    else greatest(c.configured_max, c.active - l.n) end
	from leaving l where c.channel = l.channel`
	oldWindows = `select channel, scope, window_seconds, window_start, unit, max, granted, reserved
		from audit.limit_windows`
)

func TestThePreviousReleaseCountsAndSettlesOnTheNewSchema(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 10)},
		scoped(tenant("shop"), admission.Day, 10), budget(tenant("shop"), 1e9))
	mustClaim(t, l, of("shop", 3), shop...)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	old := scalar[int64](t, db, oldRegister, "r", "h", "0.3")
	execute(t, db, oldLimits, []string{"a"})
	execute(t, db, oldUpdateLimits, []string{"a"}, []int32{86400}, []string{"messages"}, []int64{5},
		[]int64{10}, []time.Time{today})
	execute(t, db, oldHistory, []string{"a"}, []int32{1}, []string{"messages"}, []int64{5}, []int64{
		10,
	}, []time.Time{today})
	execute(t, db, oldAttempt, int64(999999), old)
	execute(t, db, `update dispatcher.channels set active = active + 1 where channel = 'a'`)
	execute(t, db, oldDue, 10, []int64{})
	execute(t, db, oldSettle, int64(999999))
	if n := activeOn(t, db, "a"); n != 3 {
		t.Errorf("%d active", n)
	}
	_, sent := mustClaim(t, l, of("shop", 9), shop...)
	if len(sent) != 5 {
		t.Errorf("%d sent of the 5 that the previous release left", len(sent))
	}
	// It applies a routing, and leaves limits alone that it does not know.
	execute(t, db, oldRetire, []string{"a"}, []int32{60}, []string{"messages"})
	execute(t, db, oldUpsert, []string{"a"}, []int32{60}, []string{"messages"}, []int64{7})
	execute(t, db, oldWindows)
	want := "tenant:shop 86400 messages 8 of 10, tenant:shop 86400 money 224000 of 1000000000 GBP, " +
		"a channel 1 messages 5 of 10, a channel 86400 messages 10 of 10"
	if got := granted(t, db); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, sent = mustClaim(t, l, of("shop", 9), shop[0]); len(sent) != 7 {
		t.Errorf("%d sent under the limit of the previous release's routing", len(sent))
	}
}

package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// eachTenant is a limit that each tenant has.
func eachTenant(window admission.Window, most int64) admission.Limit {
	return scoped(tenant(admission.EachTenant), window, most)
}

// sendOf claims n messages of a tenant under its limits over all channels, and returns how many
// were sent.
func sendOf(t testing.TB, l *ledger.Ledger, name string, n int) int {
	t.Helper()
	return sendUnder(t, l, name, n, nil)
}

// sendUnder is sendOf with the parts of limits that only the routing document has.
func sendUnder(
	t testing.TB, l *ledger.Ledger, name string, n int, extra func(*admission.Counter),
) int {
	t.Helper()
	sent := 0
	err := runClaim(t.Context(), l, ledger.Claim{
		Messages: of(name, n), Channels: []string{"a"}, EachTenant: true,
		Scopes: []ledger.ScopeRef{{Scope: tenant(name)}},
	}, func(s *ledger.Seen) (ledger.Decisions, error) {
		if len(s.Scoped[0].Counters) == 0 {
			t.Errorf("tenant %s has no limit", name)
		}
		d, err := giveScoped(extra)(s)
		for i := range d.Each {
			if d.Each[i].State == ledger.Sending {
				sent++
			}
		}
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func wantGranted(t testing.TB, r *rig, want string) {
	t.Helper()
	if got := granted(t, r.db); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestARowIsMadeForEachTenantThatClaims, except for one that the document names.
func TestARowIsMadeForEachTenantThatClaims(t *testing.T) {
	t.Parallel()
	r := lend(t)
	document := []admission.Limit{
		eachTenant(admission.Day, 3), scoped(tenant("bank"), admission.Day, 5),
	}
	applyLimits(t, r.l, nil, document...)
	for name, want := range map[string]int{"shop": 3, "bank": 5, "news": 3} {
		if got := sendOf(t, r.l, name, 7); got != want {
			t.Errorf("%d of tenant %s were sent, want %d", got, name, want)
		}
	}
	wantGranted(t, r, "tenant:bank 86400 messages 5 of 5, tenant:news 86400 messages 3 of 3, "+
		"tenant:shop 86400 messages 3 of 3")

	since := func() string {
		return scalar[string](t, r.db, `select since::text from dispatcher.limits
			where scope = 'tenant:shop'`)
	}
	began := since()
	document[0].Max = 4 // acts on the rows that were made
	applyLimits(t, r.l, nil, document...)
	if now := since(); now != began { // else money that was taken before would not come back
		t.Errorf("the limit began at %s, and now at %s", began, now)
	}
	if got := sendOf(t, r.l, "shop", 7); got != 1 {
		t.Errorf("%d more were sent after the limit was raised by 1", got)
	}
	document = append(document[:1], scoped(tenant("news"), admission.Day, 9))
	applyLimits(t, r.l, nil, document...)
	wantGranted(t, r, "tenant:bank 86400 messages 5 of 5, tenant:news 86400 messages 3 of 9, "+
		"tenant:shop 86400 messages 4 of 4")
	if got := sendOf(t, r.l, "bank", 7); got != 0 {
		t.Errorf("%d were sent of a tenant that has more than the limit of each", got)
	}
}

// TestALimitOfATenantBeginsWhenItsChannelIsLocked, not when the claim began to wait for that:
// others may claim in between, and the limit has not counted them.
func TestALimitOfATenantBeginsWhenItsChannelIsLocked(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, eachTenant(admission.Day, 3))
	execute(t, r.db, `begin`)
	execute(t, r.db, `select from dispatcher.channels for update`)
	claimed := make(chan error)
	go func() {
		claimed <- runClaim(t.Context(), r.l, ledger.Claim{
			Messages: of("shop", 1), Channels: []string{"a"}, EachTenant: true,
			Scopes: []ledger.ScopeRef{{Scope: tenant("shop")}},
		}, giveScoped(nil))
	}()
	watch := raw(t, r.url)
	tier.Within(t, 10*time.Second, "the claim waits for the channel", func() bool {
		return waiters(t, watch) > 0
	})
	given := scalar[time.Time](t, r.db, `select clock_timestamp()`)
	execute(t, r.db, `commit`)
	if err := <-claimed; err != nil {
		t.Fatal(err)
	}
	if since := scalar[time.Time](t, r.db, `select since from dispatcher.limits
		where scope = 'tenant:shop'`); since.Before(given) {
		t.Errorf("the limit began at %v, before the channel was given free at %v", since, given)
	}
}

// TestALimitOfEachTenantBeginsWithWhatTheyHaveTaken, when it is added and when it comes back.
func TestALimitOfEachTenantBeginsWithWhatTheyHaveTaken(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply := func(limits ...admission.Limit) {
		t.Helper()
		_, err := r.l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "test", Document: "routes: []", Limits: limits, Zone: time.UTC,
			Channels: []ledger.ChannelSpec{{Name: "a"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply()
	for _, name := range []string{"shop", "shop", ""} {
		err := runClaim(t.Context(), r.l, ledger.Claim{
			Messages: of(name, 2), Channels: []string{"a"},
		}, giveScoped(nil))
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		apply(eachTenant(admission.Day, 5))
		wantGranted(t, r, "tenant:shop 86400 messages 4 of 5")
		apply() // and gone again
	}
	apply(eachTenant(admission.Day, 6))
	if got := sendOf(t, r.l, "shop", 9); got != 2 {
		t.Errorf("%d were sent, 4 of 6 had been taken", got)
	}
}

// TestAWindowThatWasDroppedTooEarlyGoesOn: the database's clock was days ahead, so that the row of
// the tenant seemed to be idle.
func TestAWindowThatWasDroppedTooEarlyGoesOn(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	applyLimits(t, r.l, nil, eachTenant(admission.Day, 5))
	if got := sendOf(t, r.l, "shop", 4); got != 4 {
		t.Fatalf("%d were sent", got)
	}
	execute(t, r.db, `with gone as (
		  delete from dispatcher.limits where scope = 'tenant:shop' returning *)
		insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start, max,
		  granted, reserved, currency, since)
		select channel, scope, window_seconds, unit, window_start, max, granted, reserved, currency,
		  since from gone`)
	if got := sendOf(t, r.l, "shop", 9); got != 1 {
		t.Errorf("%d were sent, 4 of 5 had been taken", got)
	}
}

// TestASlidingLimitOfATenantKeepsItsPaceWhenItsRowIsMadeAgain: removing the limit of each tenant
// and adding it again does not allow a second burst.
func TestASlidingLimitOfATenantKeepsItsPaceWhenItsRowIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := lend(t)
	limit := eachTenant(admission.Second, 1)
	slides := func(c *admission.Counter) { c.Sliding, c.Burst = true, 1 }
	applyLimits(t, r.l, nil, limit)
	sendUnder(t, r.l, "shop", 1, slides)
	execute(t, r.db, `update dispatcher.limits set next_at = now() + interval '1 hour', pace = null
		where scope = 'tenant:shop'`)
	for range 2 {
		applyLimits(t, r.l, nil)
		applyLimits(t, r.l, nil, limit)
		if got := sendUnder(t, r.l, "shop", 1, slides); got != 0 {
			t.Error("it was sent an hour before its release time")
		}
	}
	if got := scalar[int](t, r.db, `select count(*) from dispatcher.limits
		where scope = 'tenant:shop' and next_at > now() + interval '50 minutes'`); got != 1 {
		t.Errorf("%d rows of the tenant with its release time", got)
	}
}

// TestClaimsOfNewTenantsAreExact: claims of two processes create rows concurrently, while the
// routing is applied again and rows are dropped.
func TestClaimsOfNewTenantsAreExact(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	instances := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
	}
	document := []admission.Limit{eachTenant(admission.Day, 15)}
	applyLimits(t, instances[0], nil, document...)
	rounds := tier.Size(6, 20)
	var workers sync.WaitGroup
	for worker := range 8 {
		l := instances[worker%2]
		workers.Go(func() {
			for round := range rounds {
				sendOf(t, l, fmt.Sprintf("t%d", (worker/4+round)%rounds), 4)
			}
		})
	}
	for range rounds {
		applyLimits(t, instances[0], nil, document...)
		if _, err := instances[1].Limits.DropIdleTenants(t.Context(), 1, nil, document); err != nil {
			t.Error(err)
		}
	}
	workers.Wait()
	if got := amiss(t, db, always...); got != "" {
		t.Error(got)
	}
	if got, want := scalar[int64](t, db, `select sum(granted) from audit.limit_windows`),
		scalar[int64](t, db, `select count(*) from dispatcher.all_attempts`); got != want ||
		want != int64(15*rounds) {
		t.Errorf("%d granted, %d attempts, want %d", got, want, 15*rounds)
	}
}

// TestRowsOfIdleTenantsAreDropped, and are made again. What the document names stays.
func TestRowsOfIdleTenantsAreDropped(t *testing.T) {
	t.Parallel()
	r := lend(t)
	document := []admission.Limit{
		eachTenant(admission.Day, 3), scoped(tenant("bank"), admission.Day, 5),
	}
	applyLimits(t, r.l, nil, document...)
	for _, name := range []string{"shop", "bank", "news"} {
		sendOf(t, r.l, name, 2)
	}
	execute(t, r.db, `update dispatcher.limits set window_start = now() - interval '49 hours',
		since = now() - interval '50 hours' where scope <> 'tenant:news'`)
	drop := func(version, want int64) {
		t.Helper()
		got, err := r.l.Limits.DropIdleTenants(t.Context(), version, nil, document)
		if err != nil || got != want {
			t.Errorf("dropped %d, %v, want %d", got, err, want)
		}
	}
	drop(7, 0) // another version may name others
	drop(1, 1)
	drop(1, 0)
	if got := scalar[string](t, r.db, `select string_agg(scope, ' ' order by scope)
		from dispatcher.limits`); got != "tenant:* tenant:bank tenant:news" {
		t.Errorf("left are %s", got)
	}
	if got := scalar[int](t, r.db, `select count(*) from dispatcher.limit_history
		where scope = 'tenant:shop' and granted = 2`); got != 1 {
		t.Errorf("%d windows of the tenant on record", got)
	}
	if got := sendOf(t, r.l, "shop", 7); got != 3 {
		t.Errorf("%d were sent in a new window, want 3", got)
	}
}

// TestAWindowThatHasEndedStaysAsItWas, when its limit goes and comes back with another maximum: the
// log of hashes has it.
func TestAWindowThatHasEndedStaysAsItWas(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply := func(limits ...admission.Limit) {
		t.Helper()
		_, err := r.l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "test", Document: "routes: []", Limits: limits, Zone: time.UTC,
			Channels: []ledger.ChannelSpec{{Name: "a"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, window := range []admission.Window{admission.Second, admission.Day} {
		for _, limits := range [][2]admission.Limit{
			{eachTenant(window, 5), eachTenant(window, 7)},
			{scoped(tenant("shop"), window, 5), scoped(tenant("shop"), window, 7)},
		} {
			apply(limits[0])
			sendOf(t, r.l, "shop", 2)
			apply() // in its window, which then ends
			execute(t, r.db, `update dispatcher.limit_history set window_start = window_start
				- interval '3 days' - 7 * random() * interval '1 day' where window_start > now()
				- interval '26 hours'`)
			ended := func() string {
				return scalar[string](t, r.db, `select coalesce(string_agg(encode(hash, 'hex'), ' '
					order by hash), '') from facts.window_evidence
					where ends_at < now() - interval '1 day'`)
			}
			was := ended()
			apply(limits[1])
			sendOf(t, r.l, "shop", 1)
			apply()
			if now := ended(); was == "" || was != now {
				t.Errorf("%s: the ended windows were %s, and are %s", window, was, now)
			}
		}
	}
}

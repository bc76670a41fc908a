package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

const testNumber = "+447700900123" // every test message goes there

func tenant(name string) admission.Scope { return admission.Scope{Tenant: name} }
func prefix(p string) admission.Scope    { return admission.Scope{Prefix: p} }

func scoped(scope admission.Scope, window admission.Window, most int64) admission.Limit {
	return admission.Limit{Scope: scope, Window: window, Max: most}
}

func budget(scope admission.Scope, micros int64) admission.Limit {
	return admission.Limit{
		Scope: scope, Window: admission.Day, Max: micros, Unit: admission.Money,
		Currency: "GBP",
	}
}

// applyLimits applies a routing with channels a and b that have the given limits, and limits over
// all channels.
func applyLimits(
	t testing.TB, l *ledger.Ledger, onA []admission.Limit, overAll ...admission.Limit,
) {
	t.Helper()
	_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: "routes: []", Limits: overAll,
		Channels: []ledger.ChannelSpec{{Name: "a", Limits: onA}, {Name: "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// of are n new messages of one tenant.
func of(name string, n int) []ledger.Message {
	messages := batch(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), n)
	for i := range messages {
		messages[i].Tenant = name
	}
	return messages
}

// giveScoped gives each message to channel a if all limits that count it admit it, and else makes
// it wait a minute. extra adds the parts of limits that only the routing document has.
func giveScoped(extra func(*admission.Counter)) decide { return giveIn(time.UTC, extra) }

// giveIn is giveScoped for limits whose days begin in a zone.
func giveIn(zone *time.Location, extra func(*admission.Counter)) decide {
	return func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		counters := []*admission.Counter{}
		for i := range seen.Channels[0].Gate.Counters {
			counters = append(counters, &seen.Channels[0].Gate.Counters[i])
		}
		for i := range seen.Scoped {
			for j := range seen.Scoped[i].Counters {
				counters = append(counters, &seen.Scoped[i].Counters[j])
			}
		}
		for _, c := range counters {
			if extra != nil {
				extra(c)
			}
			c.Roll(seen.Now, zone)
		}
		at := momentOf(seen)
		at.Zone = zone
		for i := range seen.Messages {
			if f := seen.Intakes[i]; f != ledger.Fresh && f != ledger.Due {
				continue
			}
			d.Each[i] = giveUnder(seen, at, &seen.Messages[i], counters)
		}
		return d, nil
	}
}

func giveUnder(
	seen *ledger.Seen, at *admission.Moment, m *ledger.Message, counters []*admission.Counter,
) ledger.Decision {
	var accounts []admission.Account
	for _, c := range counters {
		if c.Scope.Covers(m.Tenant, testNumber) {
			accounts = append(accounts, admission.Account{Counter: c, Rate: 1})
		}
	}
	need := &admission.Need{Lane: m.Lane, Segments: m.Plan.Segments, Micros: 28000}
	release, exclusion := admission.Fit(at, accounts, need)
	if exclusion != nil {
		return ledger.Decision{
			State: ledger.Waiting, Reason: "tenant_limit", NextAt: seen.Now.Add(time.Minute),
			Plan:     m.Plan,
			WaitsFor: exclusion.Counter.Scope.String(),
		}
	}
	admission.Take(at, accounts, need, release)
	seen.Channels[0].Gate.Active.Count++
	return ledger.Decision{State: ledger.Sending, Plan: m.Plan, Attempt: ledger.Attempt{
		Number: m.Attempts + 1, Channel: "a", Reason: ledger.ByFirstChoice,
		Segments: m.Plan.Segments, PriceMicros: 28000, Currency: "GBP",
	}}
}

// claimScoped claims on channel a under the given scopes. It returns what was shown, the messages
// that got an attempt, and the error.
func claimScoped(
	t testing.TB, l *ledger.Ledger, messages []ledger.Message, decide decide,
	scopes ...ledger.ScopeRef,
) (seen ledger.Seen, sent []ledger.Message, err error) {
	t.Helper()
	err = runClaim(t.Context(), l, ledger.Claim{
		Messages: messages, Channels: []string{"a"},
		Scopes: scopes,
	}, func(s *ledger.Seen) (ledger.Decisions, error) {
		d, err := decide(s)
		seen = *s
		for i := range d.Each {
			if d.Each[i].State == ledger.Sending {
				sent = append(sent, s.Messages[i])
			}
		}
		return d, err
	})
	return seen, sent, err
}

func mustClaim(
	t testing.TB, l *ledger.Ledger, messages []ledger.Message, scopes ...ledger.ScopeRef,
) (ledger.Seen, []ledger.Message) {
	t.Helper()
	seen, sent, err := claimScoped(t, l, messages, giveScoped(nil), scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return seen, sent
}

// shop are the scopes of tests of tenant shop.
var shop = []ledger.ScopeRef{{Channel: "", Scope: prefix("+44")}, {
	Channel: "", Scope: tenant("shop"),
}, {Channel: "a", Scope: tenant("shop")}}

// granted is a short text of audit.limit_windows: granted of max.
func granted(t testing.TB, db *pgx.Conn) string {
	t.Helper()
	return scalar[string](t, db, `
		select coalesce(string_agg(concat_ws(' ', nullif(channel, ''), scope, window_seconds, unit,
		  granted, 'of', max, currency), ', '
		  order by channel, scope, window_seconds, unit, window_start), '')
		from audit.limit_windows`)
}

func TestAllLimitsThatCountAMessageHoldAtOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{
		limit(admission.Day, 9), scoped(tenant("shop"), admission.Day, 7),
	},
		scoped(tenant("shop"), admission.Day, 5), budget(tenant("shop"), 4*28000+1),
		admission.Limit{
			Scope: prefix("+44"), Window: admission.Day, Max: 8,
			Unit: admission.Segments,
		})
	_, sent := mustClaim(t, l, of("shop", 6), shop...)
	if len(sent) != 4 {
		t.Errorf("%d of tenant shop were sent, its money is enough for 4", len(sent))
	}
	if _, sent = mustClaim(t, l, of("bank", 6), shop[0]); len(sent) != 4 {
		t.Errorf("%d of tenant bank were sent, 4 segments are left for the prefix", len(sent))
	}
	want := "prefix:+44 86400 segments 8 of 8, tenant:shop 86400 messages 4 of 5, tenant:shop " +
		"86400 money 112000 of 112001 GBP, " +
		"a channel 86400 messages 8 of 9, a tenant:shop 86400 messages 4 of 7"
	if got := granted(t, db); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.messages
		where waits_for = 'tenant:shop' and waiting_since is not null`); n != 2 {
		t.Errorf("%d messages wait for tenant:shop", n)
	}
	p, err := l.Limits.Present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Scoped) != 3 || p.Scoped[1].Channel != "" || p.Scoped[1].Scope != tenant("shop") ||
		len(p.Scoped[1].Counters) != 2 || p.Scoped[1].Counters[1].Currency != "GBP" {
		t.Errorf("%+v", p.Scoped)
	}
	waiters := []ledger.Waiters{{On: "prefix:+44", Reason: "tenant_limit", Messages: 2}, {
		On: "tenant:shop", Reason: "tenant_limit", Messages: 2,
	}}
	if diff := cmp.Diff(waiters, p.Waiting, cmpopts.IgnoreFields(ledger.Waiters{},
		"Next")); diff != "" {
		t.Error(diff)
	}
}

func TestAScopeWithoutALimitIsShownWithoutCounters(t *testing.T) {
	t.Parallel()
	l := open(t)
	seen, sent := mustClaim(t, l, of("shop", 2), shop...)
	if len(sent) != 2 || len(seen.Scoped) != 3 || len(seen.Scoped[1].Counters) != 0 ||
		seen.Scoped[1].ScopeRef != shop[1] {
		t.Errorf("%d sent, %+v", len(sent), seen.Scoped)
	}
	if seen.LockWait <= 0 || seen.LockWait > time.Minute {
		t.Errorf("the claim waited %s for locks", seen.LockWait)
	}
}

// Another session holds the tenant's limit while the claim asks for it. Both ends of the measured
// time are by the database's clock.
func TestLockWaitCoversTheLimitsOfScopes(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, holder, watcher := connect(t, ledger.Config{URL: url}), raw(t, url), raw(t, url)
	applyLimits(t, l, nil, scoped(tenant("shop"), admission.Day, 10))
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from dispatcher.limits for update`); err != nil {
		t.Fatal(err)
	}
	var claim sync.WaitGroup
	var seen ledger.Seen
	claim.Go(func() {
		if seen, _, err = claimScoped(t, l, of("shop", 1), giveScoped(nil), shop...); err != nil {
			t.Error(err)
		}
	})
	for waiters(t, watcher) == 0 {
	}
	from := scalar[time.Time](t, watcher, `select clock_timestamp()`)
	to := scalar[time.Time](t, watcher, `select clock_timestamp()`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim.Wait()
	if seen.LockWait < to.Sub(from) || seen.Now.Before(to) {
		t.Errorf("waited %s, at least %s", seen.LockWait, to.Sub(from))
	}
}

func TestReleaseTimesTalliesAndReservesOutliveAClaim(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{limit(admission.Second, 100), limit(admission.Day, 100)})
	reserve := giveScoped(func(c *admission.Counter) {
		c.Reserve = []admission.Reserve{{Lane: "otp", Percent: 20}}
	})
	first, _, err := claimScoped(t, l, of("shop", 5), reserve)
	if err != nil {
		t.Fatal(err)
	}
	var shown []admission.Counter
	if _, _, err = claimScoped(t, l, of("shop", 1), func(s *ledger.Seen) (ledger.Decisions, error) {
		shown = slices.Clone(s.Channels[0].Gate.Counters)
		return ledger.Decisions{}, errStop
	}); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	was := first.Channels[0].Gate.Counters
	if shown[0].Next.Before(was[0].Next) || shown[0].Next.Sub(was[0].Next) > time.Microsecond ||
		shown[1].Taken["lane:otp"] != 5 {
		t.Errorf("stored next %s and tallies %v, decided %s", shown[0].Next, shown[1].Taken,
			was[0].Next)
	}
	if n := scalar[int](t, db,
		`select reserved from audit.limit_windows where window_seconds = 86400
			and next_at is null`); n != 15 {
		t.Errorf("%d reserved", n)
	}
	if n := scalar[int](t, db, `select count(*) from audit.limit_windows where window_seconds = 1
		and next_at > window_start`); n != 1 {
		t.Errorf("%d windows with a next release time", n)
	}
	// The window that is left keeps what was reserved in it.
	execute(t, db, `update dispatcher.limits set window_start = window_start - interval '1 day'
		where window_seconds = 86400`)
	if _, _, err := claimScoped(t, l, of("shop", 1), reserve); err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db, `select string_agg(granted || '/' || reserved, ' '
		order by window_start) from audit.limit_windows
		where window_seconds = 86400`); got != "5/15 1/19" {
		t.Errorf("days have granted/reserved %s", got)
	}
}

var errStop = errors.New("looked enough")

func TestClaimRefusesWhatDoesNotFitItsScopes(t *testing.T) {
	t.Parallel()
	l := open(t)
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 50), limit(admission.Second, 1000)},
		scoped(tenant("shop"), admission.Day, 20), budget(tenant("shop"), 1e9),
		scoped(prefix("+44"), admission.Day, 30))
	of := func(s *ledger.Seen, scope, counter int) *admission.Counter {
		return &s.Scoped[scope].Counters[counter]
	}
	for name, spoil := range map[string]func(*ledger.Seen, *ledger.Decisions){
		"nothing taken of the tenant": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Granted = 0
		},
		"too much taken of the tenant": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Granted++
		},
		"too little money": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 1).Granted--
		},
		"too much money": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 1).Granted++
		},
		"a prefix takes more than all": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 0, 0).Granted = 3
		},
		"a prefix gives back": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 0, 0).Granted = -1
		},
		"a scope's limit raised": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Limit.Max++
		},
		"a scope's window raised": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Max++
		},
		"a scope's counter dropped": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Scoped[1].Counters = nil
		},
		"a release time moved back": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Counters[0].Next = time.Time{}.Add(-1)
		},
		"a tally of more than was taken": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Taken = map[string]int64{"lane:otp": 3}
		},
		"units of a second of which nothing is known": func(s *ledger.Seen, _ *ledger.Decisions) {
			s.Channels[0].Gate.Counters[0].Taken = map[string]int64{"before": 1}
		},
		"a tally below nothing": func(s *ledger.Seen, _ *ledger.Decisions) {
			of(s, 1, 0).Taken = map[string]int64{"lane:otp": -1}
		},
		"granted past max": func(s *ledger.Seen, _ *ledger.Decisions) {
			c := of(s, 1, 0)
			c.Granted = c.Max + 1
		},
		"a ticket out of nowhere": func(s *ledger.Seen, d *ledger.Decisions) {
			ticket := admission.NewTicket(s.Now)
			d.Each[0].Attempt.Ticket = &ticket
			s.Channels[0].Gate.Active.Count--
		},
	} {
		// Not in parallel: whoever waits longer than maxSilence for a turn may not claim.
		t.Run(name, func(t *testing.T) {
			messages := batch(name, 2) // of tenant shop
			_, _, err := claimScoped(t, l, messages, func(s *ledger.Seen) (ledger.Decisions,
				error,
			) {
				d, err := giveScoped(nil)(s)
				spoil(s, &d)
				return d, err
			}, shop...)
			if refused := (*ledger.DecisionError)(nil); !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClaimRefusesATallyThatShrinks(t *testing.T) {
	t.Parallel()
	l := open(t)
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 50)})
	reserve := giveScoped(func(c *admission.Counter) {
		c.Reserve = []admission.Reserve{{Lane: "otp", Percent: 20}}
	})
	if _, _, err := claimScoped(t, l, of("shop", 5), reserve); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string]int64){
		"less": func(taken map[string]int64) { taken["lane:otp"] = 4 },
		"gone": func(taken map[string]int64) { delete(taken, "lane:otp") },
	} {
		_, _, err := claimScoped(t, l, of("shop", 1), func(s *ledger.Seen) (ledger.Decisions,
			error,
		) {
			d, err := reserve(s)
			spoil(s.Channels[0].Gate.Counters[0].Taken) // in place, as decide does
			return d, err
		})
		if refused := (*ledger.DecisionError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAPrefixTakesAnyPartOfTheBatch(t *testing.T) {
	t.Parallel()
	l := open(t)
	applyLimits(t, l, nil, scoped(prefix("+49"), admission.Day, 3))
	if _, sent := mustClaim(t, l, of("shop", 5), ledger.ScopeRef{Scope: prefix("+49")}); len(
		sent) != 5 {
		t.Errorf("%d sent", len(sent))
	}
}

// TestAClaimReadsTheLimitsOfItsScopesAlone, however many others there are, so that its cost depends
// only on them.
func TestAClaimReadsTheLimitsOfItsScopesAlone(t *testing.T) {
	t.Parallel()
	const touched = 10
	read := func(scopes int) int64 {
		url := ledgertest.Fresh(t)
		l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
		var limits []admission.Limit
		var refs []ledger.ScopeRef
		for i := range scopes {
			limits = append(limits, scoped(tenant(fmt.Sprintf("t%04d", i)), admission.Day, 100))
			if i < touched {
				refs = append(refs, ledger.ScopeRef{Scope: limits[i].Scope})
			}
		}
		applyLimits(t, l, []admission.Limit{limit(admission.Day, 100)}, limits...)
		execute(t, db, `analyze dispatcher.limits; select pg_stat_force_next_flush()`)
		rows := func(l *ledger.Ledger) int64 {
			l.Close() // a session has reported its statistics before it is gone
			for scalar[bool](t, db, `select exists (select from pg_stat_activity
				where datname = current_database() and backend_type = 'client backend'
				  and pid <> pg_backend_pid())`) {
				time.Sleep(5 * time.Millisecond)
			}
			return scalar[int64](t, db, `select coalesce(seq_tup_read + idx_tup_fetch, 0)
				from pg_stat_user_tables where relname = 'limits'`)
		}
		before := rows(l)
		l = connect(t, ledger.Config{URL: url, MaxConns: 1})
		mustClaim(t, l, of("t0000", 5), refs...)
		return rows(l) - before
	}
	few, many := read(touched), read(1000)
	// each is locked and updated at most
	if most := int64(2 * (touched + 1)); many > few || many > most {
		t.Errorf("a claim of %d scopes read %d limits of 10 and %d of 1000, want %d at most",
			touched, few, many, most)
	}
}

func TestALimitOfAScopeChangesInMidWindow(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	day := func(n int64) admission.Limit { return scoped(tenant("shop"), admission.Day, n) }
	claims := func(want int) {
		t.Helper()
		if _, sent := mustClaim(t, l, of("shop", 30), shop...); len(sent) != want {
			t.Fatalf("%d sent, want %d", len(sent), want)
		}
	}
	applyLimits(t, l, nil, day(10))
	claims(10)
	applyLimits(t, l, nil, day(4)) // lowered: what was granted stays
	claims(0)
	if got := granted(t, db); got != "tenant:shop 86400 messages 10 of 10" {
		t.Error(got)
	}
	applyLimits(t, l, nil, day(12)) // raised: at once
	claims(2)
	applyLimits(t, l, []admission.Limit{day(5)}) // now on channel a, another limit
	claims(5)
	if got := granted(t,
		db); got != "tenant:shop 86400 messages 12 of 12, a tenant:shop 86400 messages 5 of 5" {
		t.Error(got)
	}
	applyLimits(t, l, nil, day(15)) // back in the same window: it goes on where it stood
	claims(3)
	if got := granted(t,
		db); got != "tenant:shop 86400 messages 15 of 15, a tenant:shop 86400 messages 5 of 5" {
		t.Error(got)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.limits`); n != 1 {
		t.Errorf("%d limits", n)
	}
}

func TestALimitThatComesBackKeepsItsReleaseTimeAndTallies(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour)
	rig := lend(t)
	l, db := rig.l, rig.db
	on := []admission.Limit{limit(admission.Hour, 100)}
	sliding := giveScoped(func(c *admission.Counter) {
		c.Sliding, c.Burst, c.Reserve = true, 100, []admission.Reserve{{Lane: "otp", Percent: 20}}
	})
	applyLimits(t, l, on)
	if _, _, err := claimScoped(t, l, of("shop", 7), sliding); err != nil {
		t.Fatal(err)
	}
	const row = `select concat_ws(' ', next_at, taken, granted) from dispatcher.limits`
	was := scalar[string](t, db, row)
	applyLimits(t, l, on) // the same again
	if is := scalar[string](t, db, row); is != was {
		t.Errorf("from %s to %s", was, is)
	}
	applyLimits(t, l, nil)
	applyLimits(t, l, on)
	if is := scalar[string](t, db, row); is != was {
		t.Errorf("removed and added: from %s to %s", was, is)
	}
}

// TestASlidingLimitKeepsItsReleaseTimeIntoANewWindow: it has granted nothing in this window, and
// after a burst at the end of the window before there is no second burst.
func TestASlidingLimitKeepsItsReleaseTimeIntoANewWindow(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour)
	rig := lend(t)
	l, db := rig.l, rig.db
	on := []admission.Limit{limit(admission.Hour, 100)}
	applyLimits(t, l, on)
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('hour', now()), next_at = now() + interval '40 minutes',
		  pace = 36000000000`)
	const next = `select next_at from dispatcher.limits`
	was := scalar[time.Time](t, db, next)
	applyLimits(t, l, nil)
	applyLimits(t, l, on)
	if is := scalar[time.Time](t, db, next); !is.Equal(was) {
		t.Errorf("next at %s, and when it had been removed and added at %s", was, is)
	}
}

// TestALoweredLimitReservesNoMoreThanItHasLeft at once, not only from the next claim on.
func TestALoweredLimitReservesNoMoreThanItHasLeft(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 60)})
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('day', now()), granted = 48, reserved = 12`)
	for _, step := range []struct {
		most int64
		want string
	}{{70, "48 of 70, 12 reserved"}, {55, "48 of 55, 7 reserved"}, {20, "48 of 48, 0 reserved"}} {
		applyLimits(t, l, []admission.Limit{limit(admission.Day, step.most)})
		if got := scalar[string](t, db,
			`select granted || ' of ' || max || ', ' || reserved || ' reserved'
				from audit.limit_windows`); got != step.want {
			t.Errorf("a limit of %d: %s, want %s", step.most, got, step.want)
		}
	}
}

func TestApplyRoutingRefusesScopesThatCannotHold(t *testing.T) {
	t.Parallel()
	l := open(t)
	for name, n := range map[string]ledger.NewRouting{
		"over all and all": {Limits: []admission.Limit{limit(admission.Day, 1)}},
		"twice": {Limits: []admission.Limit{
			scoped(tenant("x"), admission.Day, 1),
			scoped(tenant("x"), admission.Day, 2),
		}},
		"twice on a channel": {Channels: []ledger.ChannelSpec{
			{Name: "a", Limits: []admission.Limit{budget(tenant("x"), 1), budget(tenant("x"), 2)}},
		}},
		"no currency": {Limits: []admission.Limit{
			{Scope: tenant("x"), Window: admission.Day, Max: 1, Unit: admission.Money},
		}},
		"currency": {Limits: []admission.Limit{
			{Scope: tenant("x"), Window: admission.Day, Max: 1, Currency: "GBP"},
		}},
		"negative": {Limits: []admission.Limit{scoped(tenant("x"), admission.Day, -1)}},
	} {
		n.Document = "routes: []"
		if _, err := l.Routing.Apply(t.Context(), n); err == nil {
			t.Errorf("%s was applied", name)
		}
	}
	applyLimits(t, l, []admission.Limit{
		limit(admission.Day, 1),
		{Window: admission.Day, Max: 1, Unit: admission.Segments},
		budget(admission.Scope{}, 1),
		scoped(tenant("x"), admission.Day, 1), scoped(tenant("y"), admission.Day, 1),
		scoped(prefix("x"), admission.Day, 1),
	})
}

func TestAWindowNeverGoesBackWithTheClock(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	tier.OneWindow(t, time.Minute)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{limit(admission.Minute, 5)},
		scoped(tenant("shop"), admission.Minute, 3))
	if _, sent := mustClaim(t, l, of("shop", 9), shop...); len(sent) != 3 {
		t.Fatalf("%d sent", len(sent))
	}
	// The rows come from a clock that was ten minutes ahead.
	execute(t, db, `update dispatcher.limits
		set window_start = window_start + interval '10 minutes'`)
	before := granted(t, db)
	if _, sent := mustClaim(t, l, of("shop", 9), shop...); len(sent) != 0 {
		t.Errorf("%d sent after the clock was set back", len(sent))
	}
	if after := granted(t, db); after != before {
		t.Errorf("from %s to %s", before, after)
	}
	back := func(s *ledger.Seen) (ledger.Decisions, error) {
		s.Scoped[1].Counters[0].Start = s.Now.Truncate(time.Minute)
		s.Scoped[1].Counters[0].Granted = 0
		return giveScoped(nil)(s)
	}
	if _, _, err := claimScoped(t, l, of("shop", 1), back, shop...); err == nil {
		t.Error("a window went back")
	}
}

// Eight claimers of two instances, each with other scopes of three tenants, run beside settlements
// that refund money and a routing that is applied repeatedly. Every limit holds exactly, and there
// is no deadlock.
func TestConcurrentClaimsOfOverlappingScopesAreExact(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	instances := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
	}
	again := func() {
		applyLimits(t, instances[0], []admission.Limit{
			limit(admission.Day, 600), scoped(tenant("t0"), admission.Day, 100),
		},
			scoped(tenant("t0"), admission.Day, 1000), scoped(tenant("t1"), admission.Day, 150),
			budget(tenant("t2"), 90*28000), scoped(prefix("+44"), admission.Day, 500))
	}
	again()
	rounds := tier.Size(4, 20)
	var workers sync.WaitGroup
	for worker := range 8 {
		l := instances[worker%2]
		workers.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("t%d", (worker+round)%3)
				messages := batch(fmt.Sprintf("%s-w%d-r%d", name, worker, round), 10)
				for i := range messages {
					messages[i].Tenant = name
				}
				_, sent, err := claimScoped(t, l, messages, giveScoped(nil), ledger.ScopeRef{
					Scope: prefix("+44"),
				},
					ledger.ScopeRef{Scope: tenant(name)}, ledger.ScopeRef{
						Channel: "a", Scope: tenant(name),
					})
				if err == nil {
					err = l.Settlements.Settle(t.Context(), refunding(sent, 14000))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range rounds {
		again() // the same routing comes once more
	}
	workers.Wait()
	if got := amiss(t, db, always...); got != "" {
		t.Error(got)
	}
	for sql, want := range map[string]int64{
		`select count(*) from audit.active where active <> 0`: 0,
		`select granted from audit.limit_windows where channel = 'a'
			and scope = 'channel'`: scalar[int64](t, db, `select count(*) from dispatcher.all_attempts`),
		`select granted from audit.limit_windows where channel = ''
			and scope = 'tenant:t1'`: scalar[int64](t, db, `select count(*) from audit.attempts where message_id like 't1-%'`),
		`select granted from audit.limit_windows
			where unit = 'money'`: scalar[int64](t, db, `select count(*) * 14000 from audit.attempts where message_id like 't2-%'`),
		`select granted from audit.limit_windows where channel = 'a'
			and scope = 'tenant:t0'`: scalar[int64](t, db, `select count(*) from audit.attempts where message_id like 't0-%'`),
		`select granted from audit.limit_windows where scope = 'prefix:+44'`: scalar[int64](t, db,
			`select count(*) from dispatcher.all_attempts`),
	} {
		if got := scalar[int64](t, db, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

// refunding settles attempts as accepted at 28000 micros minus a refund to tenant t2.
func refunding(sent []ledger.Message, back int64) []ledger.Settlement {
	settlements := accepted(sent)
	for i := range settlements {
		settlements[i].PriceMicros -= back
		settlements[i].Refunds = []ledger.Refund{
			{ScopeRef: ledger.ScopeRef{Scope: tenant("t2")}, Window: admission.Day, Micros: back},
		}
		if sent[i].Tenant != "t2" {
			settlements[i].Refunds = nil
		}
	}
	return settlements
}

func TestWaitsAreKeptWithTheMessage(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	waits := []ledger.Wait{{Reason: "no_slot", On: "alpha", For: 11900 * time.Millisecond}, {
		Reason: "tenant_limit", On: "alpha tenant:shop", For: 1234567 * time.Microsecond,
	}, {Reason: "throttled", For: time.Second}}
	look := func(d ledger.Decision) (m ledger.Message, now time.Time) {
		t.Helper()
		c := ledger.Claim{Due: 1, Channels: []string{"a"}}
		if r := scalar[int](t, db, `select count(*) from dispatcher.messages`); r == 0 {
			c = ledger.Claim{Messages: batch("m", 1), Channels: []string{"a"}}
		}
		execute(t, db, `update dispatcher.messages set next_at = now() where state = 'waiting'`)
		err := runClaim(t.Context(), l, c, func(s *ledger.Seen) (ledger.Decisions, error) {
			m, now = s.Messages[0], s.Now
			if d.State == ledger.Sending {
				s.Channels[0].Gate.Active.Count++
				d.Attempt = ledger.Attempt{
					Number: 1, Channel: "a", Reason: ledger.ByFirstChoice,
					Segments: 1, Currency: "GBP",
				}
			} else {
				d.NextAt = s.Now.Add(time.Minute)
			}
			return ledger.Decisions{Each: []ledger.Decision{d}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return m, now
	}
	_, first := look(ledger.Decision{State: ledger.Waiting, Reason: "no_slot", WaitsFor: "alpha"})
	m, second := look(ledger.Decision{State: ledger.Waiting, Reason: "throttled", Waits: waits[:1]})
	if !m.WaitingSince.Equal(first) || m.WaitsFor != "alpha" || m.Waits != nil {
		t.Errorf("since %s for %q, %v", m.WaitingSince, m.WaitsFor, m.Waits)
	}
	// keeps the waits
	m, third := look(ledger.Decision{State: ledger.Waiting, Reason: "throttled", WaitsFor: "beta"})
	if !m.WaitingSince.Equal(second) || m.WaitsFor != "" || !slices.Equal(m.Waits, waits[:1]) {
		t.Errorf("since %s for %q, %v", m.WaitingSince, m.WaitsFor, m.Waits)
	}
	m, _ = look(ledger.Decision{State: ledger.Sending, Waits: waits})
	if !m.WaitingSince.Equal(third) || m.WaitsFor != "beta" {
		t.Errorf("since %s for %q", m.WaitingSince, m.WaitsFor)
	}
	r, err := l.Messages.Record(t.Context(), "m-00000")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(waits, r.Message.Waits, cmpopts.EquateEmpty()); diff != "" ||
		!r.Message.WaitingSince.IsZero() || r.Message.WaitsFor != "" {
		t.Errorf("%s\nsince %s for %q", diff, r.Message.WaitingSince, r.Message.WaitsFor)
	}
}

// TestALimitMayComeAndGoWithoutBeingUsed: a sliding limit that came back in a later window is
// removed before anything was claimed. Its release time is in the history already.
func TestALimitMayComeAndGoWithoutBeingUsed(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour)
	rig := lend(t)
	l, db := rig.l, rig.db
	apply := func(limits ...admission.Limit) {
		t.Helper()
		if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "test", Document: "routes: []", Channels: []ledger.ChannelSpec{
				{Name: "a", Limits: limits},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	on := limit(admission.Hour, 100)
	apply(on)
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('hour', now()), granted = 5,
		  next_at = now() + interval '40 minutes', pace = 36000000000`)
	apply()
	// the next hour has begun
	execute(t, db, `update dispatcher.limit_history
		set window_start = window_start - interval '1 hour'`)
	for range 2 {
		apply(on)
		apply()
	}
	if got := scalar[string](t, db,
		`select string_agg(granted::text, ' ') from dispatcher.limit_history`); got != "5" {
		t.Errorf("the history holds windows with %s", got)
	}
}

package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// applyToday is applyLimits of a document whose days begin in a zone.
func applyToday(
	t testing.TB, l *ledger.Ledger, zone *time.Location, onA []admission.Limit,
	overAll ...admission.Limit,
) {
	t.Helper()
	_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: "routes: []", Limits: overAll, Zone: zone,
		Channels: []ledger.ChannelSpec{{Name: "a", Limits: onA}, {Name: "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// worn claims 4 messages of tenant shop with two segments each and 3 of tenant bank, all on channel
// a, at 28000 micros. Of the shop's, one was refused, half of one was billed, and two are open.
func worn(t *testing.T) (l *ledger.Ledger, db *pgx.Conn) {
	t.Helper()
	rig := lend(t)
	l, db = rig.l, rig.db
	applyToday(t, l, time.UTC, nil)
	messages := of("shop", 4)
	for i := range messages {
		messages[i].Plan.Segments = 2
	}
	_, sent := mustClaim(t, l, messages)
	mustClaim(t, l, of("bank", 3))
	s := accepted(sent[:2])
	s[0].Outcome, s[0].Segments, s[0].PriceMicros, s[0].State = provider.Refused, 0, 0,
		ledger.Failed
	s[1].PriceMicros = 14000
	settleAll(t, l, s)
	return l, db
}

func TestALimitThatIsAddedBeginsWithWhatWasClaimed(t *testing.T) {
	t.Parallel()
	l, db := worn(t)
	euros := budget(tenant("bank"), 1e6)
	euros.Currency = "EUR"
	applyToday(t, l, time.UTC,
		[]admission.Limit{limit(admission.Day, 100), {
			Window: admission.Day, Max: 5,
			Unit: admission.Segments,
		}, scoped(tenant("shop"), admission.Day, 100)},
		budget(tenant("shop"), 1e6), euros, scoped(tenant("bank"), admission.Day, 2),
		scoped(tenant("nobody"), admission.Day, 9), scoped(prefix("+44"), admission.Day, 9))
	want := "prefix:+44 86400 messages 7 of 9, tenant:bank 86400 messages 3 of 3, tenant:shop " +
		"86400 money 70000 of 1000000 GBP, " +
		"a channel 86400 messages 7 of 100, a channel 86400 segments 10 of 10, a tenant:shop " +
		"86400 messages 4 of 100"
	if got := granted(t, db); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, sent := mustClaim(t, l, of("bank", 1), ledger.ScopeRef{Scope: tenant("bank")}); len(
		sent) != 0 {
		t.Error("a message was sent beyond what had been claimed")
	}
}

// TestALimitOfAPrefixThatIsAddedBeginsWithWhatWasClaimedForIt, and with messages whose number
// PostgreSQL cannot read, because it may have had the prefix. Here U+0000 is elsewhere in the
// envelope.
func TestALimitOfAPrefixThatIsAddedBeginsWithWhatWasClaimedForIt(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyToday(t, l, time.UTC, nil)
	to := func(channel, envelope string, n int) {
		t.Helper()
		messages := of("shop", n)
		for i := range messages {
			messages[i].Plan.Segments, messages[i].Envelope = 2, []byte(envelope)
		}
		claimAll(t, l, messages, channel)
	}
	to("a", `{"to":"+447700900123"}`, 4)
	to("a", `{"to":"+442079460000"}`, 2)
	to("a", `{"to":"\u002b4915112345678"}`, 3)
	to("a", `{"metadata":{"k":"\u0000"},"to":"+33612345678"}`, 1)
	to("b", `{"to":"+447700900124"}`, 5)
	segments := admission.Limit{
		Scope: prefix("+447"), Window: admission.Day, Max: 100,
		Unit: admission.Segments,
	}
	applyToday(t, l, time.UTC,
		[]admission.Limit{
			scoped(prefix("+44"), admission.Day, 100), segments,
			scoped(prefix("+49"), admission.Day, 2),
		},
		scoped(prefix("+447"), admission.Day, 100), budget(prefix("+4"), 1e6))
	want := "prefix:+4 86400 money 420000 of 1000000 GBP, prefix:+447 86400 messages 10 of 100, " +
		"a prefix:+44 86400 messages 7 of 100, a prefix:+447 86400 segments 10 of 100, a " +
		"prefix:+49 86400 messages 4 of 4"
	if got := granted(t, db); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestALimitInAnotherCurrencyIsAnotherLimit: what was granted in one currency is not counted in the
// other, and counts again when the first currency comes back in the same window.
func TestALimitInAnotherCurrencyIsAnotherLimit(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	in := func(currency string) (channel, numbers admission.Limit) {
		channel, numbers = budget(admission.Scope{}, 100_000), budget(prefix("+44"), 1e6)
		channel.Currency, numbers.Currency = currency, currency
		return channel, numbers
	}
	apply := func(currency string) {
		t.Helper()
		channel, numbers := in(currency)
		applyToday(t, l, time.UTC, []admission.Limit{channel, numbers})
	}
	expect := func(when, want string) {
		t.Helper()
		if got := granted(t, db); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", when, got, want)
		}
	}
	apply("GBP")
	if _, sent := mustClaim(t, l, of("shop", 3), ledger.ScopeRef{
		Channel: "a", Scope: prefix("+44"),
	}); len(sent) != 3 {
		t.Fatalf("%d sent", len(sent))
	}
	before := "a channel 86400 money 84000 of 100000 GBP, a prefix:+44 86400 money 84000 of " +
		"1000000 GBP"
	expect("in pounds", before)
	apply("EUR")
	if free := scalar[int64](t, db,
		`select sum(granted)::bigint from dispatcher.limits`); free != 0 {
		t.Errorf("%d of the limits in euros are granted", free)
	}
	expect("in euros", before) // they have granted nothing yet
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('day', now() at time zone 'utc') at time zone 'utc',
		  granted = 5`)
	apply("GBP")
	if got := scalar[string](t, db,
		`select string_agg(granted || ' ' || currency, ', ')
			from dispatcher.limits`); got != "84000 GBP, 84000 GBP" {
		t.Errorf("back in pounds: %s", got)
	}
	if got := scalar[string](t, db,
		`select string_agg(granted || ' ' || currency, ', ')
			from dispatcher.limit_history`); got != "5 EUR, 5 EUR" {
		t.Errorf("of the euros there are on record %s", got)
	}
	// The window that had both is left like any other.
	execute(t, db, `update dispatcher.limits set window_start = window_start - interval '1 day'`)
	execute(t, db, `update dispatcher.limit_history
		set window_start = window_start - interval '1 day'`)
	mustClaim(t, l, of("shop", 1), ledger.ScopeRef{Channel: "a", Scope: prefix("+44")})
	if got := scalar[int64](t, db, `select count(*) from dispatcher.limit_history`); got != 4 {
		t.Errorf("%d windows are on record, want 2 in each currency", got)
	}
}

func TestALimitThatComesBackKnowsWhatWasClaimedMeanwhile(t *testing.T) {
	t.Parallel()
	l, db := worn(t)
	on := []admission.Limit{limit(admission.Day, 100), scoped(prefix("+44"), admission.Day, 100)}
	applyToday(t, l, time.UTC, on)
	mustClaim(t, l, of("shop", 2), ledger.ScopeRef{Channel: "a", Scope: prefix("+44")})
	applyToday(t, l, time.UTC, nil)
	mustClaim(t, l, of("shop", 5))
	applyToday(t, l, time.UTC, on)
	if got, want := granted(t, db),
		"a channel 86400 messages 14 of 100, a prefix:+44 86400 messages 14 of 100"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOnlyTheRunningWindowIsCounted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Pacific/Auckland", "Pacific/Honolulu"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			l, db := worn(t)
			midnight := admission.Day.Start(scalar[time.Time](t, db, `select clock_timestamp()`),
				zone)
			execute(t, db, ledgertest.StoreOpen)
			execute(t, db, `update dispatcher.attempts
				set claimed_at = $1::timestamptz - interval '1 microsecond'
				where message_seq % 2 = 0`, midnight)
			execute(t, db, `update dispatcher.attempts set claimed_at = $1
				where message_seq % 2 = 1`, midnight)
			applyToday(t, l, zone, []admission.Limit{
				limit(admission.Day, 100), limit(admission.Second, 100),
			})
			left := scalar[int](t, db,
				`select count(*) from dispatcher.all_attempts where message_seq % 2 = 1`)
			if got, want := granted(t, db), fmt.Sprintf("a channel 86400 messages %d of 100",
				left); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if start := scalar[time.Time](t, db,
				`select window_start from audit.limit_windows`); !start.Equal(midnight) {
				t.Errorf("the day began at %s, want %s", start, midnight)
			}
		})
	}
}

// onCounted calls a function after each count of what was claimed.
func onCounted(call func()) afterQuery { return afterQuery{"sum(a.price_micros)", call} }

// afterQuery calls a function after each query that contains a text.
type afterQuery struct {
	part string
	call func()
}

type queried struct{}

func (a afterQuery) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData,
) context.Context {
	return context.WithValue(ctx, queried{}, strings.Contains(q.SQL, a.part))
}

func (a afterQuery) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(queried{}) == true {
		a.call()
	}
}

// One claim has read the clock and not committed during the first count, and another one comes
// between counting and locking. Both are counted once.
func TestNoClaimSlipsBetweenCountingAndLocking(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	other, db := rig.l, rig.db
	applyToday(t, other, time.UTC, nil)
	mustClaim(t, other, of("shop", 2))
	deciding, goOn := make(chan struct{}), make(chan struct{})
	var claim sync.WaitGroup
	claim.Go(func() {
		_, _, err := claimScoped(t, other, of("shop", 3), func(s *ledger.Seen) (ledger.Decisions,
			error,
		) {
			close(deciding)
			<-goOn
			return giveScoped(nil)(s)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-deciding
	counts := 0
	applier := connect(t, ledger.Config{URL: rig.url, Tracer: onCounted(func() {
		if counts++; counts == 1 {
			close(goOn)
			claim.Wait()
			mustClaim(t, other, of("shop", 4))
		}
	})})
	applyToday(t, applier, time.UTC, []admission.Limit{limit(admission.Day, 100)},
		scoped(tenant("shop"), admission.Day, 100))
	if got, want := granted(t, db),
		"tenant:shop 86400 messages 9 of 100, a channel 86400 messages 9 of 100"; got != want ||
		counts != 2 {
		t.Errorf("got  %s after %d counts\nwant %s", got, counts, want)
	}
}

// TestADayThatBeginsWhileItIsCountedHasOnlyWhatWasClaimedInIt: midnight comes between counting and
// locking.
func TestADayThatBeginsWhileItIsCountedHasOnlyWhatWasClaimedInIt(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	other, db := rig.l, rig.db
	applyToday(t, other, time.UTC, nil)
	zone := dayBegan(t, db, 24*time.Hour-3*time.Second)
	midnight := admission.Day.End(scalar[time.Time](t, db, `select clock_timestamp()`), zone)
	mustClaim(t, other, of("shop", 3))
	execute(t, db, ledgertest.StoreOpen)
	execute(t, db, `update dispatcher.attempts
		set claimed_at = $1::timestamptz - interval '1 minute'`, midnight)
	counts := 0
	applier := connect(t, ledger.Config{URL: rig.url, Tracer: onCounted(func() {
		if counts++; counts == 1 {
			for scalar[bool](t, db, `select clock_timestamp() < $1 and pg_sleep(0.005) is not null`,
				midnight) {
			}
			mustClaim(t, other, of("shop", 2))
		}
	})})
	applyToday(t, applier, zone, []admission.Limit{limit(admission.Day, 100)})
	if got, want := granted(t, db), "a channel 86400 messages 2 of 100"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if start := scalar[time.Time](t, db,
		`select window_start from audit.limit_windows`); !start.Equal(midnight) {
		t.Errorf("the day began at %s, want %s", start, midnight)
	}
}

func TestAWindowThatIsOverKeepsTheMaximumThatHeldInIt(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour)
	rig := lend(t)
	l, db := rig.l, rig.db
	on := func(most int64) []admission.Limit {
		return []admission.Limit{limit(admission.Hour, most), limit(admission.Day, most)}
	}
	past := func() {
		execute(t, db, `update dispatcher.limits
			set window_start = window_start - interval '1 day'`)
		execute(t, db, `update dispatcher.limit_history
			set window_start = window_start - interval '1 day'`)
		execute(t, db, ledgertest.StoreOpen)
		execute(t, db, `update dispatcher.attempts set claimed_at = claimed_at - interval '1 day'`)
	}
	const all = `select coalesce(string_agg(granted || '/' || max, ' ' order by window_start), '')
		from audit.limit_windows where window_seconds = $1 and granted > 0`
	expect := func(what, hours, days string) {
		t.Helper()
		if got := scalar[string](t, db, all, 3600); got != hours {
			t.Errorf("%s: hours are %s, want %s", what, got, hours)
		}
		if got := scalar[string](t, db, all, 86400); got != days {
			t.Errorf("%s: days are %s, want %s", what, got, days)
		}
	}
	applyToday(t, l, time.UTC, on(10))
	mustClaim(t, l, of("shop", 5))
	past()
	applyToday(t, l, time.UTC, on(20))
	expect("raised", "5/10", "5/10")
	if _, sent := mustClaim(t, l, of("shop", 30)); len(sent) != 20 {
		t.Errorf("%d sent in the new window", len(sent))
	}
	past()
	applyToday(t, l, time.UTC, on(3))
	expect("lowered", "5/10 20/20", "5/10 20/20")
	applyToday(t, l, time.UTC, nil)
	applyToday(t, l, time.UTC, on(40))
	expect("removed and added", "5/10 20/20", "5/10 20/20")
	mustClaim(t, l, of("shop", 7))
	past()
	applyToday(t, l, time.UTC, nil)
	applyToday(t, l, time.UTC, on(1))
	expect("removed when it was over", "5/10 20/20 7/40", "5/10 20/20 7/40")
	mustClaim(t, l, of("shop", 1))
	past()
	applyToday(t, l, nil, on(50)) // nobody knows when a day begins: the next claim closes it
	expect("without a zone", "5/10 20/20 7/40 1/1", "5/10 20/20 7/40 1/50")
}

// The query of docs/audit.md runs over minutes in which limits were added, in which limits were
// removed, and in which neither was.
func TestCountersAgreeWithAttemptsWhereTheLimitHeldThroughout(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	tier.OneWindow(t, time.Minute)
	l, db := rig.l, rig.db
	on := []admission.Limit{limit(admission.Minute, 100)}
	past := func() {
		for _, sql := range []string{
			ledgertest.StoreOpen,
			`update dispatcher.limits
				set window_start = window_start - interval '1 minute',
				  since = since - interval '1 minute'`,
			`update dispatcher.limit_history
				set window_start = window_start - interval '1 minute',
				  since = since - interval '1 minute', until = until - interval '1 minute'`,
			`update dispatcher.attempts set claimed_at = claimed_at - interval '1 minute'`,
		} {
			execute(t, db, sql)
		}
	}
	const wrong = `
		select count(*) from (
		  select w.window_start, w.max, w.granted, count(a.claimed_at) as claimed
		  from audit.limit_windows w
		  left join audit.attempts a on a.channel = w.channel and a.claimed_at >= w.window_start
		    and a.claimed_at < w.window_start + interval '1 minute'
		  where w.scope = 'channel' and w.window_seconds = 60 and w.unit = 'messages'
		    and w.until is null
		  group by w.channel, w.window_start, w.max, w.granted
		  having w.granted <> count(a.claimed_at)) w`
	applyToday(t, l, time.UTC, nil)
	mustClaim(t, l, of("shop", 2))
	applyToday(t, l, time.UTC, on) // added: what was claimed before is counted
	mustClaim(t, l, of("shop", 3))
	past()
	mustClaim(t, l, of("shop", 4))
	past()
	mustClaim(t, l, of("shop", 5))
	applyToday(t, l, time.UTC, nil)
	mustClaim(t, l, of("shop", 1)) // nobody counts this one
	past()
	mustClaim(t, l, of("shop", 6))
	if n := scalar[int](t, db, wrong); n != 0 {
		t.Errorf("%d windows differ from the attempts:\n%s", n, granted(t, db))
	}
	const marks = `select string_agg(granted || case when since > window_start then ' added'
		else '' end
		|| case when until is null then '' else ' removed' end, ', ' order by window_start)
		from audit.limit_windows`
	if got, want := scalar[string](t, db, marks), "5 added, 4, 5 removed"; got != want {
		t.Errorf("windows are %s, want %s", got, want)
	}
}

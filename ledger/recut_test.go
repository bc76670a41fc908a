package ledger_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// dayBegan is a time zone in which the running day began so long ago, to within a second.
func dayBegan(t *testing.T, db *pgx.Conn, ago time.Duration) *time.Location {
	t.Helper()
	now := scalar[time.Time](t, db, `select clock_timestamp()`).UTC()
	zone := time.FixedZone("test", int((ago - now.Sub(now.Truncate(24*time.Hour))).Seconds()))
	if began := now.Sub(admission.Day.Start(now, zone)); (began - ago).Abs() > time.Second {
		t.Fatalf("the day began %s ago", began)
	}
	return zone
}

// cut is a ledger whose limits of a day were in force in one zone.
type cut struct {
	t    *testing.T
	l    *ledger.Ledger
	db   *pgx.Conn
	zone *time.Location
}

// claim claims n messages of two segments in a zone, and returns how many were sent. Then so much
// time passes.
func (c *cut) claim(zone *time.Location, n int, passes time.Duration) (sent int) {
	c.t.Helper()
	messages := of("shop", n)
	for i := range messages {
		messages[i].Plan.Segments = 2
	}
	scopes := []ledger.ScopeRef{{Scope: tenant("shop")}, {Channel: "a", Scope: prefix("+44")}}
	_, all, err := claimScoped(c.t, c.l, messages, giveIn(zone, nil), scopes...)
	if err != nil {
		c.t.Fatal(err)
	}
	execute(c.t, c.db, ledgertest.StoreOpen)
	execute(c.t, c.db, `update dispatcher.attempts set claimed_at = claimed_at - $1::interval`,
		passes)
	return len(all)
}

// granted is what the limits have granted in the day that began so long ago.
func (c *cut) granted(ago time.Duration) string {
	c.t.Helper()
	return scalar[string](c.t, c.db, `
		select coalesce(string_agg(concat_ws(' ', split_part(scope, ':', 1), unit, granted, 'of',
		  max), ', ' order by channel, scope, unit), '')
		from dispatcher.limits where abs(extract(epoch
		from now() - window_start) - $1) < 60`, ago.Seconds())
}

// cutAt claims 3, 2, 1 and 1 messages, about 5 hours ago, 1 hour ago, 10 minutes ago and now, the
// last two under limits.
func cutAt(t *testing.T, ago time.Duration) *cut {
	t.Helper()
	rig := lend(t)
	c := &cut{t: t, l: rig.l, db: rig.db}
	applyToday(t, c.l, time.UTC, nil)
	c.claim(time.UTC, 3, 4*time.Hour)
	c.claim(time.UTC, 2, time.Hour)
	c.zone = dayBegan(t, c.db, ago)
	c.apply(c.zone, 7)
	c.claim(c.zone, 1, 10*time.Minute)
	c.claim(c.zone, 1, 0)
	return c
}

// apply applies limits of a day, one of them of "most" messages.
func (c *cut) apply(zone *time.Location, most int64) {
	c.t.Helper()
	applyToday(c.t, c.l, zone, []admission.Limit{
		limit(admission.Day, most),
		{Window: admission.Day, Max: 100, Unit: admission.Segments},
		scoped(prefix("+44"), admission.Day, 50),
	}, budget(tenant("shop"), 1e6))
}

// TestADayThatIsCutAnewCountsWhatWasClaimedInIt: a new zone does not grant a limit twice in one
// day.
func TestADayThatIsCutAnewCountsWhatWasClaimedInIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after time.Duration // how long ago the day began
		most          int64
		want          string
		sent          int
	}{
		"it began a while ago": {
			10 * time.Hour, 2 * time.Hour, 7,
			"tenant money 112000 of 1000000, channel messages 4 of 7, channel segments 8 of " +
				"100, prefix messages 4 of 50", 3,
		},
		"it began a moment ago": {
			10 * time.Hour, time.Minute, 7,
			"tenant money 28000 of 1000000, channel messages 1 of 7, channel segments 2 of 100, " +
				"prefix messages 1 of 50", 6,
		},
		"it has more than it may have": {
			10 * time.Hour, 2 * time.Hour, 3,
			"tenant money 112000 of 1000000, channel messages 4 of 4, channel segments 8 of " +
				"100, prefix messages 4 of 50", 0,
		},
		"it began before": {
			30 * time.Minute, 2 * time.Hour, 7,
			"tenant money 112000 of 1000000, channel messages 4 of 7, channel segments 8 of " +
				"100, prefix messages 4 of 50", 3,
		},
		"it began before all of it": {
			30 * time.Minute, 20 * time.Hour, 7,
			"tenant money 196000 of 1000000, channel messages 7 of 7, channel segments 14 of " +
				"100, prefix messages 7 of 50", 0,
		},
		"it is the same": {
			10 * time.Hour, 10 * time.Hour, 7,
			"tenant money 196000 of 1000000, channel messages 7 of 7, channel segments 14 of " +
				"100, prefix messages 7 of 50", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cutAt(t, test.before)
			zone := dayBegan(t, c.db, test.after)
			for range 2 { // twice has the effect of once
				c.apply(zone, test.most)
				if got := c.granted(test.after); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			}
			if sent := c.claim(zone, 10, 0); sent != test.sent {
				t.Errorf("%d more were sent, want %d", sent, test.sent)
			}
		})
	}
}

// TestADayMayBeCutBackAndForth: each time it counts everything that was claimed in it, even more
// than its limit, and no window is in the history twice.
func TestADayMayBeCutBackAndForth(t *testing.T) {
	t.Parallel()
	c := cutAt(t, 10*time.Hour)
	const began, later, last = 10 * time.Hour, 2 * time.Hour, 30 * time.Minute
	for _, ago := range []time.Duration{later, last, began, last, later, last, began, later} {
		c.apply(dayBegan(t, c.db, ago), 5)
		const onA = `select granted from dispatcher.limits where scope = 'channel'
			and unit = 'messages'`
		if got, want := scalar[int](t, c.db, onA), map[time.Duration]int{
			began: 7, later: 4, last: 2,
		}[ago]; got != want {
			t.Errorf("since %s: %d, want %d", ago, got, want)
		}
		const twice = `select count(*) from dispatcher.limit_history h
			join dispatcher.limits l using (channel, scope, window_seconds, unit)
			where h.window_start >= l.window_start`
		if n := scalar[int](t, c.db, twice); n != 0 {
			t.Errorf("since %s: %d windows are on record that are not over", ago, n)
		}
	}
}

// TestALimitThatComesBackInADayThatIsCutAnewCountsAllOfIt: the limit was removed while the day
// began later.
func TestALimitThatComesBackInADayThatIsCutAnewCountsAllOfIt(t *testing.T) {
	t.Parallel()
	c := cutAt(t, 10*time.Hour)
	for _, ago := range []time.Duration{2 * time.Hour, 30 * time.Minute} {
		c.apply(dayBegan(t, c.db, ago), 7)
	}
	applyToday(t, c.l, dayBegan(t, c.db, 30*time.Minute), nil)
	for _, ago := range []time.Duration{2 * time.Hour, 10 * time.Hour} {
		zone := dayBegan(t, c.db, ago)
		c.apply(zone, 7)
		if got, want := c.granted(ago), map[time.Duration]string{
			2 * time.Hour: "tenant money 112000 of 1000000, channel messages 4 of 7, channel " +
				"segments 8 of 100, prefix messages 4 of 50",
			10 * time.Hour: "tenant money 196000 of 1000000, channel messages 7 of 7, channel " +
				"segments 14 of 100, prefix messages 7 of 50",
		}[ago]; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		const twice = `select count(*) from dispatcher.limit_history h
			join dispatcher.limits l using (channel, scope, window_seconds, unit)
			where h.window_start >= l.window_start`
		if n := scalar[int](t, c.db, twice); n != 0 {
			t.Errorf("since %s: %d windows are on record that are not over", ago, n)
		}
	}
}

// TestNoDayIsCutAnewThatStaysOrWasNotOpened, nor one in the future, because then the clock has gone
// back.
func TestNoDayIsCutAnewThatStaysOrWasNotOpened(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	counts := 0
	c := &cut{t: t, l: connect(t, ledger.Config{URL: url, Tracer: onCounted(func() {
		counts++
	})}), db: raw(t, url)}
	c.apply(dayBegan(t, c.db, time.Hour), 7)
	zone := dayBegan(t, c.db, 10*time.Hour)
	counts = 0
	c.apply(zone, 7)
	if got := granted(t, c.db); got != "" {
		t.Errorf("it was not there before: %s", got)
	}
	c.claim(zone, 2, 0)
	c.apply(zone, 7)
	if counts != 0 {
		t.Errorf("it was counted %d times", counts)
	}
	execute(t, c.db, `update dispatcher.limits
		set window_start = now() + interval '1 hour', granted = 1`)
	c.apply(zone, 7)
	const ahead = `select count(*) from dispatcher.limits where window_start > now()
		and granted = 1`
	if n := scalar[int](t, c.db, ahead); n != 4 || counts != 0 {
		t.Errorf("%d of 4 windows are as they were, after %d counts", n, counts)
	}
}

// TestAWindowThatIsOverIsNotCutShort: what it granted does not count in the next window, and its
// end in the history is its own.
func TestAWindowThatIsOverIsNotCutShort(t *testing.T) {
	t.Parallel()
	c := cutAt(t, 10*time.Hour)
	execute(t, c.db, `update dispatcher.limits set window_start = window_start - interval '1 day'`)
	execute(t, c.db, ledgertest.StoreOpen)
	execute(t, c.db, `update dispatcher.attempts set claimed_at = claimed_at - interval '1 day'`)
	if _, sent, err := claimScoped(t, c.l, of("bank", 2), giveIn(c.zone, nil)); err != nil ||
		len(sent) != 2 {
		t.Fatalf("%d sent, %v", len(sent), err)
	}
	c.apply(c.zone, 7)
	want := "tenant money 0 of 1000000, channel messages 2 of 7, channel segments 2 of 100, " +
		"prefix messages 0 of 50"
	if got := c.granted(10 * time.Hour); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := scalar[int](t, c.db,
		`select count(*) from dispatcher.limit_history where until is null`); n != 4 {
		t.Errorf("%d of 4 windows came to their end", n)
	}
}

// TestAWindowThatIsCutShortIsOnRecordAsSuch: the history has what it granted, and when it was cut.
func TestAWindowThatIsCutShortIsOnRecordAsSuch(t *testing.T) {
	t.Parallel()
	c := cutAt(t, 10*time.Hour)
	c.apply(dayBegan(t, c.db, 2*time.Hour), 7)
	const left = `select concat_ws(' ', granted, 'of', max, case when until <= now() then 'cut' end)
		from dispatcher.limit_history where scope = 'channel' and unit = 'messages'`
	if got := scalar[string](t, c.db, left); got != "7 of 7 cut" {
		t.Error(got)
	}
}

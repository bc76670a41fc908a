package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// clockWasAhead changes everything that was claimed so far as if the database's clock had been two
// days ahead then.
func clockWasAhead(t testing.TB, db *pgx.Conn) {
	t.Helper()
	for _, sql := range []string{
		`update dispatcher.limits
			set window_start = window_start + interval '2 days',
			  next_at = next_at + interval '2 days', since = since - interval '1 day'`,
		`update dispatcher.limit_history set window_start = window_start + interval '2 days'`,
		`update dispatcher.attempts set claimed_at = claimed_at + interval '2 days'`,
	} {
		execute(t, db, sql)
	}
}

// bounded opens a ledger with limits on channel a and over all channels, in UTC, and a second
// connection.
func bounded(
	t testing.TB, onA []admission.Limit, overAll ...admission.Limit,
) (*ledger.Ledger, *pgx.Conn) {
	t.Helper()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyToday(t, l, time.UTC, onA, overAll...)
	return l, db
}

// restarted restarts the window of a limit of channel a, or of one over all channels.
func restarted(
	t testing.TB, l *ledger.Ledger, channel string, limit admission.Limit,
) (ledger.Restarted, error) {
	t.Helper()
	return l.Limits.RestartWindow(t.Context(), ledger.Restart{
		Channel: channel, Limit: limit,
		Zone: time.UTC, Author: "ann", Reason: "the clock was wrong",
	})
}

// TestALimitThatWasAheadGoesOnWithTheWindowOfNow, and counts what was claimed in it, also while the
// clock was ahead.
func TestALimitThatWasAheadGoesOnWithTheWindowOfNow(t *testing.T) {
	t.Parallel()
	day := limit(admission.Day, 9)
	segments := admission.Limit{
		Window: admission.Day, Max: 5, Unit: admission.Segments,
	}
	mine, money, theirs := scoped(tenant("shop"), admission.Day, 100), budget(tenant("shop"), 1e6),
		scoped(prefix("+44"), admission.Day, 100)
	l, db := bounded(t, []admission.Limit{day, segments, mine, theirs}, money)
	refs := []ledger.ScopeRef{{Channel: "", Scope: tenant("shop")}, {
		Channel: "a", Scope: prefix("+44"),
	}, {Channel: "a", Scope: tenant("shop")}}
	mustClaim(t, l, of("shop", 3), refs...)
	clockWasAhead(t, db)
	for _, on := range []struct {
		channel string
		limit   admission.Limit
		granted int64
	}{{"a", day, 3}, {"a", segments, 3}, {"a", mine, 3}, {"a", theirs, 3}, {"", money, 3 * 28000}} {
		done, err := restarted(t, l, on.channel, on.limit)
		if err != nil || done.Now.Granted != on.granted ||
			!done.Was.Start.After(done.At.Add(24*time.Hour)) {
			t.Errorf("%s: %+v, %v", on.limit.Key().On(on.channel), done, err)
		}
		if want := admission.Day.Start(done.At, time.UTC); !done.Now.Start.Equal(want) {
			t.Errorf("%s begins at %s, want %s", on.limit.Key().On(on.channel), done.Now.Start,
				want)
		}
		var ahead *ledger.NotAheadError
		if _, err := restarted(t, l, on.channel, on.limit); !errors.As(err, &ahead) {
			t.Errorf("%s was started twice: %v", on.limit.Key().On(on.channel), err)
		}
	}
	if _, sent := mustClaim(t, l, of("shop", 4), refs...); len(sent) != 2 {
		t.Errorf("%d were sent, want the 2 that are left of 5 segments", len(sent))
	}
	if n := scalar[int](t, db, `select count(*) from audit.limit_restarts where author = 'ann'
		and reason <> '' and version = 1`); n != 5 {
		t.Errorf("%d restarts are on record", n)
	}
}

// TestASecondThatWasAheadGoesOnWithTheNextOne, because it is not known what was sent in the running
// second.
func TestASecondThatWasAheadGoesOnWithTheNextOne(t *testing.T) {
	t.Parallel()
	on := limit(admission.Second, 10)
	l, db := bounded(t, []admission.Limit{on})
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('second', now()), granted = 7, next_at = now(),
		  pace = 95000000, taken = '{"lane:otp": 2}'`)
	clockWasAhead(t, db)
	if _, sent := mustClaim(t, l, of("shop", 1)); len(sent) != 0 {
		t.Fatal("the second had release times before it began")
	}
	done, err := restarted(t, l, "a", on)
	if err != nil || done.Was.Granted != 7 {
		t.Fatalf("%+v, %v", done, err)
	}
	// 0 when a second has just begun
	if late := done.Now.Start.Sub(done.At.Truncate(time.Second)); late != time.Second && late != 0 {
		t.Errorf("it begins at %s, %s after the second of %s", done.Now.Start, late, done.At)
	}
	if !scalar[bool](t, db, `select granted = 0 and max = 10 and next_at is null and pace is null
		and taken is null from dispatcher.limits`) {
		t.Error("something of the window before was kept")
	}
	if due := scalar[int](t, db, `select count(*) from dispatcher.message_states where state = 'waiting'
		and next_at <= clock_timestamp()`); due != 1 {
		t.Errorf("%d of 1 look again", due)
	}
}

// TestWindowsThatAreYetToComeAreOutOfTheWay once a limit was restarted: their times can be opened
// again, and a limit that is removed and added does not bring them back.
func TestWindowsThatAreYetToComeAreOutOfTheWay(t *testing.T) {
	t.Parallel()
	on := limit(admission.Day, 10)
	l, db := bounded(t, []admission.Limit{on})
	mustClaim(t, l, of("shop", 1))
	// The history has windows of the day before, of the running day and of the next one. The limit is
	// in a window two days ahead, as when a clock that was ahead was set back.
	execute(t, db, `insert into dispatcher.limit_history (channel, scope, window_seconds, unit,
		window_start, max, granted)
		select channel, scope, window_seconds, unit, window_start + n * interval '1 day', max, 1
		from dispatcher.limits, generate_series(-1, 1) n`)
	execute(t, db, `update dispatcher.limits set window_start = window_start + interval '2 days'`)
	if _, err := restarted(t, l, "a", on); err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db, `select string_agg(w->>'granted' || ' of ' || (w->>'max'), ', ')
		from audit.limit_restarts, jsonb_array_elements(set_aside) w`); got != "1 of 10, 1 of 10" {
		t.Errorf("set aside are %s", got)
	}
	for range 3 { // as time passes
		execute(t, db, `update dispatcher.limits
			set window_start = window_start - interval '1 day'`)
		execute(t, db, `update dispatcher.limit_history
			set window_start = window_start - interval '1 day'`)
		if _, sent := mustClaim(t, l, of("shop", 2)); len(sent) != 2 {
			t.Errorf("%d were sent", len(sent))
		}
	}
	applyToday(t, l, time.UTC, nil)
	applyToday(t, l, time.UTC, []admission.Limit{on})
	if n := scalar[int](t, db,
		`select count(*) from audit.limit_windows where window_start > now()`); n != 0 {
		t.Error("a window that is yet to come was brought back")
	}
}

// TestASecondOfAPrefixBeginsWithNothing like any other second.
func TestASecondOfAPrefixBeginsWithNothing(t *testing.T) {
	t.Parallel()
	on := scoped(prefix("+44"), admission.Second, 10)
	l, db := bounded(t, []admission.Limit{on})
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('second', now()) + interval '2 days', granted = 7`)
	done, err := restarted(t, l, "a", on)
	if err != nil || done.Was.Granted != 7 || done.Now.Granted != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if got := granted(t, db); got != "a prefix:+44 1 messages 0 of 10" {
		t.Error(got)
	}
}

// TestOnlyAWindowThatIsAheadIsStartedAgain: any other would give its slots away twice.
func TestOnlyAWindowThatIsAheadIsStartedAgain(t *testing.T) {
	t.Parallel()
	on := limit(admission.Second, 10)
	l, db := bounded(t, []admission.Limit{on})
	execute(t, db, `update dispatcher.limits set granted = 1`)
	// A process with the longest commit latency opens windows this far ahead.
	execute(t, db, `update dispatcher.limits
		set window_start = date_trunc('second', clock_timestamp()) + interval '7 seconds'`)
	before := granted(t, db)
	var ahead *ledger.NotAheadError
	if _, err := restarted(t, l, "a", on); !errors.As(err, &ahead) || ahead.Start.IsZero() {
		t.Errorf("%v", err)
	}
	if _, err := restarted(t, l, "b", on); !errors.Is(err, ledger.ErrNoLimit) {
		t.Errorf("%v", err)
	}
	clockWasAhead(t, db)
	other, conflict := int64(7), (*ledger.VersionConflictError)(nil)
	_, err := l.Limits.RestartWindow(t.Context(), ledger.Restart{
		Channel: "a", Limit: on, Zone: time.UTC, Expect: &other,
	})
	if !errors.As(err, &conflict) || conflict.Current != 1 {
		t.Errorf("%v", err)
	}
	if _, err := l.Limits.RestartWindow(t.Context(), ledger.Restart{
		Channel: "a", Limit: on,
	}); err == nil {
		t.Error("a restart without a zone was made")
	}
	if got := granted(t, db); got != before {
		t.Errorf("%s, was %s", got, before)
	}
}

// TestNoClaimSlipsBetweenCountingAndRestarting: a claim between counting and locking is counted.
// What claims lock is locked from then on.
func TestNoClaimSlipsBetweenCountingAndRestarting(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	other, db := rig.l, rig.db
	on := limit(admission.Day, 100)
	applyToday(t, other, time.UTC, []admission.Limit{on})
	mustClaim(t, other, of("shop", 2))
	clockWasAhead(t, db)
	counts := 0
	l := connect(t, ledger.Config{URL: rig.url, Tracer: onCounted(func() {
		if counts++; counts == 1 {
			mustClaim(t, other, of("shop", 4))
			return
		}
		for _, table := range []string{"channels", "limits"} {
			var pg *pgconn.PgError
			if _, err := db.Exec(t.Context(), `select from dispatcher.`+table+
				` where channel = 'a' for update nowait`); !errors.As(err, &pg) ||
				pg.Code != "55P03" {
				t.Errorf("a claim could lock %s: %v", table, err)
			}
		}
	})})
	if done, err := restarted(t, l, "a", on); err != nil || done.Now.Granted != 6 ||
		done.Was.Granted != 6 || counts != 2 {
		t.Errorf("%+v after %d counts, %v", done, counts, err)
	}
}

// TestASlidingLimitThatWasAheadGoesOnFromWhatIsCounted, as one that is added does: its next release
// time was in the future as well.
func TestASlidingLimitThatWasAheadGoesOnFromWhatIsCounted(t *testing.T) {
	t.Parallel()
	on := limit(admission.Day, 40)
	l, db := bounded(t, []admission.Limit{on})
	slides := giveScoped(func(c *admission.Counter) { c.Sliding, c.Burst = true, 10 })
	claim := func(id string) int {
		t.Helper()
		_, sent, err := claimScoped(t, l, batch(id, 9), slides)
		if err != nil {
			t.Fatal(err)
		}
		return len(sent)
	}
	if n := claim("before"); n != 9 {
		t.Fatalf("%d were sent", n)
	}
	clockWasAhead(t, db)
	if n := claim("ahead"); n != 0 {
		t.Errorf("%d were sent before their arrival time", n)
	}
	if _, err := restarted(t, l, "a", on); err != nil {
		t.Fatal(err)
	}
	if n := claim("after"); n != 1 {
		t.Errorf("%d were sent, want what 9 leave of a burst of 10", n)
	}
}

func TestRestartsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	mine, money := scoped(tenant("shop"), admission.Day, 100), budget(tenant("shop"), 1e6)
	l, db := bounded(t, []admission.Limit{mine}, money)
	mustClaim(t, l, of("shop", 2), ledger.ScopeRef{Scope: tenant("shop")}, ledger.ScopeRef{
		Channel: "a", Scope: tenant("shop"),
	})
	clockWasAhead(t, db)
	var want []ledger.Restarted
	for channel, on := range map[string]admission.Limit{"a": mine, "": money} {
		done, err := restarted(t, l, channel, on)
		if err != nil {
			t.Fatal(err)
		}
		want = append([]ledger.Restarted{done}, want...)
	}
	got, err := l.Limits.Restarts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		t.Error(diff)
	}
}

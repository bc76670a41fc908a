package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// letWait stores n messages that wait for an hour.
func letWait(t testing.TB, db *pgx.Conn, n int) {
	t.Helper()
	store(t, db, "id, lane, state, next_at, expires_at, route, routing_version", `
		select 'waits-' || n, 'otp', 'waiting', now() + interval '1 hour',
		  now() + interval '1 day', 'default', 1
		from generate_series(1, $1) n`, n)
}

// due is how many messages have come due.
func due(t testing.TB, db *pgx.Conn) int {
	t.Helper()
	return scalar[int](t, db, `select count(*) from dispatcher.messages where next_at <= now()`)
}

const stillWaking = `select count(*) from dispatcher.routing_versions where waking`

func TestADocumentWakesAllWhoWaitAndTheStepOfARampNobody(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyRoutes(t, l, members, "default")
	letWait(t, db, 603)
	store(t, db, "id, lane, attempts, state, next_at", `values
		('backs-off', 'otp', 1, 'retry', now() + interval '1 hour'),
		('is-for-later', 'otp', 0, 'scheduled', now() + interval '1 hour'),
		('awaits-its-receipt', 'otp', 1, 'accepted', now() + interval '1 hour')`)
	store(t, db, "id, lane, attempts, state, next_at, waits_for", `values
		('goes-on', 'otp', 1, 'accepted', now() + interval '1 hour', 'b')`)
	started := startRamp(t, l, ramp("default"))
	if err := makeStep(t, l, started, 1, "default"); err != nil {
		t.Fatal(err)
	}
	if n, waking := due(t, db), scalar[int](t, db, stillWaking); n != 0 || waking != 0 {
		t.Errorf("a step woke %d messages and left %d versions to tell", n, waking)
	}
	applyRoutes(t, l, members, "default")
	if n, waking := due(t, db), scalar[int](t, db, stillWaking); n != 604 || waking != 0 {
		t.Errorf("a document woke %d messages and left %d versions to tell", n, waking)
	}
}

// onWaking is called before each batch of messages is woken.
type onWaking func(context.Context)

func (f onWaking) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData,
) context.Context {
	if strings.Contains(q.SQL, "dispatcher.wake(") {
		f(ctx)
	}
	return ctx
}

func (onWaking) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Every claim here would wait for ever if the applier held a lock while it wakes.
func TestWakingHoldsNothingThatAClaimNeeds(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	other, db := rig.l, rig.db
	var claims, woken int
	applier := connect(t, ledger.Config{URL: rig.url, Tracer: onWaking(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, tier.LongestWait)
		defer cancel()
		claims++
		c := turnClaim(batch("claim"+strings.Repeat("-", claims), 3))
		c.Due = 1000
		if err := runClaim(ctx, other, c, func(seen *ledger.Seen) (ledger.Decisions, error) {
			woken += len(seen.Messages) - 3
			if seen.Version != 2 {
				t.Errorf("version %d", seen.Version)
			}
			return give(seen)
		}); err != nil {
			t.Error(err)
		}
	})})
	applyRoutes(t, applier, members, "default")
	letWait(t, db, 1100)
	applyRoutes(t, applier, members, "default")
	if claims != 3 || woken != 1000 {
		t.Errorf("%d claims took %d messages that were woken", claims, woken)
	}
}

// A message that was decided again and goes on waiting is not woken again; otherwise waking would
// not end.
func TestAMessageIsWokenOnceForADocument(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db, again := raw(t, url), raw(t, url)
	batches := 0
	l := connect(t, ledger.Config{URL: url, Tracer: onWaking(func(ctx context.Context) {
		batches++
		if _, err := again.Exec(ctx,
			`update dispatcher.messages set next_at = now() + interval '1 hour'`); err != nil {
			t.Error(err)
		}
	})})
	apply(t, l)
	letWait(t, db, 600)
	apply(t, l)
	if n := due(t, db); batches != 2 || n != 100 {
		t.Errorf("%d batches, the last of %d messages", batches, n)
	}
}

// TestWhatIsLeftToWakeIsWokenByForget: the process that applied a document, topped up a budget or
// restarted a window is killed between the commit and the end of waking.
func TestWhatIsLeftToWakeIsWokenByForget(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, *ledger.Ledger) error{
		"document": func(ctx context.Context, l *ledger.Ledger) error {
			_, err := l.Routing.Apply(ctx, ledger.NewRouting{Author: "test", Document: "cut short"})
			return err
		},
		"top-up": func(ctx context.Context, l *ledger.Ledger) error {
			_, err := l.Limits.TopUp(ctx, ledger.TopUp{
				Limit: prepaid(tenant("shop")), Micros: 28000, Author: "ann", Reason: "paid",
			})
			return err
		},
		"restart": func(ctx context.Context, l *ledger.Ledger) error {
			_, err := l.Limits.RestartWindow(ctx, ledger.Restart{
				Channel: "a", Limit: limit(admission.Day, 9), Zone: time.UTC, Author: "ann", Reason: "the clock was ahead",
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := lend(t)
			applyToday(t, rig.l, time.UTC, []admission.Limit{limit(admission.Day, 9)},
				prepaid(tenant("shop")))
			execute(t, rig.db, `update dispatcher.limits
				set window_start = date_trunc('day', now()) + interval '2 days' where channel = 'a'`)
			letWait(t, rig.db, 600)
			ctx, cancel := context.WithCancel(t.Context())
			batches := 0
			killed := connect(t, ledger.Config{URL: rig.url, Tracer: onWaking(func(context.Context) {
				if batches++; batches == 2 {
					cancel()
				}
			})})
			if err := change(ctx, killed); err != nil {
				t.Fatal(err)
			}
			if n := due(t, rig.db); n != 500 {
				t.Errorf("%d messages are due before", n)
			}
			execute(t, rig.db, `update dispatcher.routing_versions
				set created_at = created_at - interval '1 minute'`)
			if err := rig.l.Instances.Forget(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			if n, left := due(t, rig.db), scalar[int](t, rig.db, stillWaking); n != 600 || left != 0 {
				t.Errorf("%d messages are due, and %d versions are left", n, left)
			}
		})
	}
}

// TestForgetGivesAnApplierTimeToWake: it may still be at work.
func TestForgetGivesAnApplierTimeToWake(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	apply(t, rig.l)
	letWait(t, rig.db, 1)
	execute(t, rig.db, `update dispatcher.routing_versions set waking = true`)
	if err := rig.l.Instances.Forget(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := due(t, rig.db); n != 0 {
		t.Errorf("%d messages are due", n)
	}
}

// waitOn makes n messages wait for something, the first of them for the shortest time.
func waitOn(t testing.TB, db *pgx.Conn, on string, n int) {
	t.Helper()
	store(t, db, "id, lane, state, next_at, waits_for", `
		select concat_ws('-', $1::text, lpad(n::text, 4, '0')), 'otp', 'waiting',
		  now() + interval '1 hour' + n * interval '1 second', $1
		from generate_series(1, $2::int) n`, on, n)
}

func TestWakeForWakesTheFirstOfEachAndNobodyElse(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db, locker := connect(t, ledger.Config{URL: url}), raw(t, url), raw(t, url)
	for on, n := range map[string]int{"tenant:shop 1d money": 100, "a 1d money": 2, "a": 50} {
		waitOn(t, db, on, n)
	}
	// backs off, and does not wait
	execute(t, db, `update dispatcher.messages set state = 'retry' where id = 'a 1d money-0002'`)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // The end of the test ends it, too.
	if _, err := tx.Exec(t.Context(), `select from dispatcher.due
		where seq = dispatcher.seq_of('tenant:shop 1d money-0002') for update`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from dispatcher.messages
		where id = 'tenant:shop 1d money-0003' for update`); err != nil {
		t.Fatal(err)
	}
	if err := l.Claims.WakeFor(t.Context(), []string{
		"tenant:shop 1d money", "a 1d money",
		"nobody waits for this",
	}, 3); err != nil {
		t.Fatal(err)
	}
	got := scalar[string](t, db,
		`select string_agg(id, ', ' order by id) from dispatcher.messages where next_at <= now()`)
	if want := "a 1d money-0001, tenant:shop 1d money-0001, " +
		"tenant:shop 1d money-0004"; got != want {
		t.Errorf("woke %s, want %s", got, want)
	}
	for _, on := range [][]string{nil, {"a"}} {
		if err := l.Claims.WakeFor(t.Context(), on, 0); err != nil || due(t, db) != 3 {
			t.Errorf("%d due, %v", due(t, db), err)
		}
	}
	waitOn(t, db, "b", 5000)
	execute(t, db, `analyze dispatcher.due`)
	if got := ledger.PlanOf(t, db, `select seq from dispatcher.due where waits_for = 'a'
		and next_at > now() and state = 'waiting' order by next_at
		limit 3 for update skip locked`); !strings.Contains(got, "due_waits_for") {
		t.Error(got)
	}
}

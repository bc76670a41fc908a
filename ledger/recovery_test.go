package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// lost returns the ledgers of a live instance and of one that fell silent an hour ago with two
// attempts without outcome.
func lost(t *testing.T) (living, dead *ledger.Ledger, db *pgx.Conn) {
	t.Helper()
	rig := lend(t)
	living, dead = rig.l, connect(t, ledger.Config{URL: rig.url})
	apply(t, living, ledger.ChannelSpec{Name: "a"})
	db = rig.db
	claimAll(t, living, batch("living", 2), "a")
	claimAll(t, dead, batch("dead", 2), "a")
	silence(t, db, dead)
	beatingForLong(t, db, living)
	return living, dead, db
}

// silence moves an instance and its attempts an hour into the past.
func silence(t testing.TB, db *pgx.Conn, l *ledger.Ledger) {
	t.Helper()
	execute(t, db, ledgertest.StoreOpen)
	for _, sql := range []string{
		`update dispatcher.instances
			set last_seen = last_seen - interval '1 hour',
			  oldest_open_at = oldest_open_at - interval '1 hour' where id = $1`,
		`update dispatcher.attempts set claimed_at = claimed_at - interval '1 hour'
			where instance = $1`,
	} {
		if _, err := db.Exec(t.Context(), sql, l.Instances.ID()); err != nil {
			t.Fatal(err)
		}
	}
}

func abandoned(t testing.TB, l *ledger.Ledger) []string {
	t.Helper()
	open, err := l.Settlements.Abandoned(t.Context(), 10*time.Second, 30*time.Second, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range open {
		o := &open[i]
		if o.Attempt.Number != 1 || o.Attempt.Channel != "a" || o.Message.State != ledger.Sending ||
			len(o.Message.Envelope) == 0 {
			t.Errorf("attempt %d on %s, state %s", o.Attempt.Number, o.Attempt.Channel,
				o.Message.State)
		}
		ids = append(ids, o.Message.ID)
	}
	return ids
}

func instances(t testing.TB, db *pgx.Conn) int {
	t.Helper()
	return scalar[int](t, db, `select count(*) from dispatcher.instances`)
}

func TestAttemptsOfASilentInstanceAreFoundSettledAndTheInstanceForgotten(t *testing.T) {
	t.Parallel()
	living, _, db := lost(t)
	if err := living.Instances.Forget(t.Context(), 10*time.Second); err != nil ||
		instances(t, db) != 2 {
		t.Fatalf("%d instances with open attempts, %v", instances(t, db), err)
	}
	if diff := cmp.Diff([]string{"dead-00000", "dead-00001"}, abandoned(t, living)); diff != "" {
		t.Fatal(diff)
	}
	open, err := living.Settlements.Abandoned(t.Context(), 10*time.Second, 30*time.Second, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range open {
		settleAll(t, living, []ledger.Settlement{unknown(open[i].Message)})
	}
	if ids := abandoned(t, living); ids != nil {
		t.Error(ids)
	}
	if err := living.Instances.Forget(t.Context(), 10*time.Second); err != nil ||
		instances(t, db) != 1 {
		t.Errorf("%d instances, %v", instances(t, db), err)
	}
}

// TestWhoWasSilentItselfTakesNobodyForLost, as after the database was away for all instances.
func TestWhoWasSilentItselfTakesNobodyForLost(t *testing.T) {
	t.Parallel()
	living, _, db := lost(t)
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '11 seconds'
		where id = $1`, living.Instances.ID())
	if ids := abandoned(t, living); ids != nil {
		t.Errorf("%v taken for lost without a heartbeat of one's own", ids)
	}
	if _, err := living.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if ids := abandoned(t, living); ids != nil {
		t.Errorf("%v taken for lost right after the first heartbeat", ids)
	}
	beatingForLong(t, db, living)
	if ids := abandoned(t, living); len(ids) != 2 {
		t.Errorf("%v taken for lost when the others had time to come back", ids)
	}
}

func TestAHeartbeatBringsAnInstanceBack(t *testing.T) {
	t.Parallel()
	living, dead, _ := lost(t)
	if _, err := dead.Instances.Beat(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if ids := abandoned(t, living); ids != nil {
		t.Error(ids)
	}
}

func TestAbandonedLooksBackToTheOldestOpenAttempt(t *testing.T) {
	t.Parallel()
	living, dead, db := lost(t)
	if _, err := dead.Instances.Beat(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(),
		`update dispatcher.instances set last_seen = now() - interval '20 seconds' where id = $1`,
		dead.Instances.ID()); err != nil {
		t.Fatal(err)
	}
	if ids := abandoned(t, living); len(ids) != 2 {
		t.Error(ids)
	}
}

// TestAClockThatWasSetBackHidesNoAttempt: the last heartbeat is earlier than the attempts.
func TestAClockThatWasSetBackHidesNoAttempt(t *testing.T) {
	t.Parallel()
	living, dead, db := lost(t)
	execute(t, db, `update dispatcher.instances
		set oldest_open_at = last_seen + interval '30 minutes' where id = $1`, dead.Instances.ID())
	execute(t, db, `update dispatcher.attempts a set claimed_at = i.oldest_open_at
		from dispatcher.instances i where i.id = a.instance and i.id = $1`, dead.Instances.ID())
	if ids := abandoned(t, living); len(ids) != 2 {
		t.Error(ids)
	}
}

// TestAHeartbeatThatIsExecutedLateHidesNoAttempt: the server hung for an hour. Before that a
// heartbeat was sent when nothing was open, and then attempts were claimed.
func TestAHeartbeatThatIsExecutedLateHidesNoAttempt(t *testing.T) {
	t.Parallel()
	living, dead, db := lost(t)
	if _, err := dead.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := dead.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids := abandoned(t, living); len(ids) != 2 {
		t.Error(ids)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.instances`); n != 2 {
		t.Errorf("%d rows of instances: that of one with open attempts was removed", n)
	}
}

func TestAnInstanceThatIsSilentTooLongMayNotClaim(t *testing.T) {
	t.Parallel()
	_, dead, _ := lost(t)
	claim := ledger.Claim{Messages: batch("late", 1), Channels: []string{"a"}}
	if _, err := dead.Claims.Lock(t.Context(), claim); !errors.Is(err, ledger.ErrSilent) ||
		!ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
	if _, err := dead.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := runClaim(t.Context(), dead, claim, give); err != nil {
		t.Error(err)
	}
}

func TestAForgottenInstanceMayClaimAfterItsNextHeartbeat(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	living, idle := rig.l, connect(t, ledger.Config{URL: rig.url})
	apply(t, living, ledger.ChannelSpec{Name: "a"})
	silence(t, rig.db, idle)
	if err := living.Instances.Forget(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	claim := ledger.Claim{Messages: batch("m", 1), Channels: []string{"a"}}
	if err := runClaim(t.Context(), idle, claim, give); !errors.Is(err, ledger.ErrNotRegistered) {
		t.Errorf("got %v", err)
	}
	if _, err := idle.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := runClaim(t.Context(), idle, claim, give); err != nil {
		t.Error(err)
	}
}

func TestLeaveRemovesTheInstanceUnlessSomethingIsOpen(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	living, idle, busy := rig.l, connect(t, ledger.Config{URL: rig.url}),
		connect(t, ledger.Config{URL: rig.url})
	apply(t, living, ledger.ChannelSpec{Name: "a"})
	claimAll(t, busy, batch("busy", 1), "a")
	for range 2 { // leaving twice is harmless
		for _, l := range []*ledger.Ledger{idle, busy} {
			if err := l.Instances.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	db := rig.db
	if n := instances(t, db); n != 2 {
		t.Errorf("%d instances", n)
	}
	// at once, without waiting for silence
	open, err := living.Settlements.Abandoned(t.Context(), time.Hour, 0, 10)
	if err != nil || len(open) != 1 || open[0].Message.ID != "busy-00000" {
		t.Errorf("%d attempts, %v", len(open), err)
	}
}

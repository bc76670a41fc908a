package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestGatherShowsWhatAllLiveInstancesSaid(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	first, second, third := connect(t, ledger.Config{URL: url}),
		connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url})
	db := raw(t, url)
	gather := func(l *ledger.Ledger, counts map[string]ledger.Grants) ledger.LiveInstances {
		t.Helper()
		f, err := l.Instances.Gather(t.Context(), counts, nil, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ofFirst := map[string]ledger.Grants{
		"a": {Messages: 20, Segments: 100, Micros: 2_800_000},
		"b": {Messages: 1, Segments: 1},
	}
	gather(first, ofFirst)
	gather(second, nil)
	f := gather(third, map[string]ledger.Grants{"a": {Messages: 7}})
	want := []ledger.Member{
		{ID: first.Instances.ID(), Region: "test", Counts: ofFirst},
		{ID: second.Instances.ID(), Region: "test", Counts: map[string]ledger.Grants{}},
		{ID: third.Instances.ID(), Region: "test", Counts: map[string]ledger.Grants{
			"a": {Messages: 7},
		}},
	}
	if diff := cmp.Diff(want, f.Members); diff != "" || time.Since(f.At).Abs() > time.Minute {
		t.Errorf("at %s: %s", f.At, diff)
	}
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '11 minutes'
		where id = $1`, first.Instances.ID())
	execute(t, db, `insert into dispatcher.instances (region, host)
		values ('old', 'that has told nothing')`)
	f = gather(second, map[string]ledger.Grants{"a": {Messages: 1}})
	if len(f.Members) != 3 || f.Members[0].ID != second.Instances.ID() ||
		f.Members[0].Counts["a"].Messages != 1 || f.Members[2].Region != "old" ||
		len(f.Members[2].Counts) != 0 {
		t.Errorf("%+v", f.Members)
	}
	if err := second.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Instances.Gather(t.Context(), nil, nil, time.Second); !errors.Is(err,
		ledger.ErrNotRegistered) {
		t.Errorf("got %v", err)
	}
	if f = gather(third, nil); len(f.Members) != 2 {
		t.Errorf("%+v", f.Members)
	}
}

func TestAHeartbeatLeavesTheCountsAlone(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, other := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url})
	if _, err := l.Instances.Gather(t.Context(), map[string]ledger.Grants{
		"a": {Messages: 5, Segments: 6},
	}, nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	f, err := other.Instances.Gather(t.Context(), nil, nil, time.Minute)
	if err != nil || len(f.Members) != 2 || f.Members[0].Counts["a"] != (ledger.Grants{
		Messages: 5, Segments: 6,
	}) {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAnUnbrokenHeartbeatIsThatOfTheLongestLiving of all instances that are alive.
func TestAnUnbrokenHeartbeatIsThatOfTheLongestLiving(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, other, db := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url)
	unbroken := func() time.Duration {
		t.Helper()
		b, err := l.Instances.Beat(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return b.At.Sub(b.Unbroken)
	}
	execute(t, db, `update dispatcher.instances set last_seen = clock_timestamp(),
		beating_since = now() - interval '1 hour' where id = $1`, other.Instances.ID())
	if got := unbroken(); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("beside one that has beaten for an hour: for %s", got)
	}
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '10 minutes'`)
	if got := unbroken(); got != 0 {
		t.Errorf("after an outage of ten minutes: for %s", got)
	}
}

// TestWhoHasLeftIsNoMemberAnyMore, although the row stays while the instance has attempts without
// outcome.
func TestWhoHasLeftIsNoMemberAnyMore(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, other, db := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, other, []ledger.Message{message("m")}, "a")
	if err := other.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := l.Instances.Gather(t.Context(), nil, nil, time.Minute)
	if err != nil || len(f.Members) != 1 || f.Members[0].ID != l.Instances.ID() {
		t.Errorf("%+v, %v", f, err)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.instances`); n != 2 {
		t.Errorf("%d rows: there is none to leave out", n)
	}
}

// TestAnInstanceLeavesAfterItsSessionsWereEnded: the server ended them all, as an administrator or
// a failover does, and this shows only when they are used.
func TestAnInstanceLeavesAfterItsSessionsWereEnded(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	var claims []*ledger.Tx
	for range 3 { // each has a session of its own
		tx, err := l.Claims.Lock(t.Context(), ledger.Claim{Due: 1})
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, tx)
	}
	for _, tx := range claims {
		tx.Rollback()
	}
	execute(t, db, `select pg_terminate_backend(pid, 10000) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	if err := l.Instances.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	if n := scalar[int](t, db, `select count(*)::int from dispatcher.instances`); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// TestAStopWaitsForAHeartbeat: if it cut the connection, the server might execute the statement
// after Leave, and the row would be there again.
func TestAStopWaitsForAHeartbeat(t *testing.T) {
	t.Parallel()
	r := lend(t)
	ctx, stop := context.WithCancel(t.Context())
	tx, err := r.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from dispatcher.instances for update`); err != nil {
		t.Fatal(err)
	}
	done := waiting(t, raw(t, r.url), func() error {
		_, err := r.l.Instances.Beat(ctx, time.Time{})
		return err
	})
	stop()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := r.l.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := scalar[int](t, r.db, `select count(*) from dispatcher.instances`); n > 0 {
		t.Errorf("%d rows after Leave", n)
	}
}

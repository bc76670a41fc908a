package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/ledger"
)

func TestApplyRoutingKeepsEveryVersionAndRefusesAStaleOne(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	if _, err := l.Routing.Current(t.Context()); !errors.Is(err, ledger.ErrNoRouting) {
		t.Fatalf("got %v", err)
	}
	expect := int64(0)
	n := ledger.NewRouting{
		Expect: &expect, Author: "ann", Reason: "first",
		Document: "routes: [] # 1", Channels: []ledger.ChannelSpec{{Name: "a"}},
	}
	if v, err := l.Routing.Apply(t.Context(), n); v != 1 || err != nil {
		t.Fatalf("version %d, %v", v, err)
	}
	_, err := l.Routing.Apply(t.Context(), n)
	if conflict := (*ledger.VersionConflictError)(nil); !errors.As(err, &conflict) ||
		conflict.Expected != 0 || conflict.Current != 1 {
		t.Errorf("got %v", err)
	}
	expect, n.Author, n.Document = 1, "bob", "routes: [] # 2"
	if v, err := l.Routing.Apply(t.Context(), n); v != 2 || err != nil {
		t.Fatalf("version %d, %v", v, err)
	}
	got, err := l.Routing.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.RoutingVersion{
		{Version: 2, Author: "bob", Reason: "first", Document: "routes: [] # 2", Base: 2},
		{Version: 1, Author: "ann", Reason: "first", Document: "routes: [] # 1", Base: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(ledger.RoutingVersion{}, "CreatedAt", "Login")); diff != "" {
		t.Error(diff)
	}
	current, err := l.Routing.Current(t.Context())
	if err != nil || current.Version != 2 || current.CreatedAt.IsZero() {
		t.Errorf("version %d, %v", current.Version, err)
	}
	if _, err := l.Routing.Version(t.Context(), 3); !errors.Is(err, ledger.ErrNoRouting) {
		t.Errorf("got %v", err)
	}
}

// day is a channel with a limit of so many messages a day.
func day(most int64) ledger.ChannelSpec {
	return ledger.ChannelSpec{Name: "a", Limits: []admission.Limit{limit(admission.Day, most)}}
}

// windows is a short text of the running and past windows of the day's limit.
func windows(t testing.TB, db *pgx.Conn) string {
	t.Helper()
	return scalar[string](t, db,
		`select coalesce(string_agg(granted || '/' || max, ' '), '') from audit.limit_windows`)
}

func TestALimitChangedInMidWindowKeepsWhatWasGranted(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, day(10))
	claimAll(t, l, batch("first", 8), "a")
	for _, step := range []struct {
		most          int64
		window, after string
	}{
		{5, "8/8", "8/8"},     // lowered below what was granted: nothing more today
		{9, "8/9", "9/9"},     // raised: acts at once
		{20, "9/20", "11/20"}, // and again
	} {
		apply(t, l, day(step.most))
		if got := windows(t, db); got != step.window {
			t.Errorf("limit %d: %s, want %s", step.most, got, step.window)
		}
		claimAll(t, l, batch("limit"+time.Duration(step.most).String(), 2), "a")
		if got := windows(t, db); got != step.after {
			t.Errorf("limit %d, two messages later: %s, want %s", step.most, got, step.after)
		}
	}
}

func TestALimitThatIsRemovedAndComesBackContinuesItsWindow(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, day(10))
	claimAll(t, l, batch("first", 8), "a")
	apply(t, l, ledger.ChannelSpec{Name: "b"})
	if got := windows(t, db); got != "8/10" {
		t.Errorf("the removed limit left %q in the history", got)
	}
	apply(t, l, day(10))
	claimAll(t, l, batch("second", 8), "a")
	if got := windows(t, db); got != "10/10" {
		t.Errorf("got %s", got)
	}
}

func TestARolledWindowGoesToTheHistory(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, day(10))
	claimAll(t, l, batch("first", 8), "a")
	if _, err := db.Exec(t.Context(),
		`update dispatcher.limits set window_start = window_start - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	claimAll(t, l, batch("second", 3), "a")
	if got := scalar[string](t, db,
		`select string_agg(granted::text, ' ' order by window_start)
			from audit.limit_windows`); got != "8 3" {
		t.Errorf("got %s", got)
	}
}

func TestARemovedChannelStaysUntilNothingIsUnderWay(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 5}, ledger.ChannelSpec{Name: "b"})
	seen := claimAll(t, l, batch("m", 3), "a")
	apply(t, l, ledger.ChannelSpec{Name: "b"})
	names := `select string_agg(channel, ' ' order by channel) from audit.active`
	for _, want := range []string{"a b", "b"} {
		if err := l.Instances.Forget(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := scalar[string](t, db, names); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		settleAll(t, l, accepted(seen.Messages))
	}
}

func TestApplyRoutingRefusesWhatTheTablesCannotHold(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	twice := day(1)
	twice.Limits = append(twice.Limits, limit(admission.Day, 2))
	for name, specs := range map[string][]ledger.ChannelSpec{
		"channel twice": {day(1), day(1)}, "no name": {{}}, "limit twice": {twice}, "negative": {
			day(-1),
		}, "negative active": {{Name: "a", ActiveMax: -1}},
	} {
		if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "x", Channels: specs,
		}); err == nil || ledger.Unavailable(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWatchRoutingTellsOfEveryVersion(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, other := rig.l, connect(t, ledger.Config{URL: rig.url})
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 10), make(chan error)
	go func() { ended <- l.Routing.Watch(ctx, func() error { told <- struct{}{}; return nil }) }()
	<-told // at the start
	for range 2 {
		apply(t, other, day(1))
		<-told
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// addEffects puts effects on the current version, and returns the new version.
func addEffects(t testing.TB, l *ledger.Ledger, effects string) int64 {
	for {
		current, err := l.Routing.Current(t.Context())
		if err != nil {
			t.Error(err)
			return 0
		}
		version, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
			Expect: current.Version, Author: "health", Reason: "test", Overrides: []byte(effects),
		})
		if conflict := (*ledger.VersionConflictError)(nil); errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return version
	}
}

func TestEffectsAreAVersionOfTheSameDocument(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	if _, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{}); !errors.Is(err,
		ledger.ErrNoRouting) {
		t.Fatalf("got %v", err)
	}
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	addEffects(t, l, `{"weights": {"default": {"a": "45"}}}`)
	addEffects(t, l, "")
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	got, err := l.Routing.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.RoutingVersion{
		{Version: 4, Author: "test", Document: "routes: []", Base: 4},
		{
			Version: 3, Author: "health", Via: ledger.ViaItself, Reason: "test",
			Document: "routes: []", Base: 1,
		},
		{
			Version: 2, Author: "health", Via: ledger.ViaItself, Reason: "test",
			Document: "routes: []", Base: 1,
			Effects: []byte(`{"weights": {"default": {"a": "45"}}}`),
		},
		{Version: 1, Author: "test", Document: "routes: []", Base: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(ledger.RoutingVersion{}, "CreatedAt", "Login")); diff != "" {
		t.Error(diff)
	}
	if _, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
		Expect: 4, Overrides: []byte("no JSON"),
	}); !ledger.Unstorable(err) {
		t.Errorf("got %v", err)
	}
}

func TestAChangeOfTheDocumentHoldsOverEffectsButNotOverAnotherDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expect int64
		holds  bool
	}{{0, false}, {1, false}, {2, true}, {3, true}, {4, true}, {5, false}} {
		t.Run(fmt.Sprint(c.expect), func(t *testing.T) {
			t.Parallel()
			l := lend(t).l
			apply(t, l)
			apply(t, l) // 2 brings the current document
			addEffects(t, l, `{}`)
			addEffects(t, l, `{}`) // 4 is current
			_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
				Expect: &c.expect, Author: "ann",
			})
			conflict := (*ledger.VersionConflictError)(nil)
			if c.holds && err != nil || !c.holds && (!errors.As(err, &conflict) ||
				conflict.Current != 4) {
				t.Errorf("document: got %v", err)
			}
		})
	}
}

func TestEffectsHoldOnlyOverTheVersionTheyWereComputedFor(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	apply(t, l)
	addEffects(t, l, `{}`)
	for _, expect := range []int64{0, 1, 3} {
		_, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
			Expect: expect, Overrides: []byte(`{}`),
		})
		if conflict := (*ledger.VersionConflictError)(nil); !errors.As(err, &conflict) ||
			conflict.Current != 2 || conflict.Expected != expect {
			t.Errorf("expecting %d: got %v", expect, err)
		}
	}
}

// Two editors and two health weighers race. Each change is based on the version that was read
// before it. No document is lost, and no effects are put on a document that they were not computed
// for.
func TestDocumentsAndEffectsThatRaceLoseNothing(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	first := rig.l
	apply(t, first)
	rounds := tier.Size(8, 25)
	var workers sync.WaitGroup
	for worker := range 4 {
		l := connect(t, ledger.Config{URL: rig.url})
		workers.Go(func() {
			for range rounds {
				for !changeOnce(t, l, worker) {
				}
			}
		})
	}
	workers.Wait()
	versions, err := first.Routing.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 1+4*rounds {
		t.Errorf("%d versions", len(versions))
	}
	slices.Reverse(versions)
	last := versions[0]
	for _, v := range versions[1:] {
		switch {
		case v.Base == v.Version:
			if v.Document != fmt.Sprintf("after %d", last.Base) {
				t.Errorf("document %q of version %d overwrote that of version %d", v.Document,
					v.Version, last.Base)
			}
		case v.Base != last.Base || v.Document != last.Document ||
			string(v.Effects) != fmt.Sprintf(`{"over": %d}`, last.Version):
			t.Errorf("version %d has effects %s on version %d of %q", v.Version, v.Effects, v.Base,
				v.Document)
		}
		last = v
	}
}

// changeOnce reads the current version and changes it: an even worker the document, an odd one the
// effects. It reports whether no other change came first.
func changeOnce(t testing.TB, l *ledger.Ledger, worker int) bool {
	current, err := l.Routing.Current(t.Context())
	if err != nil {
		t.Error(err)
		return true
	}
	if worker%2 == 0 {
		_, err = l.Routing.Apply(t.Context(), ledger.NewRouting{
			Expect: &current.Version, Author: "editor", Document: fmt.Sprintf("after %d",
				current.Base),
		})
	} else {
		_, err = l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
			Expect: current.Version, Author: "health", Overrides: fmt.Appendf(nil, `{"over": %d}`,
				current.Version),
		})
	}
	if conflict := (*ledger.VersionConflictError)(nil); errors.As(err, &conflict) {
		return false
	}
	if err != nil {
		t.Error(err)
	}
	return true
}

func TestEffectsAreToldToWatchersAndWakeNoMessage(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "full", ActiveMax: 1})
	claimAll(t, l, batch("m", 2), "full")
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 10), make(chan error)
	go func() { ended <- l.Routing.Watch(ctx, func() error { told <- struct{}{}; return nil }) }()
	<-told // at the start
	addEffects(t, l, `{}`)
	<-told
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n, err := l.Claims.Due(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d messages were woken, %v", n, err)
	}
	seen := claimAll(t, l, batch("next", 1), "full")
	if seen.Version != 2 {
		t.Errorf("a claim after the effects sees version %d", seen.Version)
	}
}

// TestTheViewOfWeightsTellsThemInTheOrderOfIntervals, because auditors build the intervals from it.
func TestTheViewOfWeightsTellsThemInTheOrderOfIntervals(t *testing.T) {
	t.Parallel()
	r := lend(t)
	channels := []string{"z", "a", "m", "b"}
	n := ledger.NewRouting{Author: "test", Document: "x", Routes: []ledger.RouteSpec{
		{
			Name: "drawn", Mode: "weighted", Fallback: "redraw", Members: channels,
			Weights: []string{"0.125", "33.40", "0", "7"},
		},
		{
			Name: "turns", Mode: "round_robin", Fallback: "best_worker", LowestFirst: true,
			Members: []string{"b", "a"},
		},
	}}
	for _, name := range channels {
		n.Channels = append(n.Channels, ledger.ChannelSpec{Name: name})
	}
	if _, err := r.l.Routing.Apply(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	addEffects(t, r.l, `{"weights": {"drawn": {"b": "1.75", "a": "40"}}}`) // never raised
	rows, err := r.db.Query(t.Context(), `
		select concat_ws(' ', version, route, mode, fallback, lowest_first, place, channel, weight,
			effective_weight)
		from audit.weights order by version, route, place`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 drawn weighted redraw f 1 z 0.125 0.125",
		"1 drawn weighted redraw f 2 a 33.40 33.40",
		"1 drawn weighted redraw f 3 m 0 0",
		"1 drawn weighted redraw f 4 b 7 7",
		"1 turns round_robin best_worker t 1 b",
		"1 turns round_robin best_worker t 2 a",
		"2 drawn weighted redraw f 1 z 0.125 0.125",
		"2 drawn weighted redraw f 2 a 33.40 33.40",
		"2 drawn weighted redraw f 3 m 0 0",
		"2 drawn weighted redraw f 4 b 7 1.75",
		"2 turns round_robin best_worker t 1 b",
		"2 turns round_robin best_worker t 2 a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

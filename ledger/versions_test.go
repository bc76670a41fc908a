package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// createdAt are the times of all versions, oldest first.
func createdAt(t testing.TB, l *ledger.Ledger) []time.Time {
	t.Helper()
	versions, err := l.Routing.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	times := make([]time.Time, len(versions))
	for i := range versions {
		times[len(times)-1-i] = versions[i].CreatedAt
	}
	return times
}

// An applier begins while a claim holds a channel. Its version comes into force only after the
// claim.
func TestAVersionIsCreatedAfterEveryClaimOfTheOneBefore(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, applier, db := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url)
	applyRoutes(t, l, members, "default")
	var applying sync.WaitGroup
	var claimed time.Time
	err := runClaim(t.Context(), l, turnClaim(batch("m", 3)),
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			claimed = seen.Now
			applying.Go(func() { applyRoutes(t, applier, members, "default") })
			for waiters(t, db) == 0 && t.Context().Err() == nil {
			}
			return takeTurns(seen)
		})
	applying.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if at := createdAt(t, l); !at[1].After(claimed) {
		t.Errorf("version 2 is of %s, and a claim under version 1 of %s", at[1], claimed)
	}
	seen := claimAll(t, l, batch("next", 1), "a")
	if at := createdAt(t, l); seen.Version != 2 || !seen.Now.After(at[1]) {
		t.Errorf("a claim under version %d of %s comes before version 2 of %s", seen.Version,
			seen.Now, at[1])
	}
}

// Claims and documents race. Every attempt has what the audit of a day relies on.
func TestEveryAttemptWasClaimedWhileItsVersionWasInForce(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 3)
	rounds := tier.Size(10, 40)
	var workers sync.WaitGroup
	for i, l := range ledgers[1:] {
		workers.Go(func() {
			for n := range rounds {
				err := runClaim(t.Context(), l, turnClaim(batch(fmt.Sprintf("i%d-n%d", i, n), 4)),
					func(seen *ledger.Seen) (ledger.Decisions, error) {
						d, err := takeTurns(seen)
						for j := range d.Each {
							d.Each[j].Plan.Version = seen.Version
						}
						return d, err
					})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Go(func() {
		for range rounds {
			applyRoutes(t, ledgers[0], members, "default")
		}
	})
	workers.Wait()
	wrong := scalar[int](t, raw(t, url), `
		select count(*) from dispatcher.all_attempts a
		  join dispatcher.messages m on m.seq = a.message_seq
		join dispatcher.routing_versions v on v.version = m.routing_version
		left join dispatcher.routing_versions n on n.version = v.version + 1
		where a.claimed_at < v.created_at or a.claimed_at >= n.created_at`)
	if wrong != 0 {
		t.Errorf("%d attempts were claimed while another version was in force", wrong)
	}
}

func TestVersionsAscendInTimeAlsoWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l)
	ahead := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	if _, err := rig.db.Exec(t.Context(), `update dispatcher.routing_versions set created_at = $1`,
		ahead); err != nil {
		t.Fatal(err)
	}
	apply(t, l)
	addEffects(t, l, `{}`)
	addEffects(t, l, ``)
	apply(t, l)
	var want []time.Time
	for i := range 5 {
		want = append(want, ahead.Add(time.Duration(i)*time.Microsecond))
	}
	if diff := cmp.Diff(want, createdAt(t, l)); diff != "" {
		t.Error(diff)
	}
}

func TestADocumentIsAskedWhatRemainsOfTheEffectsInForce(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	var asked []ledger.RoutingVersion
	n := ledger.NewRouting{
		Author: "test", Document: "first",
		Effects: func(current ledger.RoutingVersion) []byte {
			asked = append(asked, current)
			return []byte(`{"remains": 1}`)
		},
	}
	put := func() {
		t.Helper()
		if _, err := l.Routing.Apply(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	put() // nothing is in force yet
	addEffects(t, l, `{"lowered": 1}`)
	n.Document = "second"
	base := int64(1) // an editor who did not see the effects
	n.Expect = &base
	put()
	n.Effects, n.Expect, n.Document = nil, nil, "third"
	put()
	n.Effects, n.Document = func(ledger.RoutingVersion) []byte { return nil }, "fourth"
	put()
	if len(asked) != 1 || asked[0].Version != 2 || asked[0].Document != "first" ||
		string(asked[0].Effects) != `{"lowered": 1}` {
		t.Errorf("asked about %+v", asked)
	}
	for version, want := range map[int64]string{1: "", 3: `{"remains": 1}`, 4: "", 5: ""} {
		v, err := l.Routing.Version(t.Context(), version)
		if err != nil || string(v.Effects) != want || v.Base != version {
			t.Errorf("version %d has effects %q and base %d, %v", version, v.Effects, v.Base, err)
		}
	}
	n.Effects = func(ledger.RoutingVersion) []byte { return []byte("no JSON") }
	if _, err := l.Routing.Apply(t.Context(), n); !ledger.Unstorable(err) {
		t.Errorf("got %v", err)
	}
}

func TestARampStartsOnlyOnTheDocumentItWasReadFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expect int64
		holds  bool
	}{{0, false}, {1, false}, {2, true}, {3, true}, {4, false}} {
		t.Run(fmt.Sprint(c.expect), func(t *testing.T) {
			t.Parallel()
			l := lend(t).l
			apply(t, l)
			apply(t, l)
			addEffects(t, l, `{}`) // 3, on the document of 2
			_, err := l.Ramps.Start(t.Context(), ramp("default"), &c.expect)
			conflict := (*ledger.VersionConflictError)(nil)
			if c.holds && err != nil || !c.holds && (!errors.As(err, &conflict) ||
				conflict.Current != 3 || conflict.Expected != c.expect) {
				t.Errorf("got %v", err)
			}
			if ramps, err := l.Ramps.List(t.Context(), true); err != nil ||
				len(ramps) == 1 != c.holds {
				t.Errorf("%d ramps, %v", len(ramps), err)
			}
		})
	}
}

// An editor and an operator who starts a ramp race. The ramp starts on the document that it was
// read from, or not at all.
func TestARampAndADocumentThatRaceLoseNothing(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	editor, starter := rig.l, connect(t, ledger.Config{URL: rig.url})
	apply(t, editor)
	for round := range 15 {
		current, err := starter.Routing.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var race sync.WaitGroup
		race.Go(func() { apply(t, editor) })
		var started ledger.Ramp
		race.Go(func() {
			started, err = starter.Ramps.Start(t.Context(), ramp(fmt.Sprint(round)),
				&current.Version)
		})
		race.Wait()
		conflict := (*ledger.VersionConflictError)(nil)
		if err != nil && !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		if at := createdAt(t, editor); err == nil && started.CreatedAt.After(at[len(at)-1]) {
			t.Errorf("the ramp of %s is based on what was changed at %s", started.CreatedAt,
				at[len(at)-1])
		}
	}
}

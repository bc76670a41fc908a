package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// members are those of the route "default" in configured order, which is not alphabetical.
var members = []string{"c", "a", "e", "b", "d"}

// openTurns opens instances over one database whose route has these members.
func openTurns(t testing.TB, instances int) (ledgers []*ledger.Ledger, url string) {
	t.Helper()
	url = ledgertest.URL(t)
	for range instances {
		ledgers = append(ledgers, connect(t, ledger.Config{URL: url}))
	}
	applyRoutes(t, ledgers[0], members, "default")
	return ledgers, url
}

// rotatingRoutes are routes that all have these members.
func rotatingRoutes(channels []string, routes ...string) []ledger.RouteSpec {
	specs := make([]ledger.RouteSpec, len(routes))
	for i, name := range routes {
		specs[i] = ledger.RouteSpec{Name: name, Members: channels}
	}
	return specs
}

func applyRoutes(t testing.TB, l *ledger.Ledger, channels []string, routes ...string) int64 {
	t.Helper()
	n := ledger.NewRouting{
		Author: "test", Document: "routes: []",
		Routes: rotatingRoutes(channels, routes...),
	}
	for _, name := range channels {
		n.Channels = append(n.Channels, ledger.ChannelSpec{Name: name})
	}
	version, err := l.Routing.Apply(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// takeTurns decides that each message goes to the member after the route's cursor.
func takeTurns(seen *ledger.Seen) (ledger.Decisions, error) { return takeTurnsAmong(seen, members) }

func takeTurnsAmong(seen *ledger.Seen, members []string) (ledger.Decisions, error) {
	d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
	cursor := &seen.Cursors[0]
	for i := range seen.Messages {
		cursor.Position = (cursor.Position + 1) % len(members)
		cursor.Channel = members[cursor.Position]
		at := slices.IndexFunc(seen.Channels, func(c ledger.ChannelState) bool {
			return c.Name == cursor.Channel
		})
		admit(seen, &seen.Channels[at].Gate, 1)
		d.Each[i] = ledger.Decision{
			State: ledger.Sending, Plan: seen.Messages[i].Plan,
			Attempt: ledger.Attempt{
				Number: 1, Channel: cursor.Channel, Reason: ledger.ByFirstChoice, Segments: 1,
				Currency: "GBP",
			},
		}
	}
	return d, nil
}

func turnClaim(messages []ledger.Message) ledger.Claim {
	return ledger.Claim{
		Messages: messages, Channels: []string{"a", "b", "c", "d", "e"},
		Cursors: []string{"default"},
	}
}

// turns is the order in which the channels got attempts, by the database's clock.
func turns(t testing.TB, url string) string {
	t.Helper()
	return scalar[string](t, raw(t, url), `
		select coalesce(string_agg(channel, '' order by claimed_at, message_seq), '')
		from dispatcher.all_attempts`)
}

// rotation is n turns in configured order.
func rotation(n int) string {
	return strings.Repeat(strings.Join(members, ""), n/len(members)+1)[:n]
}

// Four instances with three concurrent claims each, of every size. Every fourth claim is rolled
// back after it took its turns, and every instance is replaced in the middle.
func TestFourInstancesTakeTurnsInOneCircle(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 4)
	claims, workersOfEach := tier.Size(4, 40), tier.Size(2, 3)
	want := 0
	for generation := range 2 {
		var workers sync.WaitGroup
		for i, l := range ledgers {
			for worker := range workersOfEach {
				workers.Go(func() {
					for n := range claims {
						prefix := fmt.Sprintf("g%d-i%d-w%d-n%d", generation, i, worker, n)
						claimTurns(t, l, batch(prefix, 1+n%7), n%4 == 3)
					}
				})
			}
		}
		workers.Wait()
		for n := range claims {
			if n%4 != 3 {
				want += len(ledgers) * workersOfEach * (1 + n%7)
			}
		}
		if got := turns(t, url); got != rotation(want) {
			t.Fatalf("generation %d: the rotation is broken after %d of %d turns", generation,
				len(commonStart(got, rotation(want))), want)
		}
		for i := range ledgers {
			ledgers[i].Close()
			if generation == 0 {
				ledgers[i] = connect(t, ledger.Config{URL: url})
			}
		}
	}
}

func commonStart(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// claimTurns claims the messages, or takes their turns and then fails.
func claimTurns(t testing.TB, l *ledger.Ledger, messages []ledger.Message, fail bool) {
	failure := errors.New("rolled back")
	err := runClaim(t.Context(), l, turnClaim(messages), func(seen *ledger.Seen) (ledger.Decisions,
		error,
	) {
		d, err := takeTurns(seen)
		if fail {
			err = failure
		}
		return d, err
	})
	if fail && errors.Is(err, failure) {
		return
	}
	if err != nil || fail {
		t.Error(err)
	}
}

// Claims that have no channel in common wait for each other only at the cursor.
func TestACursorIsLockedWhateverChannelsAClaimNames(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 4)
	const claims = 15
	var workers sync.WaitGroup
	for i, l := range ledgers {
		channel := members[i]
		workers.Go(func() {
			for n := range claims {
				claim := turnClaim(batch(fmt.Sprintf("%s-%d", channel, n), 1))
				claim.Channels = []string{channel}
				err := runClaim(t.Context(), l, claim, func(seen *ledger.Seen) (ledger.Decisions,
					error,
				) {
					seen.Cursors[0].Channel = channel
					seen.Cursors[0].Position++
					return give(seen)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if got := scalar[int](t, raw(t, url), `select position from dispatcher.cursors`); got != len(
		ledgers)*claims-1 {
		t.Errorf("%d moves of %d were lost", len(ledgers)*claims-1-got, len(ledgers)*claims)
	}
}

func TestACursorIsShownWhereTheLastCommittedClaimLeftIt(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 1)
	show := func(l *ledger.Ledger) (c ledger.Cursor) {
		t.Helper()
		stop := errors.New("stop")
		err := runClaim(t.Context(), l, turnClaim(batch("look", 1)),
			func(seen *ledger.Seen) (ledger.Decisions, error) {
				c = seen.Cursors[0]
				return ledger.Decisions{}, stop
			})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		return c
	}
	steps := []struct {
		do   func()
		want ledger.Cursor
	}{
		{func() {}, ledger.Cursor{Route: "default", Position: -1}},
		{func() {
			claimTurns(t, ledgers[0], batch("one", 1), false)
		}, ledger.Cursor{Route: "default", Channel: "c"}},
		{func() {
			claimTurns(t, ledgers[0], batch("two", 2), true)
		}, ledger.Cursor{Route: "default", Channel: "c"}},
		{func() {
			claimTurns(t, ledgers[0], batch("three", 3), false)
		}, ledger.Cursor{Route: "default", Channel: "b", Position: 3}},
		{func() {
			applyRoutes(t, ledgers[0], members, "another", "default")
		}, ledger.Cursor{Route: "default", Channel: "b", Position: 3}},
		{func() {
			ledgers[0].Close()
			ledgers[0] = connect(t, ledger.Config{URL: url})
		}, ledger.Cursor{Route: "default", Channel: "b", Position: 3}},
		{func() {
			applyRoutes(t, ledgers[0], members, "another")
			applyRoutes(t, ledgers[0], members, "default")
		}, ledger.Cursor{Route: "default", Position: -1}},
	}
	for i, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, show(ledgers[0])); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	if got := scalar[string](t, raw(t, url),
		`select string_agg(route, ' ') from dispatcher.cursors`); got != "default" {
		t.Errorf("cursors of %s", got)
	}
}

// TestAMessageThatIsTriedAgainTakesATurnOfTheRouteInForce, though its plan names the route that it
// was drawn by.
func TestAMessageThatIsTriedAgainTakesATurnOfTheRouteInForce(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 1)
	m := message("m")
	m.Plan.Route = "renamed"
	m = claimAll(t, ledgers[0], []ledger.Message{m}, "a").Messages[0]
	settleAll(t, ledgers[0], []ledger.Settlement{{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Refused, State: ledger.Retry,
		Reason: "refused", Tried: true, NextAt: time.Now().Add(-time.Second),
	}})
	claim := turnClaim(nil)
	claim.Due = 1
	err := runClaim(t.Context(), ledgers[0], claim,
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d, err := takeTurns(seen)
			for i := range d.Each {
				d.Each[i].Attempt.Number, d.Each[i].Attempt.Reason = 2, ledger.ByRetry
			}
			return d, err
		})
	if err != nil || turns(t, url) != "ac" {
		t.Errorf("turns %s: %v", turns(t, url), err)
	}
}

func TestClaimRefusesACursorThatMovedWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	ledgers, _ := openTurns(t, 1)
	applyRoutes(t, ledgers[0], members, "another", "default")
	for name, spoil := range map[string]func(*ledger.Seen){
		"channel without attempt": func(s *ledger.Seen) {
			s.Cursors[1] = ledger.Cursor{Route: "default", Channel: "a", Position: 1}
		},
		"attempt of another route": func(s *ledger.Seen) {
			s.Cursors[0] = ledger.Cursor{Route: "another", Channel: "c"}
		},
		"route replaced": func(s *ledger.Seen) { s.Cursors[1].Route = "another" },
		"no position": func(s *ledger.Seen) {
			s.Cursors[1] = ledger.Cursor{Route: "default", Channel: "c", Position: -1}
		},
		"back before the start": func(s *ledger.Seen) {
			s.Cursors[1] = ledger.Cursor{Route: "default", Position: 0}
		},
		"dropped": func(s *ledger.Seen) { s.Cursors = s.Cursors[:1] },
	} {
		// Not in parallel: whoever waits longer than maxSilence for a turn may not claim.
		t.Run(name, func(t *testing.T) {
			claim := turnClaim(batch(name, 1))
			claim.Cursors = []string{"another", "default"}
			err := runClaim(t.Context(), ledgers[0], claim,
				func(seen *ledger.Seen) (ledger.Decisions, error) {
					toC := *seen
					toC.Cursors = []ledger.Cursor{{Route: "default", Position: -1}}
					d, err := takeTurns(&toC)
					spoil(seen)
					return d, err
				})
			if refused := (*ledger.DecisionError)(nil); !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClaimNamesRoutesWithoutACursorAfterAskingDecide(t *testing.T) {
	t.Parallel()
	ledgers, _ := openTurns(t, 1)
	claim := turnClaim(batch("m", 1))
	claim.Cursors = []string{"default", "gone", "never"}
	asked := false
	err := runClaim(t.Context(), ledgers[0], claim, func(seen *ledger.Seen) (ledger.Decisions,
		error,
	) {
		asked = true
		if want := (ledger.Cursor{Route: "gone", Position: -1}); seen.Cursors[1] != want {
			t.Errorf("shown %v", seen.Cursors[1])
		}
		return takeTurns(seen)
	})
	missing := (*ledger.MissingCursorsError)(nil)
	if !errors.As(err, &missing) || !slices.Equal(missing.Routes, []string{"gone", "never"}) ||
		!asked || ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
}

// A claim that names no cursor does not touch the table.
func TestClaimsWithoutCursorsDoNotWaitForThoseWith(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 1)
	tx, err := raw(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		`lock table dispatcher.cursors in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	claimAll(t, ledgers[0], batch("m", 3), "a")
}

func TestACursorTakesNoFurtherRoundTrip(t *testing.T) {
	t.Parallel()
	_, url := openTurns(t, 1)
	w, through := tap(t, url)
	l := connect(t, ledger.Config{URL: through, MaxConns: 1})
	claimTurns(t, l, batch("warm", 3), false)
	before := w.trips.Load()
	claimTurns(t, l, batch("m", 500), false)
	if n := w.trips.Load() - before; n != claimTrips {
		t.Errorf("a claim took %d round trips, want %d", n, claimTrips)
	}
}

// Claims over two routes, settlements, documents that drop and bring back a route, and effects run
// concurrently. All locks are taken in one order, so there is no deadlock.
func TestClaimsWithCursorsAndChangesOfTheRoutingCannotDeadlock(t *testing.T) {
	t.Parallel()
	ledgers, _ := openTurns(t, 4)
	rounds := tier.Size(15, 60)
	var workers sync.WaitGroup
	for i, l := range ledgers {
		workers.Go(func() {
			for n := range rounds {
				claim := turnClaim(batch(fmt.Sprintf("i%d-n%d", i, n), 5))
				claim.Cursors = []string{"another", "default"}
				var sent []ledger.Message
				err := runClaim(t.Context(), l, claim, func(seen *ledger.Seen) (ledger.Decisions,
					error,
				) {
					d, err := takeTurns(&ledger.Seen{
						Messages: seen.Messages,
						Channels: seen.Channels, Cursors: seen.Cursors[1:],
					})
					sent = slices.Clone(seen.Messages)
					return d, err
				})
				if missing := (*ledger.MissingCursorsError)(nil); errors.As(err, &missing) {
					continue
				}
				if err == nil {
					err = l.Settlements.Settle(t.Context(), accepted(sent))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Go(func() {
		for n := range rounds {
			applyRoutes(t, ledgers[0], members, [][]string{
				{"default"}, {"default", "another"},
			}[n%2]...)
		}
	})
	workers.Go(func() {
		for range rounds {
			addEffects(t, ledgers[1], `{"weights":{}}`)
		}
	})
	workers.Wait()
}

// Of four members the third had the last turn, and it is removed together with the first. The
// fourth is next: not the second again, and none is passed over.
func TestTheCursorOfARouteGoesOnInTheRotationOfANewDocument(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	cursor := `select route || ' ' || channel || ' ' || position || ' ' || members::text
		from dispatcher.cursors where route = 'default'`
	rotation := func(want string, members ...string) {
		t.Helper()
		applyRoutes(t, l, members, "another", "default")
		if got := scalar[string](t, db, cursor); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	turn := func(channel string, position int) {
		t.Helper()
		if _, err := db.Exec(t.Context(),
			`update dispatcher.cursors set channel = $1, position = $2 where route = 'default'`,
			channel, position); err != nil {
			t.Fatal(err)
		}
	}
	rotation("default  -1 {a,b,x,c}", "a", "b", "x", "c")
	turn("x", 2)
	addEffects(t, l, `{}`)
	rotation("default b 0 {b,c}", "b", "c")
	rotation("default b 2 {n,c,b}", "n", "c", "b")
	turn("c", 1)
	rotation("default n 1 {b,n}", "b", "n")
	rotation("default  -1 {y,z}", "y", "z")
	turn("y", 0)
	rotation("default y 1 {z,y}", "z", "y")
	// Another release does not note the rotation.
	if _, err := db.Exec(t.Context(),
		`update dispatcher.cursors
			set channel = 'gone', position = 1, members = '{}'`); err != nil {
		t.Fatal(err)
	}
	rotation("default gone 1 {a,b,c}", "a", "b", "c")
	if got := scalar[string](t, db,
		`select channel || position from dispatcher.cursors
			where route = 'another'`); got != "gone1" {
		t.Errorf("the other route stands at %s", got)
	}
}

func TestApplyRoutingRefusesRoutesWithoutACircle(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	for name, routes := range map[string][]ledger.RouteSpec{
		"no name": rotatingRoutes(members, ""), "twice": rotatingRoutes(members, "r", "r"),
		"no members":              rotatingRoutes(nil, "r"),
		"a member twice":          rotatingRoutes([]string{"a", "b", "a"}, "r"),
		"a member without a name": rotatingRoutes([]string{""}, "r"),
	} {
		if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "x", Routes: routes,
		}); err == nil || ledger.Unstorable(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Three instances take turns while documents remove members and add others. Members that stay have
// their turns in one rotation all the time.
func TestTurnsGoOnInOneRotationWhileDocumentsChange(t *testing.T) {
	t.Parallel()
	ledgers, url := openTurns(t, 4)
	// Parts of one rotation, in which only c and b stay.
	rotations := [][]string{members, {"c", "b"}, {"d", "c", "a", "e", "b"}, {"b", "c"}, {
		"e", "b", "c",
	}}
	applyRotation := func(rotation []string) {
		n := ledger.NewRouting{Author: "test", Document: "routes: []", Routes: []ledger.RouteSpec{
			{Name: "default", Members: rotation},
		}}
		for _, name := range members {
			n.Channels = append(n.Channels, ledger.ChannelSpec{Name: name})
		}
		if _, err := ledgers[3].Routing.Apply(t.Context(), n); err != nil {
			t.Error(err)
		}
	}
	rounds := tier.Size(15, 60)
	var workers sync.WaitGroup
	for i, l := range ledgers[:3] {
		workers.Go(func() {
			for n := range rounds {
				err := runClaim(t.Context(), l,
					turnClaim(batch(fmt.Sprintf("i%d-n%d", i, n), 1+n%4)),
					func(seen *ledger.Seen) (ledger.Decisions, error) {
						rotation := rotations[(int(seen.Version)-1)%len(rotations)]
						if c := &seen.Cursors[0]; c.Channel != "" {
							// the cursor is at a member, whatever was removed
							c.Position = slices.Index(rotation, c.Channel)
							if c.Position < 0 {
								t.Errorf("version %d: the cursor stands at %s, which is not in %v",
									seen.Version, c.Channel, rotation)
							}
						}
						return takeTurnsAmong(seen, rotation)
					})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Go(func() {
		for n := range rounds {
			applyRotation(rotations[(n+1)%len(rotations)])
		}
	})
	workers.Wait()
	stayed := strings.Map(func(r rune) rune {
		if r != 'c' && r != 'b' {
			return -1
		}
		return r
	}, turns(t, url))
	// The first claim may come under any of the documents, and so begin with either.
	begins := strings.IndexByte("cb", stayed[0])
	if want := strings.Repeat("cb", len(stayed)/2+1)[begins:][:len(stayed)]; stayed != want {
		t.Errorf("the rotation is broken after %d of %d turns", len(commonStart(stayed, want)),
			len(stayed))
	}
}

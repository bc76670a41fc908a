package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// openTapped opens a ledger with one connection through a wiretap, and warms it up so that its
// statements are prepared.
func openTapped(t testing.TB) (*wiretap, *ledger.Ledger, string) {
	t.Helper()
	url := ledgertest.URL(t)
	w, through := tap(t, url)
	l := connect(t, ledger.Config{URL: through, MaxConns: 1})
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000})
	settleAll(t, l, accepted(claimAll(t, l, batch("warm", 3), "a").Messages))
	return w, l, url
}

// claimTrips is how many round trips a claim of new messages takes: the locks, a COPY each of
// messages and payloads, and the rest with the commit.
const claimTrips = 4

func TestAClaimTakesFourRoundTripsAndASettlementOne(t *testing.T) {
	t.Parallel()
	w, l, _ := openTapped(t)
	before := w.trips.Load()
	seen := claimAll(t, l, batch("m", 500), "a")
	if n := w.trips.Load() - before; n != claimTrips {
		t.Errorf("a claim took %d round trips, want %d", n, claimTrips)
	}
	before = w.trips.Load()
	settleAll(t, l, accepted(seen.Messages))
	if n := w.trips.Load() - before; n != 1 {
		t.Errorf("a settlement took %d round trips", n)
	}
	other := accepted(claimAll(t, l, batch("n", 500), "a").Messages)
	other[7].Tried = true
	settleAll(t, l, other[7:8]) // prepares its statement
	other[8].Tried = true
	before = w.trips.Load()
	settleAll(t, l, other)
	if n := w.trips.Load() - before; n != 2 {
		t.Errorf("a settlement of which one is not plain took %d round trips", n)
	}
}

// A claim with narrow limits, money, release times, holds, a lowered rate and refunds takes no more
// round trips than a plain one. With tickets it takes one more, because later attempts have a COPY.
func TestEverythingOfAdmissionTakesNoFurtherRoundTrip(t *testing.T) {
	t.Parallel()
	w, through := tap(t, ledgertest.URL(t))
	l := connect(t, ledger.Config{URL: through, MaxConns: 1})
	applyLimits(t, l, []admission.Limit{
		limit(admission.Minute, 1e6),
		budget(admission.Scope{}, 1e12), scoped(tenant("shop"), admission.Day, 1e6),
	},
		budget(tenant("shop"), 1e12), scoped(prefix("+44"), admission.Day, 1e6))
	for round := range 4 { // the first two prepare the statements
		before := w.trips.Load()
		var tickets int
		var sent []ledger.Message
		err := runClaim(t.Context(), l, ledger.Claim{
			Messages: batch(fmt.Sprintf("r%d", round), 20), Due: 100, Lanes: []string{"otp"},
			Channels: []string{"a"}, Scopes: shop,
		}, func(s *ledger.Seen) (ledger.Decisions, error) {
			d, err := giveScoped(nil)(s)
			sent = s.Messages
			for i := range s.Messages {
				if m := &s.Messages[i]; m.Ticket != nil {
					ticket := m.Ticket.CheckIn(s.Now)
					d.Each[i].Attempt.Ticket = &ticket
					s.Channels[0].Gate.Active.Count--
					tickets++
				}
			}
			return d, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := w.trips.Load() - before; round > 1 && (n != claimTrips+1 || tickets != 10) {
			t.Errorf("a claim with %d tickets took %d round trips", tickets, n)
		}
		settlements := append(throttled(sent[:10], time.Hour), accepted(sent[10:])...)
		for i := range settlements {
			settlements[i].Hold = time.Hour
			settlements[i].Refunds = []ledger.Refund{
				{ScopeRef: ledger.ScopeRef{Channel: "a"}, Window: admission.Day, Micros: 1},
			}
		}
		before = w.trips.Load()
		settleAll(t, l, settlements)
		if n := w.trips.Load() - before; round > 1 && n != 1 {
			t.Errorf("a settlement took %d round trips", n)
		}
	}
}

func TestClaimFindsOutThatALostCommitWasMade(t *testing.T) {
	t.Parallel()
	w, l, url := openTapped(t)
	w.lose(reply, 1) // the second round trip of the claim
	claimAll(t, l, batch("m", 10), "a")
	if n := scalar[int](t, raw(t, url),
		`select count(*) from dispatcher.all_attempts where outcome is null`); n != 10 {
		t.Errorf("%d attempts", n)
	}
}

func TestClaimFindsOutThatALostCommitWasNotMade(t *testing.T) {
	t.Parallel()
	w, l, url := openTapped(t)
	w.lose(request, 1)
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 10), Channels: []string{"a"}},
		give)
	if !ledger.Unavailable(err) {
		t.Fatalf("got %v", err)
	}
	db := raw(t, url)
	if n := scalar[int](t, db,
		`select count(*) from dispatcher.messages where id like 'm-%'`); n != 0 {
		t.Errorf("%d messages", n)
	}
	if n := scalar[int](t, db, `select active from audit.active`); n != 0 {
		t.Errorf("%d slots leaked", n)
	}
	// the same call succeeds once the connection is back
	seen := claimAll(t, l, batch("m", 10), "a")
	if seen.Intakes[0] != ledger.Fresh {
		t.Error("the repeated claim found duplicates")
	}
}

func TestClaimOutlastsARestartOfTheServer(t *testing.T) {
	t.Parallel()
	s := ledgertest.Server(t, nil)
	if err := ledger.Migrate(t.Context(), s.URL()); err != nil {
		t.Fatal(err)
	}
	l := connect(t, ledger.Config{URL: s.URL()})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	var restart sync.WaitGroup
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 5), Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			s.Kill()
			restart.Go(func() {
				if err := s.Start(t.Context()); err != nil {
					t.Error(err)
				}
			})
			return give(seen)
		})
	restart.Wait()
	// The session outlives the server for a moment. On a busy machine the commit may come first.
	if err != nil && !ledger.Unavailable(err) {
		t.Fatalf("got %v", err)
	}
	// The pool may still hold connections of the server that has gone. The caller claims again.
	for range 10 {
		err = runClaim(t.Context(), l,
			ledger.Claim{Messages: batch("again", 5), Channels: []string{"a"}}, give)
		if !ledger.Unavailable(err) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSettleRepeatedAfterALostReplyHasTheEffectOfOnce(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]int32{"request lost": request, "reply lost": reply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l, url := openTapped(t)
			seen := claimAll(t, l, batch("m", 10), "a")
			w.lose(what, 0)
			if err := l.Settlements.Settle(t.Context(),
				accepted(seen.Messages)); !ledger.Unavailable(err) {
				t.Fatalf("got %v", err)
			}
			settleAll(t, l, accepted(seen.Messages))
			db := raw(t, url)
			if n := scalar[int](t, db, `select active from audit.active`); n != 0 {
				t.Errorf("%d slots are taken", n)
			}
			if n := scalar[int](t, db,
				`select sum(cardinality(keys)) from dispatcher.outbox`); n != 13 {
				t.Errorf("%d notices", n)
			}
		})
	}
}

func TestClaimFailsCleanlyWhenItsSessionIsEnded(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := connect(t, ledger.Config{URL: url})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	db := raw(t, url)
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 1), Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			_, err := db.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction'`)
			if err != nil {
				t.Error(err)
			}
			return give(seen)
		})
	if !ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
	claimAll(t, l, batch("m", 1), "a")
}

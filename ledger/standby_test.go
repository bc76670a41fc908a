package ledger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/ledger/pgserver"
	"dispatcher/provider"
)

// TestAClaimIsNotTakenForCommittedBeforeTheStandbyHasIt: its server has committed it and shows it,
// because its wait for the standby was cut off. The standby, if it took over, would give the slot
// away again, and the message would be sent again.
func TestAClaimIsNotTakenForCommittedBeforeTheStandbyHasIt(t *testing.T) {
	t.Parallel()
	server, beside, l := deserted(t, nil)
	for name, cut := range map[string]string{
		"the wait is cancelled": `select pg_cancel_backend(pid) from pg_stat_activity
			where wait_event = 'SyncRep' and application_name = 'dispatcher'`,
		"the session is ended": `select pg_terminate_backend(pid) from pg_stat_activity
			where wait_event = 'SyncRep' and application_name = 'dispatcher'`,
		"the caller gives up": ``,
	} {
		t.Run(name, func(t *testing.T) {
			enough := ledgertest.WaitForNobody(t, server.URL())
			ctx, cancel := context.WithCancel(t.Context())
			claimed := claimInVain(ctx, t, l, beside, name)
			visible := func() bool {
				return scalar[bool](t, beside, `select exists (select from dispatcher.attempts a
					join dispatcher.messages m on m.seq = a.message_seq
					where m.id like $1 || '%')`, name)
			}
			if visible() {
				t.Fatal("the attempt is there before its wait was cut off")
			}
			if cut != "" {
				execute(t, beside, cut)
			} else {
				cancel()
			}
			defer cancel()
			tier.Eventually(t, "the attempt is there", visible)
			select {
			case err := <-claimed:
				t.Fatalf("the claim was answered while no standby had it: %v", err)
			case <-time.After(500 * time.Millisecond):
			}
			enough()
			if err := <-claimed; err != nil {
				t.Errorf("the claim was committed: %v", err)
			}
		})
	}
}

// TestAClaimThatIsStillUnderWayIsAwaited: its caller has lost the connection, but the transaction
// goes on. A snapshot cannot distinguish the newest transaction from one that has not begun.
func TestAClaimThatIsStillUnderWayIsAwaited(t *testing.T) {
	t.Parallel()
	var w *wiretap
	server, beside, l := deserted(t, func(url string) (tapped string) {
		w, tapped = tap(t, url)
		return tapped
	})
	w.stubborn.Store(true)
	enough := ledgertest.WaitForNobody(t, server.URL())
	ctx, cancel := context.WithCancel(t.Context())
	claimed := claimInVain(ctx, t, l, beside, "m")
	cancel()
	select {
	case err := <-claimed:
		t.Fatalf("the claim was answered while it was under way: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	enough()
	if err := <-claimed; err != nil {
		t.Errorf("the claim was committed: %v", err)
	}
}

// TestWhatIsDoneAgainWaitsForTheStandby: the first try was committed on its server, and its wait
// for the standby was cut off. The second try finds everything and has nothing to write. It must
// not return before the standby has the first, because then offsets are committed and carriers get
// their acknowledgement.
func TestWhatIsDoneAgainWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	server, beside, l := deserted(t, nil)
	waiting, settled, received := batch("waiting", 1), batch("settled", 1), batch("received", 1)
	for _, m := range [][]ledger.Message{settled, received} {
		claimAll(t, l, m, "a")
	}
	seq := func(id string) int64 {
		return scalar[int64](t, beside, `select seq from dispatcher.messages where id = $1`, id)
	}
	answer := func(id, reference string) []ledger.Settlement {
		return []ledger.Settlement{{
			Seq: seq(id), ID: id, Attempt: 1, Outcome: provider.Accepted, Reference: reference,
			Segments: 1, State: ledger.Accepted,
			Notice: &ledger.Notice{Kind: ledger.Status, Key: id, Value: []byte(`{}`)},
		}}
	}
	if err := l.Settlements.Settle(t.Context(), answer("received-00000", "r2")); err != nil {
		t.Fatal(err)
	}
	works := map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			return runClaim(ctx, l, ledger.Claim{Messages: waiting}, give)
		},
		"settle": func(ctx context.Context) error {
			return l.Settlements.Settle(ctx, answer("settled-00000", "r1"))
		},
		"receive": func(ctx context.Context) error {
			_, err := l.Receipts.Receive(ctx, []ledger.Receipt{receipt("r2", provider.Delivered)},
				tellState)
			return err
		},
		"book": func(ctx context.Context) error {
			_, err := l.Inbox.Record(ctx, []ledger.Inbound{sms("1", "one")}, publish)
			return err
		},
	}
	enough := ledgertest.WaitForNobody(t, server.URL())
	var working sync.WaitGroup
	for name, work := range works {
		working.Go(func() {
			for _, try := range []string{"first", "second", "third"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if err := work(ctx); err == nil {
					t.Errorf("%s: the %s try was answered while no standby had it", name, try)
				}
				cancel()
			}
		})
	}
	working.Wait()
	if n := scalar[int](t, beside, `
		select (select count(*) from dispatcher.message_states
		where id like 'waiting%') + (select count(*) from dispatcher.attempts
		where provider_reference = 'r1')
		  + (select count(*) from dispatcher.receipts where state = 'delivered') + (select count(*)
		  from dispatcher.inbound_seen)`); n != 4 {
		t.Errorf("%d of the 4 were committed: the tries after the first have shown nothing", n)
	}
	enough()
	for name, work := range works {
		if err := work(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// deserted returns a server of its own, a ledger with a channel, and a second connection whose
// commits do not wait for the standby. The ledger may use another address.
func deserted(
	t testing.TB, by func(url string) string,
) (*pgserver.Server, *pgx.Conn, *ledger.Ledger) {
	t.Helper()
	server := ledgertest.Server(t, nil)
	if err := migrations.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	if by != nil {
		url = by(url)
	}
	l := connect(t, ledger.Config{URL: url})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	beside := raw(t, server.URL())
	execute(t, beside, `set synchronous_commit = local`)
	return server, beside, l
}

// claimInVain starts a claim, and returns when its commit waits for the standby.
func claimInVain(
	ctx context.Context, t testing.TB, l *ledger.Ledger, beside *pgx.Conn, id string,
) (claimed <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	want := ledger.Claim{Messages: batch(id, 1), Channels: []string{"a"}}
	go func() { done <- runClaim(ctx, l, want, give) }()
	tier.Eventually(t, "the claim waits for the standby", func() bool {
		return scalar[bool](t, beside, `select exists (select from pg_stat_activity
			where wait_event = 'SyncRep' and application_name = 'dispatcher')`)
	})
	return done
}

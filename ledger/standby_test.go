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
// and its wait for the standby is cut off. The standby, if it took over, would give the slot
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
				return scalar[bool](t, beside, `select exists (select from dispatcher.all_attempts a
					join dispatcher.messages m on m.seq = a.message_seq
					where m.id like $1 || '%')`, name)
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

// TestAClaimHoldsNoLockWhileItWaitsForTheStandby: other claims on its channels go on meanwhile, and
// count what it took.
func TestAClaimHoldsNoLockWhileItWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	server, beside, l := deserted(t, nil)
	enough := ledgertest.WaitForNobody(t, server.URL())
	first := claimInVain(t.Context(), t, l, beside, "first")
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{
		Messages: batch("second", 1), Channels: []string{"a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if active := tx.Seen().Channels[0].Gate.Active; active.Count != 1 {
		t.Errorf("the second claim saw %+v", active)
	}
	tx.Rollback()
	select {
	case err := <-first:
		t.Errorf("the first claim was answered while no standby had it: %v", err)
	default:
	}
	enough()
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// TestOutcomesHoldNoLockWhileTheyWaitForTheStandby: a plain settlement, another one and receipts
// give slots of one channel back. All of them commit, though none is answered.
func TestOutcomesHoldNoLockWhileTheyWaitForTheStandby(t *testing.T) {
	t.Parallel()
	server, beside, l := deserted(t, nil)
	messages := batch("m", 3)
	claimAll(t, l, messages, "a")
	seqs := scalar[[]int64](t, beside, `select array_agg(seq order by id) from dispatcher.messages`)
	answer := func(i int, reference string) ledger.Settlement {
		return ledger.Settlement{
			Seq: seqs[i], ID: messages[i].ID, Attempt: 1, Outcome: provider.Accepted,
			Reference: reference, Segments: 1, State: ledger.Accepted,
		}
	}
	settle := func(s ledger.Settlement) error {
		return l.Settlements.Settle(t.Context(), []ledger.Settlement{s})
	}
	plain, tried, held := answer(0, "r0"), answer(1, "r1"), answer(2, "r2")
	tried.Tried = true
	held.Hold, held.Await = time.Hour, 72*time.Hour
	if err := settle(held); err != nil {
		t.Fatal(err)
	}
	enough := ledgertest.WaitForNobody(t, server.URL())
	ended := make(chan error, 3)
	go func() { ended <- settle(plain) }()
	go func() { ended <- settle(tried) }()
	go func() {
		_, err := l.Receipts.Receive(t.Context(),
			[]ledger.Receipt{receipt("r2", provider.Delivered)}, tellState)
		ended <- err
	}()
	tier.Eventually(t, "three commits wait for the standby", func() bool {
		return scalar[int](t, beside, `select count(*) from pg_stat_activity
			where wait_event = 'SyncRep' and application_name = 'dispatcher'`) == cap(ended)
	})
	freed := `select slots from dispatcher.freed_slots where channel = 'a'`
	if n := scalar[int](t, beside, freed); n != 3 {
		t.Errorf("%d slots were given back, want 3", n)
	}
	if n := len(ended); n > 0 {
		t.Errorf("%d calls returned while no standby had their commits", n)
	}
	enough()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestAClaimThatIsStillUnderWayIsAwaited: its caller has lost the connection, but the transaction
// goes on: before its commit, or while it waits for the standby. A snapshot cannot distinguish the
// newest transaction from one that has not begun.
func TestAClaimThatIsStillUnderWayIsAwaited(t *testing.T) {
	t.Parallel()
	var w *wiretap
	server, beside, l := deserted(t, func(url string) (tapped string) {
		w, tapped = tap(t, url)
		return tapped
	})
	w.stubborn.Store(true)
	for name, block := range map[string]func() (end func()){
		"before its commit": func() (end func()) {
			execute(t, beside, `begin; lock table dispatcher.outbox in share mode`)
			return func() { execute(t, beside, `commit`) }
		},
		"after its commit": func() (end func()) { return ledgertest.WaitForNobody(t, server.URL()) },
	} {
		t.Run(name, func(t *testing.T) {
			// The next claim gets the same connection, with its statements prepared.
			if err := claimNoticed(t.Context(), l, "warm "+name); err != nil {
				t.Fatal(err)
			}
			end := block()
			ctx, cancel := context.WithCancel(t.Context())
			claimed := claimInVain(ctx, t, l, beside, name)
			cancel()
			select {
			case err := <-claimed:
				t.Fatalf("the claim was answered while it was under way: %v", err)
			case <-time.After(500 * time.Millisecond):
			}
			end()
			if err := <-claimed; err != nil {
				t.Errorf("the claim was committed: %v", err)
			}
		})
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
	again := answer("settled-00000", "r1")
	works := map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			return runClaim(ctx, l, ledger.Claim{Messages: waiting}, give)
		},
		"settle": func(ctx context.Context) error {
			return l.Settlements.Settle(ctx, again)
		},
		"receive": func(ctx context.Context) error {
			_, err := l.Receipts.Receive(ctx, []ledger.Receipt{receipt("r2", provider.Delivered)},
				tellState)
			return err
		},
		"find nothing to cancel": func(ctx context.Context) error {
			_, err := l.Cancellations.Cancel(ctx, ledger.Canceller{}, nil)
			return err
		},
		"cancel what has not come": func(ctx context.Context) error {
			return l.Cancellations.Later(ctx, "later", ledger.Canceller{
				Author: "ann", Reason: "withdrawn", Via: ledger.ViaTopic,
			})
		},
		"book": func(ctx context.Context) error {
			_, err := l.Inbox.Record(ctx, []ledger.Inbound{sms("1", "one")}, publish)
			return err
		},
	}
	enough := ledgertest.WaitForNobody(t, server.URL())
	first, cutOff := context.WithCancel(t.Context())
	defer cutOff()
	var working sync.WaitGroup
	for name, work := range works {
		working.Go(func() {
			try := func(ctx context.Context, which string) {
				if err := work(ctx); err == nil {
					t.Errorf("%s: the %s try was answered while no standby had it", name, which)
				}
			}
			try(first, "first")
			for _, which := range []string{"second", "third"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				try(ctx, which)
				cancel()
			}
		})
	}
	tier.Eventually(t, "the first tries wait for the standby", func() bool {
		return scalar[int](t, beside, `select count(*) from pg_stat_activity
			where wait_event = 'SyncRep' and application_name = 'dispatcher'`) == len(works)
	})
	cutOff()
	working.Wait()
	if n := scalar[int](t, beside, `
		select (select count(*) from dispatcher.message_states where id like 'waiting%')
		  + (select count(*) from dispatcher.all_attempts where provider_reference = 'r1')
		  + (select count(*) from dispatcher.receipts where state = 'delivered')
		  + (select count(*) from dispatcher.inbound_seen)`); n != 4 {
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
	l := connect(t, ledger.Config{URL: url, MaxConns: 8})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	beside := raw(t, server.URL())
	execute(t, beside, `set synchronous_commit = local`)
	return server, beside, l
}

// claimInVain starts a claim, and returns when it waits for the standby, or for a lock.
func claimInVain(
	ctx context.Context, t testing.TB, l *ledger.Ledger, beside *pgx.Conn, id string,
) (claimed <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- claimNoticed(ctx, l, id) }()
	tier.Eventually(t, "the claim waits", func() bool {
		return scalar[bool](t, beside, `select exists (select from pg_stat_activity
			where (wait_event = 'SyncRep' or wait_event_type = 'Lock')
			  and application_name = 'dispatcher')`)
	})
	return done
}

// claimNoticed claims a message on channel a, with a status event.
func claimNoticed(ctx context.Context, l *ledger.Ledger, id string) error {
	want := ledger.Claim{Messages: batch(id, 1), Channels: []string{"a"}}
	return runClaim(ctx, l, want, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d, err := give(seen)
		d.Notices = []ledger.Notice{{Kind: ledger.Status, Key: id, Value: []byte(`{}`)}}
		return d, err
	})
}

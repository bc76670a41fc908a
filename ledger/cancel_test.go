package ledger_test

import (
	"sync"
	"testing"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// cancellation ends a message as it is stored.
func cancellation(t testing.TB, l *ledger.Ledger, id string) *ledger.Cancellation {
	t.Helper()
	r, err := l.Messages.Record(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	m := &r.Message
	return &ledger.Cancellation{
		Seq: m.Seq, State: m.State, Attempts: m.Attempts, Author: "ann", Reason: "wrong day",
		Notice: ledger.Notice{Kind: ledger.Status, Key: id, Value: []byte(`{"cancelled":1}`)},
	}
}

func TestACancelledMessageEndsAndIsOnRecord(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	letWait(t, db, 2)
	id := scalar[string](t, db, `select min(id) from dispatcher.messages`)
	c := cancellation(t, l, id)
	for i, want := range []bool{true, false} {
		if ended, err := l.Messages.Cancel(t.Context(), c); ended != want || err != nil {
			t.Fatalf("call %d: %v, %v", i, ended, err)
		}
	}
	for sql, want := range map[string]int{
		`select count(*) from audit.operator_actions where action = 'cancel' and author = 'ann'`: 1,
		`select count(*) from dispatcher.messages where state = 'failed' and reason = 'cancelled'
			and finished_at is not null`: 1,
		`select count(*) from dispatcher.due`:                          1,
		`select cardinality(keys) from dispatcher.outbox limit 1`:      1,
		`select count(*) from dispatcher.outbox where kind = 'status'`: 1,
	} {
		if got := scalar[int](t, db, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

func TestNothingIsCancelledThatMayBeTaken(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, l, batch("sending", 1), "a")
	answers(t, l, "refused", "a", provider.Refused, "503")
	answers(t, l, "unknown", "a", provider.Refused, "503")
	execute(t, db, `update dispatcher.attempts set outcome = 'unknown' where message_seq =
		(select seq from dispatcher.messages where id = 'unknown-00000')`)
	answers(t, l, "part", "a", provider.Refused, "503")
	execute(t, db, `update dispatcher.messages set parts_left = '{2}', parts_cut = 'x'
		where id = 'part-00000'`)
	for id, want := range map[string]bool{
		"sending-00000": false, "refused-00000": true, "unknown-00000": false, "part-00000": false,
	} {
		c := cancellation(t, l, id)
		if ended, err := l.Messages.Cancel(t.Context(), c); ended != want || err != nil {
			t.Errorf("%s (%s): %v, %v", id, c.State, ended, err)
		}
	}
}

// TestNothingIsBothCancelledAndSent while two instances claim the messages that operators cancel.
func TestNothingIsBothCancelledAndSent(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	ledgers := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: 4}),
		connect(t, ledger.Config{URL: url, MaxConns: 4}),
	}
	db := raw(t, url)
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a"})
	n := tier.Size(150, 1500)
	letWait(t, db, n)
	var cancellations []*ledger.Cancellation
	for _, id := range scalar[[]string](t, db,
		`select array_agg(id order by seq desc) from dispatcher.messages`) {
		cancellations = append(cancellations, cancellation(t, ledgers[0], id))
	}
	execute(t, db, `update dispatcher.messages set next_at = now()`)
	// Both sides have begun before either goes on: claims with the first messages, operators with the
	// last ones.
	claimed, cancelling := make(chan struct{}), make(chan struct{})
	haveClaimed, haveCancelled := sync.OnceFunc(func() { close(claimed) }),
		sync.OnceFunc(func() { close(cancelling) })
	var work sync.WaitGroup
	for _, l := range ledgers {
		work.Go(func() {
			for i := range n {
				if i == 1 {
					haveClaimed()
					<-cancelling
				}
				err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}}, give)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	cancelled := 0
	for half := range 2 {
		work.Go(func() {
			defer haveCancelled()
			<-claimed
			for i := half; i < len(cancellations); i += 2 {
				ended, err := ledgers[half].Messages.Cancel(t.Context(), cancellations[i])
				if err != nil {
					t.Error(err)
				}
				haveCancelled()
				if ended {
					mu.Lock()
					cancelled++
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	sent := scalar[int](t, db, `select count(*) from dispatcher.attempts`)
	ended := scalar[int](t, db, `select count(*) from dispatcher.messages
		where state = 'failed' and reason = 'cancelled'`)
	both := scalar[int](t, db, `select count(*) from dispatcher.messages m
		join dispatcher.attempts a on a.message_seq = m.seq where m.state = 'failed'`)
	told := scalar[int](t, db, `select count(*) from dispatcher.outbox
		where "values"[1] = convert_to('{"cancelled":1}', 'UTF8')`)
	t.Logf("%d sent, %d cancelled", sent, ended)
	if both != 0 || sent+ended != n || ended != cancelled || told != ended {
		t.Errorf("%d messages: %d sent, %d cancelled, of which %d were said to be and %d told; %d both",
			n, sent, ended, cancelled, told, both)
	}
	if sent == 0 || ended == 0 {
		t.Error("there was no race")
	}
}

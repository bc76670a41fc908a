package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// checkRising reports a status event whose Seq is not above that of the event before it about the
// same message, or whose time is earlier. It returns the number of events by message.
func checkRising(t testing.TB, published []ledger.Notice) map[string]int {
	t.Helper()
	last, events := map[string]ledger.Notice{}, map[string]int{}
	for _, n := range published {
		if n.Kind != ledger.Status {
			continue
		}
		was := last[n.Key]
		if n.Seq <= was.Seq {
			t.Errorf("%s: %s has seq %d after %s with %d", n.Key, n.Value, n.Seq, was.Value,
				was.Seq)
		}
		if n.At.Before(was.At) || n.At.IsZero() {
			t.Errorf("%s: %s is of %s, after %s of %s", n.Key, n.Value, n.At, was.Value, was.At)
		}
		last[n.Key] = n
		events[n.Key]++
	}
	return events
}

// TestEventsOfAMessageAreNumberedAndTimedInTheirOrder: two processes claim, settle, settle late,
// settle again, resolve ambiguities and store receipts of the same messages at the same time, while
// a third publishes.
func TestEventsOfAMessageAreNumberedAndTimedInTheirOrder(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := connect(t, ledger.Config{URL: rig.url, MaxConns: tier.Size(0, 8)})
	other := connect(t, ledger.Config{URL: rig.url, MaxConns: tier.Size(0, 8)})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	db := rig.db
	var published []ledger.Notice
	for round := range tier.Size(2, 12) {
		var shown []ledger.Message
		err := runClaim(t.Context(), l, ledger.Claim{
			Messages: batch(fmt.Sprintf("m%02d", round), 12), Channels: []string{"a"},
		}, func(seen *ledger.Seen) (ledger.Decisions, error) {
			shown = seen.Messages
			d, err := give(seen)
			for i := range shown {
				d.Notices = append(d.Notices, ledger.Notice{
					Kind: ledger.Status, Key: shown[i].ID,
					Value: []byte("sending"),
				})
			}
			return d, err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range shown {
			compete(t, []*ledger.Ledger{l, other}, shown[i])
		}
		published = append(published, collect(t, l)...)
	}
	published = append(published, collect(t, l)...)
	events := checkRising(t, published)
	for id, n := range events {
		if n < 2 {
			t.Errorf("%s has %d events", id, n)
		}
	}
	rows, err := db.Query(t.Context(), `select id, state from dispatcher.message_states`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	final := map[string]string{}
	for _, n := range published { // the highest number wins, in whatever order
		final[n.Key] = stateOf(n.Value)
	}
	for rows.Next() {
		var id, state string
		if err := rows.Scan(&id, &state); err != nil {
			t.Fatal(err)
		}
		if final[id] != state {
			t.Errorf("%s is %s and its last event says %s", id, state, final[id])
		}
	}
}

// stateOf is the first word of an event of these tests.
func stateOf(value []byte) string {
	var state string
	_, _ = fmt.Sscan(string(value), &state)
	return state
}

// compete settles one attempt and stores its receipts from several processes at once.
func compete(t *testing.T, ledgers []*ledger.Ledger, m ledger.Message) {
	t.Helper()
	status := func(state ledger.State) *ledger.Notice {
		return &ledger.Notice{Kind: ledger.Status, Key: m.ID, Value: []byte(state)}
	}
	yes := accepted([]ledger.Message{m})[0]
	yes.Reference, yes.Await, yes.Notice = "r-"+m.ID, time.Hour, status(ledger.Accepted)
	lost := yes
	lost.Outcome, lost.State, lost.Reference, lost.Await, lost.Notice = provider.Unknown,
		ledger.Unknown, "", 0, status(ledger.Unknown)
	deeds := []func(on *ledger.Ledger) error{
		func(on *ledger.Ledger) error {
			return on.Settlements.Settle(t.Context(), []ledger.Settlement{lost})
		},
		func(on *ledger.Ledger) error {
			return on.Settlements.Settle(t.Context(), []ledger.Settlement{yes})
		},
		func(on *ledger.Ledger) error {
			return on.Settlements.Settle(t.Context(), []ledger.Settlement{yes})
		},
	}
	for _, state := range []provider.ReceiptState{provider.Undelivered, provider.Delivered} {
		r := receipt(yes.Reference, state)
		r.Seq, r.Attempt = m.Seq, 1
		deeds = append(deeds, func(on *ledger.Ledger) error {
			_, err := on.Receipts.Receive(t.Context(), []ledger.Receipt{r}, tellState)
			return err
		})
	}
	rand.Shuffle(len(deeds), func(i, j int) { deeds[i], deeds[j] = deeds[j], deeds[i] })
	var all sync.WaitGroup
	for i, deed := range deeds {
		all.Go(func() {
			if err := deed(ledgers[i%len(ledgers)]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, on := range ledgers {
		if _, err := on.Receipts.Overdue(t.Context(), 100, tellState); err != nil {
			t.Error(err)
		}
	}
}

// TestAnEventIsTimedAfterItsMessageWasLocked: a transaction that stores receipts begins and waits
// for a row of another message. Meanwhile the settlement begins and ends.
func TestAnEventIsTimedAfterItsMessageWasLocked(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l := connect(t, ledger.Config{URL: url, MaxConns: 2})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	db, blocker := raw(t, url), raw(t, url)
	// kept, because nobody knows its message
	receive(t, l, receipt("a-first", provider.Undelivered))
	m := claimAll(t, l, batch("m", 1), "a").Messages[0]
	execute(t, blocker, `begin`)
	execute(t, blocker, `select from dispatcher.receipts where reference = 'a-first' for update`)
	received := waiting(t, db, func() error {
		_, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
			receipt("a-first", provider.Delivered), receipt("r1", provider.Delivered),
		}, tellState)
		return err
	})
	s := expecting(m, "r1")
	s[0].Notice = &ledger.Notice{Kind: ledger.Status, Key: m.ID, Value: []byte("accepted")}
	settleAll(t, l, s)
	execute(t, blocker, `commit`)
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	// The rows themselves: Publish would correct their times.
	if !scalar[bool](t, db, `
		select count(*) = 2 and bool_and(later) from (
		  select coalesce(created_at >= lag(created_at) over (order by seq), true) as later
		  from dispatcher.outbox) o`) {
		t.Errorf("%s", scalar[[]string](t, db,
			`select array_agg(seq || ' ' || created_at order by seq) from dispatcher.outbox`))
	}
	if events := checkRising(t, collect(t, l)); events[m.ID] != 2 {
		t.Errorf("%d events", events[m.ID])
	}
}

// TestAClockThatIsSetBackDoesNotSetAnEventBack: the clock of the database, or that of a server that
// takes over.
func TestAClockThatIsSetBackDoesNotSetAnEventBack(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	l := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 2)})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, batch("m", 1), "a").Messages[0]
	s := expecting(m, "r1")
	s[0].Notice = &ledger.Notice{Kind: ledger.Status, Key: m.ID, Value: []byte("accepted")}
	settleAll(t, l, s)
	published := collect(t, l)
	for _, state := range []provider.ReceiptState{provider.Undelivered, provider.Delivered} {
		receive(t, l, receipt("r1", state))
		execute(t, db, `update dispatcher.outbox set created_at = created_at - interval '1 second'`)
	}
	if events := checkRising(t, append(published, collect(t, l)...)); events[m.ID] != 3 {
		t.Errorf("%d events", events[m.ID])
	}
}

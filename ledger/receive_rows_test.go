package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// states are the states of all messages, by id.
const states = `select coalesce(string_agg(id || ' ' || state, ', ' order by id), '')
	from dispatcher.message_states`

// A provider gives the same id again, at once by mistake, or later when its counter wraps around.
func TestAReferenceThatIsGivenAgain(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	m := claimAll(t, l, batch("m", 3), "a").Messages
	both := append(expecting(m[0], "r1"), expecting(m[1], "r1")...)
	settleAll(t, l, both)
	settleAll(t, l, both)
	settleAll(t, l, both[1:])
	receive(t, l, receipt("r1", provider.Delivered))
	if got := scalar[string](t, db,
		states); got != "m-00000 delivered, m-00001 accepted, m-00002 sending" {
		t.Fatalf("while the first waits: %s", got)
	}
	settleAll(t, l, expecting(m[2], "r1")) // the first has been delivered
	receive(t, l, receipt("r1", provider.Undelivered))
	timeUp(t, db)
	overdue(t, l)
	if got := scalar[string](t, db,
		states); got != "m-00000 delivered, m-00001 no_receipt, m-00002 undelivered" {
		t.Errorf("when the counter has come round: %s", got)
	}
	got := scalar[string](t, db,
		`select string_agg(concat_ws(' ', message_id, attempt, part, channel, reference, state),
			', ' order by message_id) from audit.receipts`)
	if want := "m-00001 1 1 a r1 expected, m-00002 1 1 a r1 undelivered"; got != want {
		t.Errorf("audit.receipts has %s, want %s", got, want)
	}
}

func TestOneReferenceForAllPartsNeedsOneReceipt(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1 r1 r1"))
	if got := receive(t, l, receipt("r1", provider.Delivered), receipt("r1", provider.Delivered),
		receipt("r1", provider.Undelivered)); got != (ledger.ReceiptCounts{
		Matched: 1, Repeated: 2,
	}) {
		t.Errorf("%+v", got)
	}
	if got := see(states); got != "m delivered" {
		t.Error(got)
	}
}

func TestOddReferencesAreNoTrouble(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	long := strings.Repeat("x", 5000)
	settleAll(t, l, expecting(m, "zero\x00byte broken\xff "+long))
	got := receive(t, l, receipt("zero\x00byte", provider.Delivered),
		receipt(long, provider.Delivered), receipt("two words", provider.Delivered),
		receipt("broken\xff", provider.Delivered), receipt("", provider.Delivered))
	if got != (ledger.ReceiptCounts{Matched: 2, Repeated: 3}) {
		t.Errorf("%+v", got)
	}
	if got := see(states); got != "m delivered" {
		t.Error(got)
	}
}

func TestReceiptsOfAnotherChannelChangeNothing(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1"))
	strange := receipt("r1", provider.Delivered)
	strange.Channel = "b"
	if got := receive(t, l, strange); got != (ledger.ReceiptCounts{Early: 1}) {
		t.Errorf("%+v", got)
	}
	if got := see(story); got != "accepted accepted |" {
		t.Error(got)
	}
}

func TestReceiptsThatNobodyKnowsAreDroppedWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	l, db, s := holding(t, 2)
	receive(t, l, receipt(s[0].Reference, provider.Delivered),
		receipt("strange", provider.Delivered), receipt("new", provider.Delivered))
	execute(t, db, `update dispatcher.receipts set received_at = now() - interval '2 days'
		where reference <> 'new' and received_at is not null`)
	if n, err := l.Receipts.Drop(t.Context(), 24*time.Hour); n != 1 || err != nil {
		t.Errorf("%d dropped, %v", n, err)
	}
	if got := scalar[string](t, db,
		`select string_agg(reference, ' ' order by reference)
			from dispatcher.receipts`); got != "new ref-m-00000 ref-m-00001" {
		t.Error(got)
	}
}

func TestASettlementMayExpectNoReceipts(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, accepted([]ledger.Message{m}))
	if got := receive(t, l, receipt("ref-m", provider.Delivered)); got != (ledger.ReceiptCounts{
		Early: 1,
	}) {
		t.Errorf("%+v", got)
	}
	if got := see(states); got != "m accepted" {
		t.Error(got)
	}
}

func TestReceiptsTakeThreeRoundTripsAndASettlementThatExpectsThemOne(t *testing.T) {
	t.Parallel()
	w, l, _ := openTapped(t)
	for round := range 3 { // the first prepares the statements
		m := claimAll(t, l, batch(fmt.Sprintf("m%d", round), 500), "a").Messages
		s, receipts := accepted(m), make([]ledger.Receipt, len(m))
		for i := range s {
			s[i].Await, s[i].Hold = time.Hour, time.Hour
			receipts[i] = receipt(s[i].Reference, provider.Delivered)
		}
		before := w.trips.Load()
		settleAll(t, l, s)
		settled := w.trips.Load()
		if got := receive(t, l, receipts...); got != (ledger.ReceiptCounts{
			Matched: 500, Freed: 500,
		}) {
			t.Fatalf("%+v", got)
		}
		if n, r := settled-before, w.trips.Load()-settled; round > 0 && (n != 1 || r != 3) {
			t.Errorf("%d round trips for a settlement and %d for its receipts", n, r)
		}
	}
}

func TestReceiveRepeatedAfterALostReplyHasTheEffectOfOnce(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]int32{"request lost": request, "reply lost": reply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l, url := openTapped(t)
			db := raw(t, url)
			for trip := range int32(3) {
				s := accepted(claimAll(t, l, batch(fmt.Sprint("m", trip), 10), "a").Messages)
				receipts := make([]ledger.Receipt, len(s))
				for i := range s {
					s[i].Await, s[i].Hold, s[i].Notice = time.Hour, time.Hour, nil
					receipts[i] = receipt(s[i].Reference, provider.Delivered)
				}
				settleAll(t, l, s)
				w.lose(what, trip)
				if _, err := l.Receipts.Receive(t.Context(), receipts,
					tellState); !ledger.Unavailable(err) {
					t.Fatalf("trip %d: got %v", trip, err)
				}
				receive(t, l, receipts...)
				if n := scalar[int](t, db, `select active from audit.active`); n != 0 {
					t.Errorf("trip %d: %d slots are taken", trip, n)
				}
				want := 10 * int(trip+1)
				if n := scalar[int](t, db, `select count(*) from dispatcher.message_states
					where state = 'delivered'`); n != want {
					t.Errorf("trip %d: %d are delivered, want %d", trip, n, want)
				}
				if n := scalar[int](t, db, `select count(*) from dispatcher.outbox o, unnest(o."values") v
					where convert_from(v, 'UTF8') like 'delivered%'`); n != want {
					t.Errorf("trip %d: %d notices, want %d", trip, n, want)
				}
			}
		})
	}
}

func TestReceiptsAreFoundThroughTheirIndexes(t *testing.T) {
	t.Parallel()
	db := raw(t, ledgertest.Fresh(t))
	execute(t, db, `
		insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, due_at,
		  look_at)
		select 'a', 'r' || n, n, 1, 1, at, at from generate_series(1, 5000) n, lateral (
		  select case when n % 100 = 0 then now() + n * interval '1 second' end as at) d`)
	execute(t, db, `
		insert into dispatcher.receipts (channel, reference, state, received_at) select 'a',
		  'e' || n, 'delivered', now() from generate_series(1, 200) n`)
	execute(t, db, `analyze dispatcher.receipts`)
	for sql, index := range map[string]string{
		`select from dispatcher.receipts where look_at <= now() order by look_at
			limit 500`: "receipts_look_at",
		`select from dispatcher.receipts
			where early_since < now() - interval '1 day' order by early_since`: "receipts_early",
		`select from dispatcher.receipts
			where message_seq = 5`: "receipts_message_seq",
		`select from dispatcher.receipts where channel = 'a' and reference = 'r5'`: "receipts_pkey",
		`select from audit.receipts
			where message_id = 'm'`: "receipts_message_seq",
		`select from audit.receipts where channel = 'a' and reference = 'r5'`: "receipts",
	} {
		if got := ledger.PlanOf(t, db, sql); !strings.Contains(got, index) {
			t.Errorf("%s\n%s", sql, got)
		}
	}
}

// TestSettlementsAndReceiptsContend: settlements and corrections, receipts with and without keys,
// early and late, in both orders of references, calls of Overdue, claims of resends and ends of
// holds, by two instances at once. There is no deadlock, and every round has the same result.
func TestSettlementsAndReceiptsContend(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	ledgers := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 6)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 6)}),
	}
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a", ActiveMax: 10000}, ledger.ChannelSpec{
		Name: "b", ActiveMax: 10000,
	})
	rounds := tier.Size(1, 8)
	for round := range rounds {
		contend(t, ledgers, round)
		overdue(t, ledgers[0])
		release(t, ledgers[0])
		if n := scalar[int](t, db,
			`select count(*) from dispatcher.message_states where state <> 'delivered'`); n != 0 {
			t.Fatalf("%d messages are not delivered", n)
		}
		if n := activeOn(t, db, "a") + activeOn(t, db, "b"); n != 0 {
			t.Fatalf("%d active", n)
		}
		if n := scalar[int](t, db,
			`select count(*) from dispatcher.receipts where message_seq is null`); n != 0 {
			t.Fatalf("%d receipts have no message", n)
		}
		if got := amiss(t, db, always...); got != "" {
			t.Fatal(got)
		}
	}
}

// contend settles messages on two channels and receives receipts for them, concurrently and
// repeatedly.
func contend(t *testing.T, ledgers []*ledger.Ledger, round int) {
	t.Helper()
	const n = 60
	var settlements []ledger.Settlement
	var receipts []ledger.Receipt
	for _, channel := range []string{"a", "b"} {
		for i, m := range claimAll(t, ledgers[0], batch(fmt.Sprintf("%s%d", channel, round), n),
			channel).Messages {
			s := accepted([]ledger.Message{m})[0]
			s.Await = time.Hour
			s.Hold = time.Hour
			s.Reference = fmt.Sprintf("%03d-%d-1 %03d-%d-2", (i*37)%n, round, (i*53)%n, round)
			if i%5 == 0 { // first it is not known, and seems to owe a receipt more
				u := unknown(m)
				u.Receipts, s.Receipts = 3, 2
				settlements = append(settlements, u)
			}
			settlements = append(settlements, s)
			for reference := range strings.FieldsSeq(s.Reference) {
				r := ledger.Receipt{
					Channel: channel, Reference: reference,
					State: provider.Delivered,
				}
				if i%3 == 0 {
					r.Seq, r.Attempt = m.Seq, 1
				}
				receipts = append(receipts, ledger.Receipt{Channel: channel, Reference: reference},
					r)
			}
		}
	}
	var workers sync.WaitGroup
	for worker := range 12 {
		l := ledgers[worker%2]
		workers.Go(func() {
			var err error
			switch worker % 4 {
			case 0: // all at once, the unknown ones first
				err = l.Settlements.Settle(t.Context(), settlements)
			case 1, 2: // in small batches, in either direction
				for at := 0; at < len(receipts) && err == nil; at += 40 {
					chunk := receipts[at:min(at+40, len(receipts))]
					if worker%4 == 2 {
						back := len(receipts) - at
						chunk = receipts[max(back-40, 0):back]
					}
					_, err = l.Receipts.Receive(t.Context(), chunk, tellState)
				}
			default:
				if _, err = l.Receipts.Overdue(t.Context(), 1000, tellState); err == nil {
					_, err = l.Settlements.ReleaseSlots(t.Context(), time.Hour)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	settleAll(t, ledgers[1], settlements)
	receive(t, ledgers[0], receipts...)
}

// TestReceiptsRewriteNoIndex: updates by receipts fit into the page of the row, and no index has a
// column that they change, so they are heap-only.
func TestReceiptsRewriteNoIndex(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url, MaxConns: 1}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	for _, prefix := range []string{"a", "b", "c", "d"} {
		s := accepted(claimAll(t, l, batch(prefix, 500), "a").Messages)
		var pending, last []ledger.Receipt
		for i := range s {
			s[i].Await = 72 * time.Hour
			first, second := receipt(s[i].Reference, provider.Pending),
				receipt(s[i].Reference, provider.Delivered)
			first.Code, second.Code = "", "000"
			if last = append(last, second); i%20 == 0 {
				pending = append(pending, first)
			}
		}
		settleAll(t, l, s)
		receive(t, l, pending...)
		receive(t, l, last...)
	}
	l.Close() // sessions report their statistics at their end, at the latest
	var updated, hot float64
	for updated < 2100 && t.Context().Err() == nil {
		if err := db.QueryRow(t.Context(), `select n_tup_upd, n_tup_hot_upd
			from pg_stat_user_tables where relname = 'receipts'`).Scan(&updated, &hot); err != nil {
			t.Fatal(err)
		}
	}
	if hot < 0.97*updated || updated != 2100 {
		t.Errorf("%.0f of %.0f updates were heap-only", hot, updated)
	}
}

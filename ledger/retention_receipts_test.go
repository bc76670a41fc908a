package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// fortnight is for how long receipts stay where new ones find them.
const fortnight = 14 * 24 * hour

// received sets when the receipt of a message came.
func (k *keeping) received(t testing.TB, id string, ago time.Duration) {
	t.Helper()
	k.exec(t, `update dispatcher.receipts set state = 'delivered',
		received_at = now() - $2::interval where reference = 'ref-' || $1`, id, ago)
}

// withoutReceipt stores a message that ended so long ago because its receipt had not come.
func (k *keeping) withoutReceipt(t testing.TB, id string, age int, ended time.Duration) (seq int64) {
	t.Helper()
	seq = k.message(t, id, age, never)
	k.exec(t, `update dispatcher.messages set state = 'no_receipt', finished_at = now() - $2::interval
		where seq = $1`, seq, ended)
	k.exec(t, `update dispatcher.receipts set due_at = null where message_seq = $1`, seq)
	return seq
}

// receipts are the references in a table or view, in order.
func (k *keeping) receipts(t testing.TB, from string) string {
	t.Helper()
	return scalar[string](t, k.db, `select coalesce(string_agg(reference, ' ' order by reference), '')
		from `+from)
}

func TestReceiptsMoveWhenOnlyAReceiptCanChangeTheirMessage(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	ended := fortnight + hour
	k.message(t, "delivered", 15, ended)
	k.received(t, "delivered", ended)
	k.withoutReceipt(t, "without", 40, ended)

	k.message(t, "young", 14, ended) // its day has not ended two weeks ago
	k.message(t, "ended-late", 40, fortnight-hour)
	k.message(t, "received-late", 40, ended)
	k.received(t, "received-late", fortnight-hour)
	k.message(t, "awaited", 40, never)
	k.received(t, "awaited", ended)
	unknown := k.message(t, "unknown", 40, ended)
	k.exec(t, `update dispatcher.attempts set outcome = 'unknown' where message_seq = $1`, unknown)
	again := k.message(t, "sent-again", 40, never)
	k.exec(t, `update dispatcher.messages set next_at = now() where seq = $1`, again)
	k.received(t, "sent-again", ended)
	k.exec(t, `update dispatcher.receipts set due_at = null where message_seq = $1`, again)
	some := k.message(t, "some", 40, ended)
	k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part,
		state, received_at) values ('a', 'ref-some-2', $1, 1, 2, 'delivered', now())`, some)
	k.message(t, "of-old", 60, ended)
	k.exec(t, `update dispatcher.days set receipts_move = false where day = $1`, k.today-60)

	all := scalar[string](t, k.db, `select string_agg(r::text, ' ' order by reference)
		from audit.receipts r`)
	kept := k.keep(t, week)
	if kept.Receipts != 2 {
		t.Errorf("%d receipts moved, want 2", kept.Receipts)
	}
	if got := k.receipts(t, "dispatcher.past_receipts"); got != "ref-delivered ref-without" {
		t.Errorf("there moved %s", got)
	}
	if got := k.receipts(t, "dispatcher.receipts"); strings.Count(got, " ") != 8 {
		t.Errorf("there stayed %s", got)
	}
	if got := scalar[string](t, k.db, `select string_agg(r::text, ' ' order by reference)
		from audit.receipts r`); got != all {
		t.Errorf("audit.receipts had\n%s\nand has\n%s", all, got)
	}
	if kept := k.keep(t, week); kept.Any() {
		t.Errorf("a second call did %+v", kept)
	}
	for _, day := range []ledger.Day{k.today - 14, k.today - 60} {
		if _, err := k.db.Exec(t.Context(), `select dispatcher.move_receipts($1, 0)`,
			day); err == nil {
			t.Errorf("receipts of %s can be moved", day)
		}
	}
}

// TestManyReceiptsOfADayMove, in more than one batch.
func TestManyReceiptsOfADayMove(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	const messages = 12_000
	k.exec(t, `select dispatcher.make_day($1)`, k.today-30)
	k.exec(t, `insert into dispatcher.messages (seq, id, lane, tenant, state, attempts,
		  received_at, finished_at, number_hmac, envelope_hmac)
		select dispatcher.first_of($1) + n, 'm-' || n, 'otp', 'shop', 'delivered', 1,
		  now() - interval '30 days', now() - interval '30 days', 1, 1
		from generate_series(1, $2::int) n`, k.today-30, messages)
	k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part)
		select 'a', md5(n::text), dispatcher.first_of($1) + (n + 1) / 2, 1, 1 + n % 2
		from generate_series(1, 2 * $2::int) n`, k.today-30, messages)
	if kept := k.keep(t, week); kept.Receipts != 2*messages {
		t.Errorf("%d receipts moved, want %d", kept.Receipts, 2*messages)
	}
	if n := scalar[int](t, k.db, `select count(*) from dispatcher.receipts`); n != 0 {
		t.Errorf("%d receipts are left", n)
	}
}

// TestAReceiptAfterTheOthersMovedChangesNothing: it is stored and follows them two weeks later.
func TestAReceiptAfterTheOthersMovedChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	apply(t, k.l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000})
	const ended = fortnight + hour
	seqs := map[string]int64{}
	for id, age := range map[string]int{"moved": 15, "without-key": 15, "stayed": 14} {
		seqs[id] = k.withoutReceipt(t, id, age, ended)
	}
	k.keep(t, week)
	for id, seq := range seqs {
		if id == "without-key" {
			continue
		}
		r := receipt("ref-"+id, provider.Delivered)
		r.Seq, r.Attempt = seq, 1
		if _, err := k.l.Receipts.Receive(t.Context(), []ledger.Receipt{r}, nil); err != nil {
			t.Fatal(err)
		}
	}
	state := func(id string) string {
		t.Helper()
		return scalar[string](t, k.db, `select state from audit.messages where id = $1`, id)
	}
	if moved, stayed := state("moved"), state("stayed"); moved != "no_receipt" ||
		stayed != "delivered" {
		t.Errorf("the messages are %s and %s", moved, stayed)
	}
	got, err := k.l.Receipts.Receive(t.Context(),
		[]ledger.Receipt{receipt("ref-moved", provider.Delivered)}, nil)
	if err != nil || got.Matched+got.Early != 0 {
		t.Errorf("the receipt again: %+v, %v", got, err)
	}
	if got := k.receipts(t, "audit.receipts"); got != "ref-moved ref-moved "+
		"ref-stayed ref-without-key" {
		t.Errorf("there are %s", got)
	}
	got, err = k.l.Receipts.Receive(t.Context(),
		[]ledger.Receipt{receipt("ref-without-key", provider.Delivered)}, nil)
	if err != nil || got.Early != 1 {
		t.Errorf("a receipt without our key: %+v, %v", got, err)
	}
	k.exec(t, `update dispatcher.receipts set received_at = received_at - interval '15 days'
		where reference = 'ref-moved'`)
	k.exec(t, `update dispatcher.days set receipts_looked_at = receipts_looked_at - interval '1 day'`)
	if kept := k.keep(t, week); kept.Receipts != 1 {
		t.Errorf("%d receipts moved, want 1", kept.Receipts)
	}
	if got := state("moved"); got != "no_receipt" {
		t.Errorf("the message is %s", got)
	}
}

// TestReceiptsThatComeWhileOthersMove take effect, or come too late: never half.
func TestReceiptsThatComeWhileOthersMove(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	apply(t, k.l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000})
	const messages = 200
	seqs := make([]int64, messages)
	for i := range seqs {
		id := fmt.Sprint(i)
		seqs[i] = k.withoutReceipt(t, id, 15, fortnight+hour)
		k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part,
			state, received_at) values ('a', 'ref-2-' || $1, $2, 1, 2, 'delivered',
			now() - interval '15 days')`, id, seqs[i])
	}
	var all sync.WaitGroup
	some := make(chan struct{})
	for n := range 4 {
		all.Go(func() {
			for i := n; i < messages; i += 4 {
				if i == 40 {
					close(some)
				}
				r := receipt(fmt.Sprintf("ref-%d", i), provider.Delivered)
				r.Seq, r.Attempt = seqs[i], 1
				if _, err := k.l.Receipts.Receive(t.Context(), []ledger.Receipt{r}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	<-some
	kept := k.keep(t, week)
	all.Wait()
	t.Logf("%d receipts moved", kept.Receipts)
	if n := scalar[int](t, k.db, `
		select count(*) from dispatcher.messages m
		where 2 <> (select count(*) from dispatcher.receipts r where r.message_seq = m.seq
		    and r.part is not null and m.state = 'delivered')
		  and 2 <> (select count(*) from dispatcher.past_receipts p where p.message_seq = m.seq
		    and p.part is not null and m.state = 'no_receipt')`); n != 0 {
		t.Errorf("%d messages are between", n)
	}
}

// TestReceiptsMoveToAPartitionThatAllSessionsKnow: it is made in a transaction of its own.
func TestReceiptsMoveToAPartitionThatAllSessionsKnow(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.withoutReceipt(t, "m", 15, fortnight+hour)
	locking := raw(t, k.url)
	execute(t, locking, `begin; select from dispatcher.receipts for update`)
	done := waiting(t, k.db, func() error {
		_, err := k.l.Days.Keep(t.Context(), week)
		return err
	})
	if n := scalar[int](t, k.db, `select count(*) from pg_inherits
		where inhparent = 'dispatcher.past_receipts'::regclass`); n != 1 {
		t.Errorf("past_receipts has %d partitions while its first rows come", n)
	}
	execute(t, locking, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := k.receipts(t, "dispatcher.past_receipts"); got != "ref-m" {
		t.Errorf("there moved %q", got)
	}
}

// TestAReusedReferenceIsRemembered when the row of receipts has moved, until the day is dropped.
func TestAReusedReferenceIsRemembered(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	first := k.message(t, "first", 40, 20*24*hour) // longer ago than half of the retention below
	second := k.message(t, "second", 30, 20*24*hour)
	k.exec(t, `delete from dispatcher.receipts where reference = 'ref-second'`)
	k.exec(t, `update dispatcher.receipts set message_seq = $1`, second)
	k.keep(t, week)
	if got := k.receipts(t, "dispatcher.past_receipts"); got != "ref-first" {
		t.Fatalf("there moved %q", got)
	}
	reused := func() bool {
		t.Helper()
		yes, err := k.l.Sealed.Reused(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if !reused() {
		t.Error("it is not known that the reference was used again")
	}
	k.exec(t, `update dispatcher.least_kept set facts = interval '35 days'`)
	k.keep(t, ledger.Retention{IDs: week.IDs, Payloads: week.Payloads, Facts: 35 * 24 * hour})
	if reused() {
		t.Error("it is remembered after the day of the message was dropped")
	}
	if got := k.receipts(t, "audit.receipts"); got != "ref-first" {
		t.Errorf("there are receipts %q", got)
	}
}

// TestReceiptsThatMovedAreStillCompared with the attempts, and found when they were changed. They
// are dropped with their day.
func TestReceiptsThatMovedAreStillCompared(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	const ended = 22 * 24 * hour // longer ago than half of the retention below
	for id, age := range map[string]int{"old": 40, "older": 45} {
		seq := k.message(t, id, age, ended)
		k.received(t, id, ended)
		k.exec(t, `update dispatcher.attempts a set provider_reference = r.reference,
			claimed_at = r.received_at - interval '1 minute', settled_at = r.received_at,
			receipt_state = 'delivered', receipt_at = r.received_at, delivered_at = r.received_at
			from dispatcher.receipts r where r.message_seq = $1 and a.message_seq = $1`, seq)
	}
	if kept := k.keep(t, week); kept.Receipts != 2 {
		t.Fatalf("%d receipts moved, want 2", kept.Receipts)
	}
	misfits := func() string {
		t.Helper()
		all, err := k.l.Receipts.Misfits(t.Context(), time.Now().Add(-50*24*hour), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, m := range all {
			out = append(out, m.ID+" "+m.What)
		}
		return strings.Join(out, ", ")
	}
	if got := misfits(); got != "" {
		t.Errorf("there is %s", got)
	}
	const change = `update dispatcher.past_receipts set %s where reference = 'ref-old'`
	for _, c := range []struct{ set, want string }{
		{`channel = 'b'`, "old channel, old reference"},
		{`channel = 'a', reference = 'ref-x'`, "old reference"},
	} {
		k.exec(t, fmt.Sprintf(change, c.set))
		if got := misfits(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.set, got, c.want)
		}
	}
	k.exec(t, `delete from dispatcher.past_receipts where reference = 'ref-x'`)
	if got := misfits(); got != "old state" {
		t.Errorf("without its receipt: got %q", got)
	}
	k.exec(t, `update dispatcher.past_receipts set received_at = received_at + interval '1 second'`)
	if got := misfits(); got != "old state, older delivered_at" {
		t.Errorf("with another time: got %q", got)
	}
	k.exec(t, `update dispatcher.least_kept set facts = interval '43 days'`)
	k.keep(t, ledger.Retention{IDs: week.IDs, Payloads: week.Payloads, Facts: 43 * 24 * hour})
	if got := scalar[string](t, k.db, `select string_agg(inhrelid::regclass::text, ' ')
		from pg_inherits where inhparent = 'dispatcher.past_receipts'::regclass`); got !=
		"past_receipts_"+(k.today-40).Begin().Format("20060102") {
		t.Errorf("there are partitions %s", got)
	}
}

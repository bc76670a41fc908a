package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

const (
	subscriber = "+447700900123"
	ourNumber  = "12345"
)

// sms is a message of a subscriber that was not split.
func sms(id, text string) ledger.Inbound {
	return ledger.Inbound{
		ID: id, Channel: "a", From: subscriber, To: ourNumber, Text: text,
		At: time.Now(),
	}
}

// pieceOf is one part of a message, from zero. Its ID says which.
func pieceOf(number uint16, part, parts int, text string) ledger.Inbound {
	in := sms(fmt.Sprintf("%d/%d", number, part), text)
	in.Group, in.Part, in.Parts = number, part, parts
	return in
}

// publish returns a notice that shows the message. STOP and START change the list of tenant shop.
func publish(s *ledger.Subscribed) ledger.Reaction {
	r := ledger.Reaction{Tenant: "shop", Key: s.From, Value: fmt.Appendf(nil, "%s %s %d%v", s.ID,
		s.Text, s.Parts, s.Missing)}
	switch s.Text {
	case "STOP":
		r.Change = ledger.OptOut
	case "START":
		r.Change = ledger.OptIn
	}
	return r
}

func record(t testing.TB, l *ledger.Ledger, in ...ledger.Inbound) ledger.InboxResult {
	t.Helper()
	stored, err := l.Inbox.Record(t.Context(), in, publish)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// published publishes what is in the outbox, and returns it.
func published(t testing.TB, l *ledger.Ledger) (values []string) {
	t.Helper()
	for {
		n, err := l.Outbox.PublishInbound(t.Context(), 1000,
			func(_ context.Context, notices []ledger.Notice) error {
				for _, n := range notices {
					if n.Kind != ledger.InboundNotice || n.Key == "" {
						t.Errorf("a notice of kind %s with key %q", n.Kind, n.Key)
					}
					values = append(values, string(n.Value))
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return values
		}
	}
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestWholeMessagesArePublishedInOrder(t *testing.T) {
	t.Parallel()
	l := open(t)
	want(t, "booked", record(t, l, sms("1", "one"), sms("2", "two")), ledger.InboxResult{Whole: 2})
	want(t, "booked", record(t, l, sms("3", "three")), ledger.InboxResult{Whole: 1})
	want(t, "published", published(t, l), []string{"1 one 1[]", "2 two 1[]", "3 three 1[]"})
}

func TestAReferenceIsStoredOnce(t *testing.T) {
	t.Parallel()
	l := open(t)
	withReference := func(id, channel, reference string) ledger.Inbound {
		in := sms(id, "hello")
		in.Channel, in.Reference = channel, reference
		return in
	}
	first := record(t, l, withReference("1", "a", "r"), withReference("2", "a", "r"),
		withReference("3", "a", "s"))
	want(t, "in one batch", first, ledger.InboxResult{Whole: 2, Repeated: 1})
	want(t, "later", record(t, l, withReference("4", "a", "r"), withReference("5", "b", "r")),
		ledger.InboxResult{Whole: 1, Repeated: 1})
	want(t, "without reference", record(t, l, sms("6", "hello"), sms("7", "hello")),
		ledger.InboxResult{Whole: 2})
}

// TestPartsWithOneReferenceAreJoined: some SMSCs give all parts of a message the same id.
func TestPartsWithOneReferenceAreJoined(t *testing.T) {
	t.Parallel()
	l := open(t)
	part := func(i int, text string) ledger.Inbound {
		in := pieceOf(7, i, 3, text)
		in.Reference = "r"
		return in
	}
	want(t, "the first", record(t, l, part(0, "a"), part(0, "a")),
		ledger.InboxResult{Waiting: 1, Repeated: 1})
	want(t, "the others", record(t, l, part(2, "c"), part(1, "b")), ledger.InboxResult{Whole: 1})
	want(t, "published", published(t, l), []string{"7/0 abc 3[]"})
	want(t, "all again", record(t, l, part(0, "a"), part(1, "b"), part(2, "c")),
		ledger.InboxResult{Repeated: 3})
}

// TestHalvesOfAnEmojiAreJoined if they are in adjacent parts.
func TestHalvesOfAnEmojiAreJoined(t *testing.T) {
	t.Parallel()
	l := open(t)
	const high, low = "\U0010D83D", "\U0010DE00" // of U+1F600, see sms.DecodeUCS2Part
	record(t, l, pieceOf(7, 1, 2, low+"b"))
	record(t, l, pieceOf(7, 0, 2, "a"+high), pieceOf(8, 0, 3, high), pieceOf(8, 2, 3, low))
	_, err := l.Inbox.RecordIncomplete(t.Context(), 0, 100, publish)
	want(t, "error", err, nil)
	want(t, "published", published(t, l),
		[]string{"7/0 a😀b 2[]", "8/0 \uFFFD\uFFFD 3[1]"})
}

// TestMessagesThatAreRecordedAgainAreStoredOnce: a caller repeats its call when the connection
// broke during the commit.
func TestMessagesThatAreRecordedAgainAreStoredOnce(t *testing.T) {
	t.Parallel()
	l := open(t)
	in := []ledger.Inbound{
		sms("1", "one"), pieceOf(7, 0, 2, "a"), pieceOf(7, 1, 2, "b"),
		pieceOf(8, 0, 2, "c"),
	}
	want(t, "first", record(t, l, in...), ledger.InboxResult{Whole: 2, Waiting: 1})
	want(t, "again", record(t, l, in...), ledger.InboxResult{Repeated: 4})
	want(t, "published", published(t, l), []string{"1 one 1[]", "7/0 ab 2[]"})
}

func TestPartsAreJoinedAcrossProcesses(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	one, two := rig.l, connect(t, ledger.Config{URL: rig.url})
	want(t, "first", record(t, one, pieceOf(7, 2, 3, "c")), ledger.InboxResult{Waiting: 1})
	want(t, "second", record(t, two, pieceOf(7, 0, 3, "a")), ledger.InboxResult{Waiting: 1})
	want(t, "third", record(t, one, pieceOf(7, 1, 3, "b")), ledger.InboxResult{Whole: 1})
	want(t, "published", published(t, one), []string{"7/0 abc 3[]"})
	if n := scalar[int](t, rig.db, `select count(*) from dispatcher.inbound_parts`); n != 0 {
		t.Errorf("%d parts are left", n)
	}
}

func TestTwoMessagesOfOneGroupAreKeptApart(t *testing.T) {
	t.Parallel()
	l := open(t)
	record(t, l, pieceOf(0, 0, 2, "first "), pieceOf(0, 0, 2, "second "))
	record(t, l, pieceOf(0, 1, 2, "one"))
	record(t, l, pieceOf(0, 1, 2, "two"))
	want(t, "published", published(t, l), []string{"0/0 first one 2[]", "0/0 second two 2[]"})
}

// TestWhatSharesNoGroupIsNotJoined: parts with another sender, number, channel, group or number of
// parts belong to another message.
func TestWhatSharesNoGroupIsNotJoined(t *testing.T) {
	t.Parallel()
	l := open(t)
	record(t, l, pieceOf(7, 0, 2, "a"))
	others := make([]ledger.Inbound, 5)
	for i := range others {
		others[i] = pieceOf(7, 1, 2, "b")
		others[i].ID = fmt.Sprint("other", i)
	}
	others[0].From, others[1].To, others[2].Channel, others[3].Group,
		others[4].Parts = "+447700900124", "12346", "b", 8, 3
	want(t, "booked", record(t, l, others...), ledger.InboxResult{Waiting: 5})
	want(t, "booked", record(t, l, pieceOf(7, 1, 2, "b")), ledger.InboxResult{Whole: 1})
}

func TestAPartThatCannotBeOneIsAMessage(t *testing.T) {
	t.Parallel()
	l := open(t)
	want(t, "booked", record(t, l, pieceOf(1, 3, 3, "a"), pieceOf(2, -1, 3, "b"),
		pieceOf(3, 0, 1, "c"), pieceOf(4, 0, 256, "d")), ledger.InboxResult{Whole: 4})
}

// TestJoiningHoldsUpNobodyElse: parts of different subscribers are joined at the same time. With a
// database a second away a call takes seconds, and one at a time would be too slow.
func TestJoiningHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	execute(t, db, `begin`)
	for _, sql := range ledger.LocksOfJoining(pieceOf(1, 1, 2, "x")) {
		execute(t, db, sql)
	}
	other := func(part int) ledger.Inbound {
		in := pieceOf(2, part, 2, "y")
		in.From = "+447700900124"
		return in
	}
	if stored := record(t, l, other(0)); stored.Waiting != 1 {
		t.Errorf("%+v", stored)
	}
	if stored := record(t, l, other(1)); stored.Whole != 1 {
		t.Errorf("%+v", stored)
	}
	execute(t, db, `rollback`)
}

func TestPartsThatWaitTooLongArePublishedAsTheyAre(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	record(t, l, pieceOf(7, 1, 4, "b"), pieceOf(7, 2, 4, "c"), pieceOf(8, 0, 2, "x"))
	if _, err := db.Exec(t.Context(), `update dispatcher.inbound_parts
		set booked_at = now() - interval '11 minutes' where grp = 7 and part = 2`); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []ledger.InboxResult{{Abandoned: 1}, {}} {
		stored, err := l.Inbox.RecordIncomplete(t.Context(), 10*time.Minute, 100, publish)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "booked", stored, wanted)
	}
	want(t, "published", published(t, l), []string{"7/1 bc 4[0 3]"})
	want(t, "the other goes on", record(t, l, pieceOf(8, 1, 2, "y")), ledger.InboxResult{Whole: 1})
}

func TestTwoMessagesOfOneGroupMayBothBeIncomplete(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	record(t, l, pieceOf(7, 0, 2, "one"), pieceOf(7, 0, 2, "two"), pieceOf(7, 0, 2, "three"))
	if _, err := db.Exec(t.Context(), `update dispatcher.inbound_parts
		set booked_at = now() - interval '11 minutes' where body <> 'three'`); err != nil {
		t.Fatal(err)
	}
	stored, err := l.Inbox.RecordIncomplete(t.Context(), 10*time.Minute, 100, publish)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "booked", stored, ledger.InboxResult{Abandoned: 2})
	want(t, "published", published(t, l), []string{"7/0 one 2[1]", "7/0 two 2[1]"})
	want(t, "the third goes on", record(t, l, pieceOf(7, 1, 2, "x")), ledger.InboxResult{Whole: 1})
}

// TestProcessesDoNotMissEachOthersParts: each process gets one part of every message, at the same
// time.
func TestProcessesDoNotMissEachOthersParts(t *testing.T) {
	t.Parallel()
	const n = 100
	rig := lend(t)
	ledgers := []*ledger.Ledger{rig.l, connect(t, ledger.Config{URL: rig.url})}
	arrived := [n]sync.WaitGroup{} // both halves of each message are stored together
	for i := range arrived {
		arrived[i].Add(len(ledgers))
	}
	var calls sync.WaitGroup
	for part, l := range ledgers {
		calls.Go(func() {
			for i := range n {
				arrived[i].Done()
				arrived[i].Wait()
				if _, err := l.Inbox.Record(t.Context(), []ledger.Inbound{
					pieceOf(uint16(i), part, 2, "x"),
				}, publish); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	if got := len(published(t, ledgers[0])); got != n {
		t.Errorf("%d of %d messages were put together", got, n)
	}
}

func TestWhatWasStoredIsForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	in := sms("1", "hello")
	in.Reference = "r"
	record(t, l, in, sms("2", "hello"), pieceOf(7, 0, 2, "a"))
	for after, left := range map[string]int{"9 minutes": 3, "11 minutes": 1} {
		if _, err := db.Exec(t.Context(),
			`create table if not exists kept as select *
				from dispatcher.inbound_seen`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), `delete from dispatcher.inbound_seen`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(),
			`insert into dispatcher.inbound_seen select channel, mark, until - $1::interval
				from kept`, after); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Inbox.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := scalar[int](t, db, `select count(*) from dispatcher.inbound_seen`); n != left {
			t.Errorf("after %s %d are left, want %d", after, n, left)
		}
	}
	in.ID = "3"
	want(t, "known by its reference", record(t, l, in), ledger.InboxResult{Repeated: 1})
	if _, err := db.Exec(t.Context(),
		`update dispatcher.inbound_seen set until = now()`); err != nil {
		t.Fatal(err)
	}
	want(t, "not known any more", record(t, l, in), ledger.InboxResult{Whole: 1})
}

func TestRecordingTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	w, address := tap(t, ledgertest.URL(t))
	l := connect(t, ledger.Config{URL: address})
	record(t, l, pieceOf(1, 0, 2, "a")) // statements are prepared
	record(t, l, pieceOf(1, 1, 2, "b"), sms("1", "STOP"))
	before := w.trips.Load()
	record(t, l, pieceOf(2, 0, 2, "a"), pieceOf(2, 1, 2, "a"), sms("2", "STOP"),
		pieceOf(3, 0, 2, "a"))
	if n := w.trips.Load() - before; n != 2 {
		t.Errorf("%d round trips", n)
	}
}

// TestACallWhoseAnswerIsLostIsRepeated, both when the commit was lost and when only its answer was.
func TestACallWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	for loss, wanted := range map[int32]ledger.InboxResult{request: {Whole: 1, Waiting: 1}, reply: {
		Repeated: 2,
	}} {
		w, address := tap(t, ledgertest.URL(t))
		l := connect(t, ledger.Config{URL: address, MaxConns: 1})
		record(t, l, pieceOf(1, 0, 2, "a"), sms("0", "x")) // statements are prepared
		in := []ledger.Inbound{sms("1", "one"), pieceOf(7, 0, 2, "a")}
		w.skip.Store(1)
		w.loss.Store(loss)
		if _, err := l.Inbox.Record(t.Context(), in, publish); !ledger.Unavailable(err) {
			t.Fatalf("loss %d: got %v", loss, err)
		}
		want(t, "again", record(t, l, in...), wanted)
	}
}

func TestTooManyMessagesAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	l := open(t)
	if _, err := l.Inbox.Record(t.Context(), make([]ledger.Inbound, 501), publish); err == nil ||
		ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
}

// TestConcurrentCallsStoreTheSameMessagesOnce: a provider that got no answers sends everything to
// every process.
func TestConcurrentCallsStoreTheSameMessagesOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	var in []ledger.Inbound
	for i := range 60 {
		m := sms(fmt.Sprint("m", i), "hello")
		m.Reference, m.From = fmt.Sprint("r", i), fmt.Sprintf("+4477009%05d", i)
		if i%3 > 0 { // parts, of which each sender sends both
			m.From, m.Group, m.Part, m.Parts = fmt.Sprintf("+4477009%05d", i/3), uint16(i/3), i%3-1,
				2
		}
		in = append(in, m)
	}
	ledgers := []*ledger.Ledger{
		rig.l, connect(t, ledger.Config{URL: rig.url}),
		connect(t, ledger.Config{URL: rig.url}),
	}
	var calls sync.WaitGroup
	for k, l := range ledgers {
		calls.Go(func() {
			mine := slices.Clone(in)
			slices.SortFunc(mine, func(a, b ledger.Inbound) int {
				return strings.Compare(b.Reference, a.Reference) * (1 - 2*(k%2))
			})
			for some := range slices.Chunk(mine, 7) {
				if _, err := l.Inbox.Record(t.Context(), some, publish); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	got := published(t, ledgers[0])
	slices.Sort(got)
	if n := len(got); n != 40 || len(slices.Compact(got)) != 40 {
		t.Errorf("%d messages, want 40 of 20 wholes and 20 pairs", n)
	}
}

func TestInboundMessagesAreNotInAuditViews(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	record(t, l, sms("1", "STOP"), pieceOf(7, 0, 2, "secret"))
	rows, err := db.Query(t.Context(), `select viewname from pg_views where schemaname = 'audit'`)
	if err != nil {
		t.Fatal(err)
	}
	views, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range views {
		all := scalar[string](t, db, `select coalesce(string_agg(v::text, ' '), '') from audit.`+
			view+` v`)
		if strings.Contains(all, "7700900123") || strings.Contains(all, "secret") ||
			strings.Contains(all, fmt.Sprint(ledger.Recipient("shop", subscriber))) {
			t.Errorf("audit.%s shows %q", view, all)
		}
	}
	want(t, "opt-outs", scalar[string](t, db,
		`select string_agg(tenant || ' ' || source || ' ' || channel, ',') from audit.opt_outs`),
		"shop keyword a")
}

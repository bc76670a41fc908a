package ledger_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
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
		Seq: m.Seq, State: m.State, Attempts: m.Attempts,
		Notice: ledger.Notice{Kind: ledger.Status, Key: id, Value: []byte(`{"cancelled":1}`)},
	}
}

// cancel ends messages, and returns how many it ended.
func cancel(t testing.TB, l *ledger.Ledger, all ...*ledger.Cancellation) int {
	t.Helper()
	by := ledger.Canceller{Author: "ann", Reason: "wrong day", Via: ledger.ViaCommand}
	var list []ledger.Cancellation
	for _, c := range all {
		list = append(list, *c)
	}
	ended, err := l.Cancellations.Cancel(t.Context(), by, list)
	if err != nil {
		t.Error(err)
	}
	return len(ended)
}

func TestACancelledMessageEndsAndIsOnRecord(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	letWait(t, db, 2)
	id := scalar[string](t, db, `select min(id) from dispatcher.messages`)
	c := cancellation(t, l, id)
	for i, want := range []int{1, 0} {
		if ended := cancel(t, l, c); ended != want {
			t.Fatalf("call %d: %d ended, want %d", i, ended, want)
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
		if ended := cancel(t, l, c) == 1; ended != want {
			t.Errorf("%s (%s): ended %v, want %v", id, c.State, ended, want)
		}
	}
}

// TestNothingIsBothCancelledAndSent while two instances claim the messages that operators cancel.
func TestNothingIsBothCancelledAndSent(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	ledgers := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 4)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 4)}),
	}
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a"})
	n := tier.Size(60, 1500)
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
			mine := cancellations[half*n/2 : (half+1)*n/2]
			for some := range slices.Chunk(mine, 1+half) { // one at a time, or two
				ended := cancel(t, ledgers[half], some...)
				haveCancelled()
				mu.Lock()
				cancelled += ended
				mu.Unlock()
			}
		})
	}
	work.Wait()
	sent := scalar[int](t, db, `select count(*) from dispatcher.all_attempts`)
	ended := scalar[int](t, db, `select count(*) from dispatcher.messages
		where state = 'failed' and reason = 'cancelled'`)
	both := scalar[int](t, db, `select count(*) from dispatcher.messages m
		join dispatcher.all_attempts a on a.message_seq = m.seq where m.state = 'failed'`)
	told := scalar[int](t, db, `select count(*) from dispatcher.outbox, unnest("values") as v(value)
		where v.value = convert_to('{"cancelled":1}', 'UTF8')`)
	t.Logf("%d sent, %d cancelled", sent, ended)
	if both != 0 || sent+ended != n || ended != cancelled || told != ended {
		t.Errorf("%d messages: %d sent, %d cancelled, of which %d were said to be and %d told; %d both",
			n, sent, ended, cancelled, told, both)
	}
	if sent == 0 || ended == 0 {
		t.Error("there was no race")
	}
}

// TestUnsentMessagesAreFoundByAFilter, page by page, and nothing that has left is among them.
func TestUnsentMessagesAreFoundByAFilter(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, l, batch("sending", 1), "a")
	letWait(t, db, 6)
	all := scalar[[]string](t, db, `select array_agg(id order by seq) from dispatcher.messages
		where state = 'waiting'`)
	execute(t, db, `update dispatcher.messages set route = 'promo' where id = $1`, all[1])
	execute(t, db, `update dispatcher.due d set tenant = 'shop' from dispatcher.messages m
		where m.seq = d.seq and m.id = $1`, all[2])
	midnight := ledger.DayAt(time.Now()).Begin()
	execute(t, db, `update dispatcher.messages set received_at = $2 where id = any($1)`, all[3:5],
		midnight)
	lane := scalar[string](t, db, `select min(lane) from dispatcher.due`)
	then := midnight.Add(time.Millisecond)
	for name, c := range map[string]struct {
		filter ledger.UnsentFilter
		want   []string
	}{
		"all":             {ledger.UnsentFilter{}, all},
		"lane":            {ledger.UnsentFilter{Lane: lane}, all},
		"another lane":    {ledger.UnsentFilter{Lane: "none"}, nil},
		"route":           {ledger.UnsentFilter{Route: "promo"}, all[1:2]},
		"tenant":          {ledger.UnsentFilter{Tenant: "shop"}, all[2:3]},
		"since":           {ledger.UnsentFilter{Since: then}, append(all[:3:3], all[5])},
		"before":          {ledger.UnsentFilter{Before: then}, all[3:5]},
		"tenant and time": {ledger.UnsentFilter{Tenant: "shop", Before: then}, nil},
	} {
		var got []string
		for page := (ledger.UnsentPage{More: true}); page.More; {
			var err error
			if page, err = l.Cancellations.Unsent(t.Context(), &c.filter, page.Last, 2,
				false); err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				if m.Envelope != nil {
					t.Errorf("%s: %s has its envelope", name, m.ID)
				}
				got = append(got, m.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	execute(t, db, `update dispatcher.payloads p set envelope = '{}' from dispatcher.messages m
		where m.seq = p.seq and m.id = $1`, all[0])
	page, err := l.Cancellations.Unsent(t.Context(), &ledger.UnsentFilter{}, 0, 1, true)
	if err != nil || len(page.Messages) != 1 || len(page.Messages[0].Envelope) == 0 {
		t.Errorf("with envelopes: %+v, %v", page, err)
	}
}

// TestAPageOfUnsentMessagesLooksAtABoundedNumber: a filter that finds only the last of many
// messages needs several pages, the first of which are empty. Days before Since are not read.
func TestAPageOfUnsentMessagesLooksAtABoundedNumber(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	execute(t, db, `select dispatcher.make_day(dispatcher.day_at(now()) - 1)`)
	execute(t, db, `insert into dispatcher.due (seq, next_at, lane, tenant, state)
		select dispatcher.first_of(dispatcher.day_at(now()) - 1) + n, now(), 'otp', '', 'waiting'
		from generate_series(1, 10000) n`)
	letWait(t, db, 1)
	pages := func(f *ledger.UnsentFilter) (n, found int) {
		t.Helper()
		for page := (ledger.UnsentPage{More: true}); page.More; n++ {
			var err error
			page, err = l.Cancellations.Unsent(t.Context(), f, page.Last, 10, false)
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Messages)
		}
		return n, found
	}
	now := time.Now()
	midnight := now.UTC().Truncate(24 * time.Hour)
	for name, c := range map[string]struct {
		filter ledger.UnsentFilter
		pages  int
		found  int
	}{
		"all days":      {ledger.UnsentFilter{Route: "default"}, 3, 1},
		"from today":    {ledger.UnsentFilter{Since: midnight.Add(2 * time.Minute)}, 1, 1},
		"from midnight": {ledger.UnsentFilter{Since: midnight}, 3, 1}, // clocks may differ
		"days before":   {ledger.UnsentFilter{Before: midnight.Add(-25 * time.Hour)}, 1, 0},
	} {
		n, found := pages(&c.filter)
		if now.UTC().Sub(midnight) < 3*time.Minute && name == "from today" {
			continue // the message may be older than Since
		}
		if n != c.pages || found != c.found {
			t.Errorf("%s: %d found in %d pages", name, found, n)
		}
	}
}

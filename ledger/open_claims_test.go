package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// stored is how many attempts have a row, how many there are, and how many rows open_claims has.
const stored = `select concat_ws(' ', (select count(*) from dispatcher.attempts),
	(select count(*) from dispatcher.all_attempts), (select count(*) from dispatcher.open_claims))`

// TestAFirstAttemptIsStoredOnce: the row of its claim is deleted by the settlement of the last one.
func TestAFirstAttemptIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, r.l, batch("m", 4), "a").Messages
	lost := unknown(m[3])
	for _, step := range []struct {
		settle []ledger.Settlement
		want   string
	}{
		{nil, "0 4 1"},
		{accepted(m[:2]), "2 4 1"},
		{[]ledger.Settlement{lost}, "3 4 1"},
		{accepted(m[1:3]), "4 4 0"}, // one of them again
		{accepted(m), "4 4 0"},
	} {
		settleAll(t, r.l, step.settle)
		if got := scalar[string](t, r.db, stored); got != step.want {
			t.Fatalf("%d settled: %s, want %s", len(step.settle), got, step.want)
		}
	}
	if got := scalar[string](t, r.db, `select string_agg(concat_ws(' ', message_id, attempt, channel,
		reason, outcome, segments, price_micros, currency, claimed_at <= settled_at), ', '
		order by message_id) from audit.attempts`); got !=
		"m-00000 1 a first_choice accepted 1 28000 GBP t, "+
			"m-00001 1 a first_choice accepted 1 28000 GBP t, "+
			"m-00002 1 a first_choice accepted 1 28000 GBP t, "+
			"m-00003 1 a first_choice accepted 1 28000 GBP t" {
		t.Error(got)
	}
	if active := activeOn(t, r.db, "a"); active != 0 {
		t.Errorf("%d active", active)
	}
}

// TestAnOpenAttemptIsShownAsItsRowWillBe, with a release time and a ranking, and without.
func TestAnOpenAttemptIsShownAsItsRowWillBe(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	var m []ledger.Message
	err := runClaim(t.Context(), r.l, ledger.Claim{
		Messages: batch("m", 3), Channels: []string{"a", "b"},
	}, func(s *ledger.Seen) (ledger.Decisions, error) {
		m = s.Messages
		d, err := give(s)
		other := &d.Each[1].Attempt
		other.Channel, other.Reason, other.Ranking = "b", ledger.ByFallback, []byte(`{"by": "load"}`)
		other.LeavesAt, other.Segments = s.Now.Add(time.Second), 2
		s.Channels[0].Gate.Active.Count--
		s.Channels[1].Gate.Active.Count++
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	const columns = `select string_agg(concat_ws(' ', message_seq, attempt, instance, claimed_at,
		leaves_at, channel, reason, segments, price_micros, currency, ranking), ', '
		order by message_seq) from dispatcher.`
	before := scalar[string](t, r.db, columns+`all_attempts`)
	s := accepted(m)
	for i := range s {
		s[i].Segments = 1 + i%2
	}
	settleAll(t, r.l, s)
	if after := scalar[string](t, r.db, columns+`attempts`); after != before {
		t.Errorf("shown   %s\nstored  %s", before, after)
	}
}

// TestReceiptsThatNameOpenAttemptsAreNotLost, though the attempts have no row yet.
func TestReceiptsThatNameOpenAttemptsAreNotLost(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, r.l, batch("m", 5), "a").Messages
	named := receipt("ref-m-00001", provider.Delivered)
	named.Seq, named.Attempt = m[1].Seq, 1
	unnamed := receipt("", provider.Delivered)
	unnamed.Seq, unnamed.Attempt = m[2].Seq, 1
	other := receipt("x", provider.Delivered) // of another channel
	other.Channel, other.Seq, other.Attempt = "b", m[3].Seq, 1
	receive(t, r.l, named, unnamed, other)
	if got := scalar[string](t, r.db, stored); got != "3 5 1" {
		t.Errorf("%s after the receipts", got)
	}
	s := accepted(m)
	for i := range s {
		s[i].Await = time.Hour
	}
	settleAll(t, r.l, s)
	lookSoon(t, r.db)
	overdue(t, r.l)
	if got := scalar[string](t, r.db, `select string_agg(state, ' ' order by id)
		from dispatcher.message_states`); got != "accepted delivered delivered accepted accepted" {
		t.Error(got)
	}
	if got := scalar[string](t, r.db, stored); got != "5 5 0" || activeOn(t, r.db, "a") != 0 {
		t.Errorf("%s after the settlement, %d active", got, activeOn(t, r.db, "a"))
	}
}

// TestOpenClaimsOfADeadInstanceAreRecovered: its row stays until they are.
func TestOpenClaimsOfADeadInstanceAreRecovered(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	dead := connect(t, ledger.Config{URL: r.url})
	m := claimAll(t, dead, batch("dead", 3), "a").Messages
	settleAll(t, dead, accepted(m[:1]))
	claimAll(t, r.l, batch("own", 2), "a")
	if err := dead.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tag, err := r.db.Exec(t.Context(), `delete from dispatcher.instances where left_at is not null`); err != nil ||
		tag.RowsAffected() != 0 {
		t.Errorf("%s, %v", tag, err)
	}
	if n := release(t, r.l); n != 2 || activeOn(t, r.db, "a") != 2 {
		t.Errorf("%d slots released, %d active", n, activeOn(t, r.db, "a"))
	}
	if got := scalar[string](t, r.db, stored); got != "3 5 1" {
		t.Error(got)
	}
	settleAll(t, dead, accepted(m[1:2])) // it was not dead
	open, err := r.l.Settlements.Abandoned(t.Context(), 10*time.Second, 0, 100)
	if err != nil || len(open) != 1 || open[0].Message.ID != "dead-00002" {
		t.Fatalf("%+v, %v", open, err)
	}
	settleAll(t, r.l, []ledger.Settlement{unknown(open[0].Message)})
	if err := r.l.Instances.Forget(t.Context(), 10*time.Second); err != nil ||
		instances(t, r.db) != 1 {
		t.Errorf("%d instances, %v", instances(t, r.db), err)
	}
	if got := scalar[string](t, r.db, stored); got != "3 5 1" || activeOn(t, r.db, "a") != 2 {
		t.Errorf("%s, %d active", got, activeOn(t, r.db, "a"))
	}
}

// TestAnInstanceOfTheBuildBeforeFindsRows: while it runs, claims store a row for each attempt, and
// its heartbeats store what is in open_claims.
func TestAnInstanceOfTheBuildBeforeFindsRows(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, r.l, batch("m", 3), "a").Messages
	const beat = `insert into dispatcher.instances as i (id, region, host, counts)
		values (1000000, 'test', 'old', '{}') on conflict (id) do update set left_at = null`
	for i, step := range []struct{ sql, want string }{
		{`select`, "0 5 2"},
		{beat, "7 7 0"},
		{`update dispatcher.instances set left_at = now() where host = 'old'`, "7 9 1"},
	} {
		execute(t, r.db, step.sql)
		if _, err := r.l.Instances.Beat(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		claimAll(t, r.l, batch(fmt.Sprint("step", i), 2), "a")
		if got := scalar[string](t, r.db, stored); got != step.want {
			t.Fatalf("%s: %s, want %s", step.sql, got, step.want)
		}
	}
	execute(t, r.db, beat)
	settleAll(t, r.l, accepted(m))
	if got := scalar[string](t, r.db, stored); got != "9 9 0" {
		t.Errorf("%s after a settlement", got)
	}
	if n := scalar[int](t, r.db, `select count(*) from dispatcher.attempts
		where outcome = 'accepted'`); n != 3 {
		t.Errorf("%d were settled", n)
	}
}

// TestAClaimThatANewPrimaryDoesNotHaveIsNotSettled: its messages are not there either, and it took
// no slot.
func TestAClaimThatANewPrimaryDoesNotHaveIsNotSettled(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	gone := claimAll(t, r.l, batch("gone", 3), "a").Messages
	kept := claimAll(t, r.l, batch("kept", 2), "a").Messages
	execute(t, r.db, `delete from dispatcher.open_claims where first_seq = $1`, gone[0].Seq)
	execute(t, r.db, `delete from dispatcher.messages where seq <= $1`, gone[2].Seq)
	execute(t, r.db, `update dispatcher.channels set active = active - 3`)
	// another process has claimed a message under the same number
	execute(t, r.db, `insert into dispatcher.open_claims (first_seq, instance, claimed_at, seqs,
		channels, reasons, segments, prices, currencies) values ($1, 99, now(), array[$1::bigint],
		'{b}', '{first_choice}', '{1}', '{1}', '{EUR}')`, gone[0].Seq)
	all := accepted(slices.Concat(gone, kept))
	all[1].Outcome, all[1].State, all[1].Reason = provider.Unknown, ledger.Unknown, "timeout"
	for range 2 {
		settleAll(t, r.l, all)
		if got := scalar[string](t, r.db, stored); got != "2 3 1" {
			t.Errorf("%s, want the rows of the two that are there, and the other's claim", got)
		}
		if active := activeOn(t, r.db, "a"); active != 0 {
			t.Errorf("%d active", active)
		}
		if n := scalar[int](t, r.db,
			`select sum(cardinality(keys)) from dispatcher.outbox`); n != 2 {
			t.Errorf("%d notices", n)
		}
	}
}

// TestAttemptsOfASlowProviderGetRows, after some seconds. So does a claim that a settlement could
// not delete.
func TestAttemptsOfASlowProviderGetRows(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, r.l, batch("slow", 3), "a").Messages
	settleAll(t, r.l, accepted(m[:1]))
	release(t, r.l)
	if got := scalar[string](t, r.db, stored); got != "1 3 1" {
		t.Fatalf("%s at once", got)
	}
	const older = `update dispatcher.open_claims set claimed_at = claimed_at - interval '1 minute'`
	execute(t, r.db, older)
	claimAll(t, r.l, batch("new", 2), "a")
	release(t, r.l)
	if got := scalar[string](t, r.db, stored); got != "3 5 1" {
		t.Fatalf("%s later", got)
	}
	settleAll(t, r.l, accepted(m))
	if got := scalar[string](t, r.db, stored); got != "3 5 1" || activeOn(t, r.db, "a") != 2 {
		t.Errorf("%s after the answers, %d active", got, activeOn(t, r.db, "a"))
	}
	last := claimAll(t, r.l, batch("last", 1), "a").Messages
	execute(t, r.db, `begin`)
	execute(t, r.db, `select from dispatcher.open_claims where first_seq = $1 for update`,
		last[0].Seq)
	settleAll(t, r.l, accepted(last))
	execute(t, r.db, `commit`)
	if got := scalar[string](t, r.db, stored); got != "4 6 2" {
		t.Errorf("%s after a settlement beside a lock", got)
	}
	execute(t, r.db, older)
	release(t, r.l)
	if got := scalar[string](t, r.db, stored); got != "6 6 0" {
		t.Errorf("%s at the end", got)
	}
}

// TestOneClaimIsOverOnce: two settlements of an attempt in one call do not count as two attempts.
func TestOneClaimIsOverOnce(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, r.l, batch("m", 2), "a").Messages
	settleAll(t, r.l, accepted([]ledger.Message{m[1], m[1]}))
	if got := scalar[string](t, r.db, stored); got != "1 2 1" {
		t.Error(got)
	}
}

// TestEachAttemptIsThereOnce, whatever settles, receives and recovers at the same time.
func TestEachAttemptIsThereOnce(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000})
	second, rounds := connect(t, ledger.Config{URL: r.url}), 0
	tier.Check(t, func(rt *rapid.T) {
		rounds++
		if err := second.Instances.Register(t.Context()); err != nil {
			rt.Fatal(err)
		}
		n := rapid.IntRange(1, 60).Draw(rt, "messages")
		m := claimAll(t, second, batch(fmt.Sprint("round", rounds), n), "a").Messages
		if rapid.Bool().Draw(rt, "gone") {
			execute(t, r.db, `update dispatcher.instances set left_at = now() where id = $1`,
				second.Instances.ID())
		}
		var work sync.WaitGroup
		for i := range rapid.IntRange(1, 4).Draw(rt, "workers") {
			kind := rapid.SampledFrom([]string{"settle", "some", "lost", "receive", "recover", "slow"}).
				Draw(rt, fmt.Sprint("work ", i))
			from := rapid.IntRange(0, n-1).Draw(rt, fmt.Sprint("from ", i))
			work.Go(func() { doAtOnce(t, r.l, second, kind, m, from) })
		}
		work.Wait()
		checkOnce(rt, r.db, m)
		settleAll(t, second, accepted(m))
		release(t, second)
		checkOnce(rt, r.db, m)
		if got := scalar[string](t, r.db, `select concat_ws(' ',
			(select count(*) from dispatcher.attempts where outcome is null),
			(select count(*) from dispatcher.open_claims),
			(select active from audit.active))`); got != "0 0 0" {
			rt.Fatalf("open attempts, open claims and slots: %s", got)
		}
	})
}

func doAtOnce(
	t *testing.T, living, second *ledger.Ledger, kind string, m []ledger.Message, from int,
) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var err error
	switch kind {
	case "settle":
		err = second.Settlements.Settle(ctx, accepted(m))
	case "some":
		err = second.Settlements.Settle(ctx, accepted(m[from:]))
	case "lost":
		lost := make([]ledger.Settlement, 0, len(m))
		for i := range m[from:] {
			lost = append(lost, unknown(m[from+i]))
		}
		err = second.Settlements.Settle(ctx, lost)
	case "receive":
		named := make([]ledger.Receipt, 0, len(m))
		for i := range m[from:] {
			one := receipt("ref-"+m[from+i].ID, provider.Delivered)
			one.Seq, one.Attempt = m[from+i].Seq, 1
			named = append(named, one)
		}
		_, err = living.Receipts.Receive(ctx, named, tellState)
	case "slow":
		err = second.Settlements.StoreOpenClaims(ctx)
	case "recover":
		_, err = living.Settlements.Abandoned(ctx, 10*time.Second, time.Hour, 100)
	}
	if err != nil {
		t.Errorf("%s: %v", kind, err)
	}
}

// checkOnce: each message has one attempt.
func checkOnce(t *rapid.T, db *pgx.Conn, m []ledger.Message) {
	t.Helper()
	seqs := make([]int64, len(m))
	for i := range m {
		seqs[i] = m[i].Seq
	}
	var all, messages int
	if err := db.QueryRow(context.Background(), `select count(*), count(distinct message_seq)
		from dispatcher.all_attempts where message_seq = any($1)`, seqs).
		Scan(&all, &messages); err != nil || all != len(m) || messages != len(m) {
		t.Fatalf("%d attempts of %d messages, want %d, %v", all, messages, len(m), err)
	}
}

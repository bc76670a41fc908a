package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// seeExpected is how many receipts the first attempt expects, and what else a settlement writes.
const seeExpected = `select concat_ws(' ', a.outcome, 'owes', coalesce(a.receipts_owed::text,
	'what it names'), 'within', coalesce(a.receipts_within::text, 'nothing'),
	case when a.cut_short then 'cut short' end, '|', 'answers', a.answers, 'active', c.active,
	  a.provider_code, a.segments)
	from dispatcher.all_attempts a, audit.active c where a.attempt = 1`

func TestASettlementSaysHowManyReceiptsAreExpectedWithItsOutcome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say  func(s *ledger.Settlement)
		want string
	}{
		"nothing said": {
			func(*ledger.Settlement) {},
			"accepted owes what it names within nothing | answers 1 active 0 1",
		},
		"as many as are named": {func(s *ledger.Settlement) {
			s.Receipts = 2
		}, "accepted owes what it names within nothing | answers 1 active 0 1"},
		"as many, and one is named twice": {func(s *ledger.Settlement) {
			s.Receipts, s.Reference = 1, "r1 r1"
		}, "accepted owes what it names within nothing | answers 1 active 0 1"},
		"more than are named": {func(s *ledger.Settlement) {
			s.Receipts = 3
		}, "accepted owes 3 within 01:00:00 | answers 1 active 0 1"},
		"fewer, and none is expected": {func(s *ledger.Settlement) {
			s.Receipts, s.Await = 1, 0
		}, "accepted owes 1 within nothing | answers 1 active 0 1"},
		"as many, of a message cut short": {func(s *ledger.Settlement) {
			s.Receipts, s.CutShort = 2, true
		}, "accepted owes 2 within 01:00:00 cut short | answers 1 active 0 1"},
		"more, and the slot is held": {func(s *ledger.Settlement) {
			s.Receipts, s.Hold = 3, time.Hour
		}, "accepted owes 3 within 01:00:00 | answers 1 active 1 1"},
		"cut short without a number of them": {func(s *ledger.Settlement) {
			s.CutShort = true
		}, "accepted owes what it names within nothing | answers 1 active 0 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			s := expecting(m, "r1 r2")
			s[0].Await = time.Hour
			test.say(&s[0])
			for range 2 { // twice has the effect of once
				settleAll(t, l, s)
				if got := see(seeExpected); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			}
		})
	}
}

// TestWhoSubmittedAnAttemptCorrectsWhoTookItForLost, in the expected receipts only: the other
// instance could not know how many parts had been sent.
func TestWhoSubmittedAnAttemptCorrectsWhoTookItForLost(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	lost := unknown(m)
	lost.Receipts, lost.Segments, lost.Await, lost.Code = 1, 3, time.Hour, "lost"
	lost.Notice = accepted([]ledger.Message{m})[0].Notice
	settleAll(t, l, []ledger.Settlement{lost})
	// takes a slot that must not be freed again
	claimAll(t, l, []ledger.Message{message("other")}, "a")
	own := lost
	own.Receipts, own.Segments, own.CutShort, own.Code = 2, 2, true, "timeout"
	for range 2 {
		settleAll(t, l, []ledger.Settlement{own})
		if got := see(seeExpected +
			` and a.message_seq = dispatcher.seq_of('m')`); got != "unknown owes 2 within 01:00:00 cut short | answers 1 active 1 lost 3" {
			t.Error(got)
		}
	}
	if n := see(`select count(*)::text from dispatcher.outbox`); n != "1" {
		t.Errorf("%s notices", n)
	}
	own.Receipts = 0 // says nothing
	settleAll(t, l, []ledger.Settlement{own})
	// nor does what comes with the truth
	settleAll(t, l, []ledger.Settlement{own, expecting(m, "r1")[0]})
	if got := see(seeExpected +
		` and a.message_seq = dispatcher.seq_of('m')`); got != "accepted owes 2 within 01:00:00 cut short | answers 2 active 1 1" {
		t.Error(got)
	}
}

// TestTheTruthInABatchIsNotLostToACorrection: a batch may settle the same attempt twice.
func TestTheTruthInABatchIsNotLostToACorrection(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	ambiguity, truth := unanswered(m, ""), expecting(m, "r1")[0]
	settleAll(t, l, []ledger.Settlement{ambiguity})
	ambiguity.Receipts, truth.Receipts = 2, 1
	settleAll(t, l, []ledger.Settlement{ambiguity, truth})
	for range 2 {
		if got := see(seeExpected); got != "accepted owes 1 within 72:00:00 | answers 2 active 0 1" {
			t.Error(got)
		}
		settleAll(t, l, []ledger.Settlement{ambiguity}) // it comes too late to say anything
	}
}

// TestACorrectionFollowsWhatWasCommittedLast: a receipt proves the attempt while the late answer
// waits for its lock.
func TestACorrectionFollowsWhatWasCommittedLast(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db, watch := rig.l, rig.db, raw(t, rig.url)
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	settleAll(t, l, []ledger.Settlement{unanswered(m, "")})
	late := expecting(m, "r1")
	late[0].Receipts = 1
	execute(t, db, `begin`)
	execute(t, db, `update dispatcher.attempts set outcome = 'accepted', answers = answers + 1`)
	done := waiting(t, watch, func() error { return l.Settlements.Settle(t.Context(), late) })
	execute(t, db, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db,
		seeExpected); got != "accepted owes 1 within 72:00:00 | answers 2 active 0 timeout 3" {
		t.Error(got)
	}
}

// TestACorrectionIsNotLostToASettlementUnderWay: another instance settles the attempt as lost, at
// the moment at which its own instance settles it with the number of expected receipts, and is
// first.
func TestACorrectionIsNotLostToASettlementUnderWay(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db, watch := rig.l, rig.db, raw(t, rig.url)
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	own := unknown(m)
	own.Receipts, own.CutShort, own.Await = 2, true, time.Hour
	execute(t, db, ledgertest.StoreOpen)
	execute(t, db, `begin`)
	execute(t, db, `update dispatcher.attempts
		set outcome = 'unknown', settled_at = now(), answers = 1, receipts_owed = 3,
		  receipts_within = '72 hours', provider_code = 'lost', segments = 3`)
	done := waiting(t, watch, func() error {
		return l.Settlements.Settle(t.Context(), []ledger.Settlement{own})
	})
	execute(t, db, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db,
		seeExpected); got != "unknown owes 2 within 01:00:00 cut short | answers 1 active 1 lost 3" {
		t.Error(got)
	}
}

// TestASettlementThatSaysMoreOfWhatWasAnsweredLocksInOrder: it waits for the first attempt before
// it locks anything of the second.
func TestASettlementThatSaysMoreOfWhatWasAnsweredLocksInOrder(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db, watch := rig.l, rig.db, raw(t, rig.url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, batch("m", 2), "a").Messages
	settlements := accepted(m)
	for i := range settlements {
		settlements[i].Receipts = 2
	}
	settleAll(t, l, settlements[:1])
	settlements[0].Receipts = 3
	execute(t, db, `begin`)
	execute(t, db, `select from dispatcher.attempts where message_seq = $1 for update`, m[0].Seq)
	done := waiting(t, watch, func() error {
		return l.Settlements.Settle(t.Context(), settlements)
	})
	for _, sql := range []string{
		`select from dispatcher.attempts where message_seq = $1 for update nowait`,
		`select from dispatcher.messages where seq = $1 for update nowait`,
	} {
		var pg *pgconn.PgError
		if _, err := watch.Exec(t.Context(), sql, m[1].Seq); errors.As(err, &pg) &&
			pg.Code == "55P03" {
			t.Errorf("it has locked what comes after: %s", sql)
		}
	}
	execute(t, db, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db,
		`select string_agg(receipts_owed::text, ' ' order by message_seq)
			from dispatcher.all_attempts`); got != "3 2" {
		t.Errorf("they expect %s", got)
	}
	if got := scalar[string](t, db, states); got != "m-00000 accepted, m-00001 accepted" {
		t.Error(got)
	}
}

// Another transaction inserts the row of a receipt while a settlement inserts it. The settlement
// waits, and is then sent again.
func TestASettlementMeetsAReceiptOfTheSameMoment(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, r.l, []ledger.Message{message("m"), message("n")}, "a").Messages
	tx, err := raw(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into dispatcher.receipts (channel, reference, state,
		received_at) values ('a', 'r1', 'delivered', now())`); err != nil {
		t.Fatal(err)
	}
	settled := waiting(t, r.db, func() error {
		return r.l.Settlements.Settle(t.Context(), append(expecting(m[0], "r0"),
			expecting(m[1], "r1")...))
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, r.db, `select string_agg(concat_ws(' ', r.reference, r.state, m.id,
		case when r.look_at <= now() then 'looked at' end), ', ' order by r.reference)
		from dispatcher.receipts r join dispatcher.messages m on m.seq = r.message_seq`,
	); got != "r0 expected m, r1 delivered n looked at" {
		t.Error(got)
	}
}

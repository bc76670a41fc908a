package ledger_test

import (
	"context"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// timedOut settles an attempt of a message of two parts as unknown, with reference r1, and opens an
// ambiguity. The time of r1 ends while the attempt is unknown, so its row is not due any more.
func timedOut(t *testing.T) (*ledger.Ledger, ledger.Message, func(string) string) {
	t.Helper()
	l, m, see := one(t)
	timeOut(t, l, m, see)
	return l, m, see
}

func timeOut(t *testing.T, l *ledger.Ledger, m ledger.Message, see func(string) string) {
	t.Helper()
	s := unanswered(m, "r1")
	s.Segments, s.PriceMicros, s.Receipts = 2, 56_000, 2
	s.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.AwaitReceipt,
		Until: time.Now().Add(time.Hour), NextAt: time.Now().Add(time.Hour), Partly: true,
	}
	settleAll(t, l, []ledger.Settlement{s})
	see(dueNow)
	overdue(t, l)
	if n := see(`select count(*)::text from dispatcher.receipts
		where due_at is not null`); n != "0" {
		t.Fatal("a row does not rest")
	}
}

// TestAnAttemptThatIsProvedAfterItsTimeIsAwaitedAnew, and not for ever: however it becomes known
// that the attempt was accepted, the message ends when its time is over again.
func TestAnAttemptThatIsProvedAfterItsTimeIsAwaitedAnew(t *testing.T) {
	t.Parallel()
	late := func(references string, receipts int) func(*testing.T, *ledger.Ledger, ledger.Message) {
		return func(t *testing.T, l *ledger.Ledger, m ledger.Message) {
			s := expecting(m, references)
			s[0].Receipts = receipts
			settleAll(t, l, s)
		}
	}
	take := func(receipts ...func(ledger.Message) ledger.Receipt) func(*testing.T, *ledger.Ledger,
		ledger.Message) {
		return func(t *testing.T, l *ledger.Ledger, m ledger.Message) {
			for _, r := range receipts {
				receive(t, l, r(m))
			}
		}
	}
	byKey := func(reference string, state provider.ReceiptState) func(
		ledger.Message) ledger.Receipt {
		return func(m ledger.Message) ledger.Receipt { return keyed(m, 1, reference, state) }
	}
	verdict := func(t *testing.T, l *ledger.Ledger, m ledger.Message, reference string) {
		ambiguity, err := l.Ambiguities.Of(t.Context(), m.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := expecting(m, ambiguity.Reference+reference)
		s[0].Await = ambiguity.Await
		if !resolve(t, l, ledger.Resolution{
			Seq: m.Seq, Key: "k", As: ledger.Taken, Author: "ops",
			Note: "in its log", Settlement: &s[0],
		}) {
			t.Fatal("there was no ambiguity")
		}
	}
	for name, prove := range map[string]func(*testing.T, *ledger.Ledger, ledger.Message){
		"by the last word about another part": take(byKey("r2", provider.Delivered)),
		"by the failure of another part":      take(byKey("r2", provider.Undelivered)),
		"by another part that is under way":   take(byKey("r2", provider.Pending)),
		"by another part, first under way": take(byKey("r2", provider.Pending),
			byKey("r2", provider.Delivered)),
		"by another part that is corrected": take(byKey("r2", provider.Undelivered),
			byKey("r2", provider.Delivered)),
		"by a receipt that names no part":          take(byKey("", provider.Delivered)),
		"by its late answer":                       late("r1 r2", 2),
		"by a late answer of which less was known": late("r2", 0),
		"by a late answer about another part": func(t *testing.T, l *ledger.Ledger,
			m ledger.Message,
		) {
			late("r2", 2)(t, l, m)
			receive(t, l, receipt("r2", provider.Delivered))
		},
		"by an operator": func(t *testing.T, l *ledger.Ledger, m ledger.Message) {
			verdict(t, l, m, "")
		},
		"by an operator who names another part": func(t *testing.T, l *ledger.Ledger,
			m ledger.Message,
		) {
			verdict(t, l, m, " r2")
			receive(t, l, receipt("r2", provider.Delivered))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := timedOut(t)
			prove(t, l, m)
			overdue(t, l)
			if got := see(`select state from dispatcher.message_states`); got != "accepted" {
				t.Fatalf("its time is over at once: %s", got)
			}
			see(dueNow)
			overdue(t, l)
			if got := see(`select concat_ws(' ', state, receipt_state)
				from dispatcher.message_states, dispatcher.attempts`); got != "no_receipt no_receipt" {
				t.Errorf("nobody looks at it again: %s", got)
			}
			if n := see(`select count(*)::text from dispatcher.receipts
				where due_at is not null`); n != "0" {
				t.Error("a row is looked at for ever")
			}
			receive(t, l, receipt("r1", provider.Delivered), keyed(m, 1, "r2", provider.Delivered))
			if got := see(`select state from dispatcher.message_states`); got != "delivered" {
				t.Errorf("what comes late tells nothing: %s", got)
			}
		})
	}
}

// TestAVerdictOnWhatNamedAllOfItsPartsAwaitsThem: the answer had an id and did not say whether the
// message was accepted. The attempt stores how long its receipts are awaited. When an operator
// resolves it as taken, its parts count: those without a receipt, and those whose final receipt
// came before.
func TestAVerdictOnWhatNamedAllOfItsPartsAwaitsThem(t *testing.T) {
	t.Parallel()
	for want, given := range map[string][]ledger.Receipt{"no_receipt": nil, "delivered": {
		receipt("r1", provider.Delivered),
	}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			s := unknown(m)
			s.Reference, s.Receipts, s.Await = "r1", 1, time.Hour
			s.Ambiguity = &ledger.Ambiguity{
				Key: "k", Step: ledger.NoStep, Until: time.Now(),
				ResolvedAs: ledger.Unresolved,
			}
			settleAll(t, l, []ledger.Settlement{s})
			receive(t, l, given...)
			see(dueNow)
			overdue(t, l)
			ambiguity, err := l.Ambiguities.Of(t.Context(), m.ID, 0)
			if err != nil || ambiguity.Await != time.Hour {
				t.Fatalf("receipts are awaited for %s, %v", ambiguity.Await, err)
			}
			truth := expecting(m, ambiguity.Reference)[0]
			truth.Await = ambiguity.Await
			if !resolve(t, l, ledger.Resolution{
				Seq: m.Seq, Key: "k", As: ledger.Taken,
				Author: "ops", Note: "in its log", Settlement: &truth,
			}) {
				t.Fatal("there was no ambiguity")
			}
			see(dueNow)
			overdue(t, l)
			if got := see(`select state from dispatcher.message_states`); got != want {
				t.Errorf("the message is %s, want %s", got, want)
			}
		})
	}
}

// TestAStandInThatTimedOutIsLookedAtAgain: a stand-in is the row of a part whose reference belongs
// to another message.
func TestAStandInThatTimedOutIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	other := claimAll(t, l, []ledger.Message{message("other")}, "a").Messages[0]
	settleAll(t, l, expecting(other, "r1"))
	s := unanswered(m, "r1")
	settleAll(t, l, []ledger.Settlement{s})
	see(`with u as (update dispatcher.receipts set due_at = now(), look_at = now()
		where reference like 'r1 %' returning 1) select count(*)::text from u`)
	overdue(t, l)
	for range 2 { // twice has the effect of once
		settleAll(t, l, expecting(m, "r1"))
	}
	see(dueNow)
	overdue(t, l)
	if got := see(states); got != "m no_receipt, other no_receipt" {
		t.Error(got)
	}
}

// TestWhoHasAttemptsLockedWaitsForNoRowOfReceipts, because the holder of such a row may be waiting
// for the attempts: neither for rows of parts that a receipt without a reference may be about, nor
// for the row of another message that a receipt names by mistake.
func TestWhoHasAttemptsLockedWaitsForNoRowOfReceipts(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]func(m, other ledger.Message) ledger.Receipt{
		"no part is named": func(m, _ ledger.Message) ledger.Receipt {
			return keyed(m, 1, "", provider.Delivered)
		},
		"another's part": func(_, other ledger.Message) ledger.Receipt {
			return keyed(other, 1, "r1", provider.Delivered)
		},
		"another part": func(m, _ ledger.Message) ledger.Receipt {
			return keyed(m, 1, "r2", provider.Delivered)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := lend(t)
			l, db := rig.l, rig.db
			apply(t, l, ledger.ChannelSpec{Name: "a"})
			m := claimAll(t, l, batch("m", 2), "a").Messages
			s := expecting(m[0], "r1")
			s[0].Receipts = 3
			settleAll(t, l, append(s, unknown(m[1])))
			execute(t, db, `begin`)
			execute(t, db, `select from dispatcher.receipts where reference = 'r1' for update`)
			ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
			defer cancel()
			if _, err := l.Receipts.Receive(ctx, []ledger.Receipt{given(m[0], m[1])},
				tellState); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestARepeatThatTookTheRowsOverLeavesTheFirstAttemptAwaited: the first attempt is answered late,
// and the repeat is answered with the same id. A receipt with the key of the first attempt and
// another id does not keep the message from ending.
func TestARepeatThatTookTheRowsOverLeavesTheFirstAttemptAwaited(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	claimAgain(t, l, see)
	first := expecting(m, "r1")
	settleAll(t, l, first)
	receive(t, l, keyed(m, 1, "r9", provider.Pending))
	second := first[0]
	second.Attempt = 2
	second.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.SameKey,
		Until: time.Now().Add(time.Hour), ResolvedAs: ledger.Taken,
	}
	settleAll(t, l, []ledger.Settlement{second})
	for range 2 {
		see(dueNow)
		overdue(t, l)
	}
	if got := see(`select state from dispatcher.message_states`); got != "no_receipt" {
		t.Errorf("its attempt awaits no receipts: %s", got)
	}
	if n := see(`select count(*)::text from dispatcher.receipts
		where due_at is not null`); n != "0" {
		t.Error("a row is looked at for ever")
	}
}

// TestReceiptsWriteNoRowThatCameAfterThem: a settlement inserts such a row after the receipts were
// merged, and a transaction that handles the row waits for the attempts. A receipt that was not
// kept, because its message was not known, has locked no row.
func TestReceiptsWriteNoRowThatCameAfterThem(t *testing.T) {
	t.Parallel()
	for name, stray := range map[string]func(ledger.Message) ledger.Receipt{
		"of nobody": func(ledger.Message) ledger.Receipt {
			return receipt("r1", provider.Pending)
		},
		"of an attempt that there is not": func(m ledger.Message) ledger.Receipt {
			return keyed(m, 9, "r1", provider.Pending)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := lend(t)
			l, db, watch, later := rig.l, rig.db, raw(t, rig.url), raw(t, rig.url)
			apply(t, l, ledger.ChannelSpec{Name: "a"})
			m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
			s := expecting(m, "r0")
			s[0].Receipts = 3
			settleAll(t, l, s)
			execute(t, db, `begin`)
			execute(t, db, `select from dispatcher.attempts for update`)
			ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
			defer cancel()
			done := waiting(t, watch, func() error {
				_, err := l.Receipts.Receive(ctx, []ledger.Receipt{
					receipt("r0", provider.Delivered), stray(m),
				}, tellState)
				return err
			})
			execute(t, later, `insert into dispatcher.receipts (channel, reference, message_seq,
				attempt, part) select 'a', 'r1', $1, 1, 2`, m.Seq)
			execute(t, later, `begin`)
			execute(t, later, `select from dispatcher.receipts where reference = 'r1' for update`)
			execute(t, db, `commit`)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAProvedRestOfAMessageComesToItsEnd although the time of its first part ended long before. The
// proof makes the message accepted, and no other row would be due after that. It makes no
// difference whether the proof is a final receipt, or whether more receipts come.
func TestAProvedRestOfAMessageComesToItsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		await time.Duration
		proof provider.ReceiptState
	}{
		"delivered":                          {time.Hour, provider.Delivered},
		"under way":                          {time.Hour, provider.Pending},
		"delivered, no receipts are awaited": {0, provider.Delivered},
		"under way, no receipts are awaited": {0, provider.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			first := expecting(m, "r1")[0]
			first.Outcome, first.State, first.Receipts, first.Pinned,
				first.PartsLeft = provider.Refused, ledger.Retry, 1, "a", []int{1}
			settleAll(t, l, []ledger.Settlement{first})
			see(dueNow)
			overdue(t, l)
			pick(t, l, 5, true)
			second := unknown(m)
			second.Attempt, second.Receipts, second.Await = 2, 1, test.await
			settleAll(t, l, []ledger.Settlement{second})
			receive(t, l, keyed(m, 2, "r2", test.proof))
			if got := see(`select state from dispatcher.message_states`); got != "accepted" {
				t.Fatalf("it was proved, and is %s", got)
			}
			for range 2 {
				see(dueNow)
				overdue(t, l)
			}
			if got := see(`select state from dispatcher.message_states`); got != "no_receipt" {
				t.Errorf("its attempt awaits no receipts: %s", got)
			}
			if n := see(`select count(*)::text from dispatcher.receipts
				where due_at is not null`); n != "0" {
				t.Error("a row is looked at for ever")
			}
			receive(t, l, receipt("r1", provider.Delivered), receipt("r2", provider.Delivered))
			if got := see(`select state from dispatcher.message_states`); got != "delivered" {
				t.Errorf("what comes late tells nothing: %s", got)
			}
		})
	}
}

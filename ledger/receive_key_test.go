package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// keyed is a receipt that carries the key of an attempt.
func keyed(
	m ledger.Message, attempt int, reference string, state provider.ReceiptState,
) ledger.Receipt {
	r := receipt(reference, state)
	r.Seq, r.Attempt = m.Seq, attempt
	return r
}

func TestAReceiptWithOurKeyProvesThatAnUnknownAttemptWasTaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reference string
		states    []provider.ReceiptState
		want      string
	}{
		"delivered": {
			"r1",
			[]provider.ReceiptState{provider.Delivered},
			"delivered accepted delivered delivered at | delivered a 1  delivered",
		},
		"undelivered": {
			"r1",
			[]provider.ReceiptState{provider.Undelivered},
			"undelivered accepted undelivered absent undelivered | undelivered a 1 absent " +
				"undelivered",
		},
		"pending": {
			"r1",
			[]provider.ReceiptState{provider.Pending},
			"accepted accepted | accepted a 1  ",
		},
		"one after another": {
			"r1",
			[]provider.ReceiptState{provider.Pending, provider.Delivered},
			"delivered accepted delivered delivered at | accepted a 1  , delivered a 1  delivered",
		},
		"without reference": {
			"",
			[]provider.ReceiptState{provider.Pending, provider.Delivered},
			"delivered accepted delivered delivered at | accepted a 1  , delivered a 1  delivered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, []ledger.Settlement{unknown(m)})
			for _, state := range test.states {
				if got := receive(t, l, keyed(m, 1, test.reference, state)); got != (ledger.ReceiptCounts{Matched: 1}) {
					t.Errorf("%+v", got)
				}
			}
			if got := see(story); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if got := see(`select concat_ws(' ', coalesce(provider_reference, ''), answers,
				segments) from dispatcher.all_attempts`); got != test.reference+" 2 1" {
				t.Errorf("the attempt has %q", got)
			}
			settleAll(t, l, []ledger.Settlement{unknown(m)}) // it changes nothing
			if got := see(story); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The receipt comes before the attempt is settled as unknown, and no answer comes. The next call of
// Overdue finds both.
func TestAReceiptWithOurKeyWaitsForTheSettlement(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(ledger.Message) []ledger.Settlement{
		"unknown": func(m ledger.Message) []ledger.Settlement {
			return []ledger.Settlement{unknown(m)}
		},
		"accepted": func(m ledger.Message) []ledger.Settlement { return expecting(m, "r1") },
	} {
		for _, reference := range []string{"r1", ""} {
			t.Run(name+" "+reference, func(t *testing.T) {
				t.Parallel()
				l, m, see := one(t)
				if got := receive(t, l, keyed(m, 1, reference, provider.Delivered)); got != (ledger.ReceiptCounts{Matched: 1}) {
					t.Errorf("%+v", got)
				}
				look := func() {
					t.Helper()
					see(soonDue)
					overdue(t, l)
				}
				look()
				if got := see(story); got != "sending |" {
					t.Fatal(got)
				}
				settleAll(t, l, settle(m))
				look()
				if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
					t.Error(got)
				}
				look()
				if n := see(`select count(*)::text from dispatcher.receipts
					where due_at <= now() + interval '1 minute'`); n != "0" {
					t.Error("it is looked at for ever")
				}
			})
		}
	}
}

func TestAKeyOfAnotherChannelOrAttemptProvesNothing(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	other := keyed(m, 1, "r1", provider.Delivered)
	other.Channel = "b"
	if got := receive(t, l, other, keyed(m, 2, "r2", provider.Delivered), keyed(ledger.Message{
		Seq: 999,
	}, 1, "r3", provider.Delivered)); got != (ledger.ReceiptCounts{Early: 3}) {
		t.Errorf("%+v", got)
	}
	if got := receive(t, l, keyed(m, 2, "", provider.Delivered),
		receipt("", provider.Delivered)); got != (ledger.ReceiptCounts{Repeated: 2}) {
		t.Errorf("%+v", got)
	}
	if got := see(story); got != "unknown unknown |" {
		t.Error(got)
	}
}

// A message that waits to be resent is not sent again when a receipt tells its outcome.
func TestAReceiptStopsAResendThatHasNotBegun(t *testing.T) {
	t.Parallel()
	for _, state := range []provider.ReceiptState{
		provider.Pending, provider.Delivered,
		provider.Undelivered,
	} {
		t.Run(state.String(), func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			resend := unknown(m)
			resend.State, resend.Reason, resend.PossibleDuplicate, resend.Tried = ledger.Retry,
				"resend", true, true
			settleAll(t, l, []ledger.Settlement{resend})
			receive(t, l, keyed(m, 1, "r1", state))
			want := map[provider.ReceiptState]string{
				provider.Pending:   "accepted",
				provider.Delivered: "delivered", provider.Undelivered: "undelivered",
			}[state]
			if got := see(`select concat_ws(' ', state, possible_duplicate, next_at)
				from dispatcher.message_states`); got != want+" f" {
				t.Error(got)
			}
			if n, err := l.Claims.Due(t.Context(), 1); n != 0 || err != nil {
				t.Errorf("%d due, %v", n, err)
			}
		})
	}
}

// TestALateAnswerStopsAResendThatHasNotBegun, also a late answer to an attempt that was repeated
// under its key.
func TestALateAnswerStopsAResendThatHasNotBegun(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	repeat := unknown(m)
	repeat.State, repeat.Reason = ledger.Retry, "same_key"
	settleAll(t, l, []ledger.Settlement{repeat})
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	resend := unknown(m)
	resend.Attempt, resend.State, resend.Reason, resend.PossibleDuplicate = 2, ledger.Retry,
		"resend", true
	settleAll(t, l, []ledger.Settlement{resend})
	late := unknown(m)
	late.Outcome, late.State = provider.Accepted, ledger.Accepted
	settleAll(t, l, []ledger.Settlement{late})
	if got := see(`select concat_ws(' ', state, possible_duplicate, next_at)
		from dispatcher.message_states`); got != "accepted f" {
		t.Error(got)
	}
}

// resent settles attempt 1 as unknown and claims attempt 2.
func resent(t *testing.T, l *ledger.Ledger, m ledger.Message) ledger.Message {
	t.Helper()
	resend := unknown(m)
	resend.State, resend.PossibleDuplicate = ledger.Retry, true
	settleAll(t, l, []ledger.Settlement{resend})
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	m.Attempts = 1
	return m
}

// The outcome of the first attempt becomes known while the second is in flight. The message is
// delivered when either copy is.
func TestEitherCopyOfAResentMessageMayBeDelivered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, second provider.ReceiptState
		want          string
	}{
		"the first alone": {provider.Delivered, provider.Undelivered, "delivered"},
		"the second":      {provider.Undelivered, provider.Delivered, "delivered"},
		"neither":         {provider.Undelivered, provider.Undelivered, "undelivered"},
		"the second is open": {
			provider.Undelivered, provider.Pending, "accepted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			m = resent(t, l, m)
			receive(t, l, keyed(m, 1, "r1", test.first))
			// The receipt proves the first attempt, so the message is accepted at once.
			proved := map[provider.ReceiptState]string{
				provider.Delivered:   "delivered",
				provider.Undelivered: "accepted",
			}[test.first]
			if got := see(`select state from dispatcher.message_states`); got != proved {
				t.Fatal(got)
			}
			settleAll(t, l, expecting(m, "r2"))
			receive(t, l, receipt("r2", test.second))
			if got := see(`select state from dispatcher.message_states`); got != test.want {
				t.Error(got)
			}
			if got := see(`select string_agg(coalesce(receipt_state, 'open'), ' ' order by attempt)
				from dispatcher.all_attempts`); got != test.first.String()+" "+map[bool]string{true: "open", false: test.second.String()}[test.second == provider.Pending] {
				t.Error(got)
			}
		})
	}
}

// The second attempt gets no answer. While it is in flight a receipt says that the first one was
// delivered.
func TestADeliveredFirstCopyOutweighsAnUnknownSecond(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	m = resent(t, l, m)
	receive(t, l, keyed(m, 1, "r1", provider.Delivered))
	second := unknown(m)
	second.Attempt = 2
	settleAll(t, l, []ledger.Settlement{second})
	see(allDue)
	overdue(t, l)
	if got := see(`select state from dispatcher.message_states`); got != "delivered" {
		t.Error(got)
	}
}

// Parts that earlier attempts got accepted belong to the copy of the last attempt.
func TestPartsOfEarlierAttemptsCount(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	first := expecting(m, "r1 r2")
	first[0].Outcome, first[0].State, first[0].Pinned, first[0].PartsLeft = provider.Throttled,
		ledger.Retry, "a", []int{2}
	settleAll(t, l, first)
	receive(t, l, receipt("r1", provider.Delivered), receipt("r2", provider.Undelivered))
	if got := see(`select state from dispatcher.message_states`); got != "retry" {
		t.Fatal(got)
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	m.Attempts = 1
	settleAll(t, l, expecting(m, "r3"))
	receive(t, l, receipt("r3", provider.Delivered))
	if got := see(`select state from dispatcher.message_states`); got != "undelivered" {
		t.Error(got)
	}
	receive(t, l, receipt("r2", provider.Delivered))
	if got := see(`select state from dispatcher.message_states`); got != "delivered" {
		t.Error(got)
	}
}

// A late answer, after the receipt that proved the attempt, adds what the receipt did not say.
func TestASettlementAfterItsReceiptChangesNoState(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	receive(t, l, keyed(m, 1, "r1", provider.Delivered))
	late := expecting(m, "r1")
	late[0].Hold = time.Hour
	settleAll(t, l, late)
	overdue(t, l)
	if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
		t.Error(got)
	}
}

// The provider sends a pending receipt in place of an answer, and no final one.
func TestAPendingReceiptWithOurKeyIsNotTheLastOne(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	receive(t, l, keyed(m, 1, "r1", provider.Pending))
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	see(dueNow)
	overdue(t, l)
	if got := see(story); got != "accepted accepted | accepted a 1  " {
		t.Error(got)
	}
	overdue(t, l)
	see(dueNow)
	overdue(t, l)
	if got := see(story); got != "no_receipt accepted no_receipt | accepted a 1  , no_receipt a 1  " {
		t.Error(got)
	}
}

// dueNow makes four days pass: all rows that are ever due are due.
const dueNow = `with a as (update dispatcher.awaited set due_at = now()),
	u as (update dispatcher.receipts set due_at = now(),
	  look_at = case when look_at is not null then now() end where due_at is not null
	  returning 1),
	v as (update dispatcher.attempts set settled_at = settled_at - interval '4 days'
	where settled_at is not null)
	select count(*)::text from u`

// TestLateTruthsFromBothSidesContend: ambiguities, late answers, and receipts that prove the
// attempts are written at the same time.
func TestLateTruthsFromBothSidesContend(t *testing.T) {
	t.Parallel()
	url := lend(t).url
	l, db := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	rounds := tier.Size(1, 8)
	for round := range rounds {
		messages := claimAll(t, l, batch(fmt.Sprintf("m%d", round), 200), "a").Messages
		late := accepted(messages)
		var ambiguities []ledger.Settlement
		var receipts []ledger.Receipt
		for i := range late {
			late[i].Await = time.Hour
			ambiguities = append(ambiguities, unknown(messages[i]))
			receipts = append(receipts, keyed(messages[i], 1, late[i].Reference,
				provider.Delivered))
		}
		var workers sync.WaitGroup
		for worker := range 6 {
			workers.Go(func() {
				var err error
				switch worker % 3 {
				case 0:
					for few := range slices.Chunk(ambiguities, 8) {
						err = errors.Join(err, l.Settlements.Settle(t.Context(), few))
					}
				case 1:
					err = l.Settlements.Settle(t.Context(), late)
				default:
					_, err = l.Receipts.Receive(t.Context(), receipts, tellState)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		settleAll(t, l, late)
		execute(t, db, allDue)
		overdue(t, l)
		if n := scalar[int](t, db,
			`select count(*) from dispatcher.message_states where state <> 'delivered'`); n != 0 {
			t.Fatalf("%d messages are not delivered", n)
		}
	}
}

// The messages of a provider that gives no id can be matched by our key alone. Without a key in the
// receipts they do not stay open for ever.
func TestAcceptedWithoutReference(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reference string
		receipt   func(ledger.Message) []ledger.Receipt
		want      string
	}{
		"none comes": {"", nil, "no_receipt accepted no_receipt | no_receipt a 1  "},
		"an impossible id": {
			strings.Repeat("x", 300), nil, "no_receipt accepted no_receipt | no_receipt a 1  ",
		},
		"with our key": {"", func(m ledger.Message) []ledger.Receipt {
			return []ledger.Receipt{
				keyed(m, 1, "", provider.Pending),
				keyed(m, 1, "", provider.Delivered),
			}
		}, "delivered accepted delivered delivered at | delivered a 1  delivered"},
		"with our key and an id": {"", func(m ledger.Message) []ledger.Receipt {
			return []ledger.Receipt{keyed(m, 1, "r1", provider.Delivered)}
		}, "delivered accepted delivered delivered at | delivered a 1  delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, expecting(m, test.reference))
			if test.receipt != nil {
				receive(t, l, test.receipt(m)...)
			}
			see(dueNow)
			overdue(t, l)
			if got := see(story); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if n := see(`select count(*)::text from audit.receipts where reference like '% %'
				or reference = ''`); n != "0" {
				t.Error("a stand-in for a reference is shown")
			}
		})
	}
}

// TestARepeatedReceiptLooksAtItsMessage even when it changes no row, because the message may not
// have been concluded since the settlement.
func TestARepeatedReceiptLooksAtItsMessage(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	receive(t, l, receipt("r1", provider.Delivered))
	settleAll(t, l, expecting(m, "r1"))
	if got := receive(t, l, receipt("r1", provider.Delivered)); got != (ledger.ReceiptCounts{
		Repeated: 1,
	}) {
		t.Errorf("%+v", got)
	}
	if got := see(states); got != "m delivered" {
		t.Error(got)
	}
}

// TestAKeyOfAnotherMessageSpoilsNoReceipt: a receipt with such a key contradicts its reference,
// whether or not the attempt exists. A receipt for that reference without a key, in the same batch,
// counts.
func TestAKeyOfAnotherMessageSpoilsNoReceipt(t *testing.T) {
	t.Parallel()
	r := lend(t)
	l, db := r.l, r.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, batch("m", 2), "a").Messages
	settleAll(t, l, expecting(m[0], "r1"))
	if got := receive(t, l, keyed(m[1], 7, "r1", provider.Delivered)); got !=
		(ledger.ReceiptCounts{Contradictory: 1}) {
		t.Errorf("without attempt: %+v", got)
	}
	if got := scalar[string](t, db, states); got != "m-00000 accepted, m-00001 sending" {
		t.Error(got)
	}
	if got := receive(t, l, keyed(m[1], 1, "r1", provider.Delivered),
		receipt("r1", provider.Undelivered)); got !=
		(ledger.ReceiptCounts{Matched: 1, Contradictory: 1}) {
		t.Errorf("%+v", got)
	}
	if got := scalar[string](t, db, states); got != "m-00000 undelivered, m-00001 sending" {
		t.Error(got)
	}
}

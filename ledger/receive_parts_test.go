package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// unanswered settles the attempt of a message of three parts as unknown, with the given references.
func unanswered(m ledger.Message, references string) ledger.Settlement {
	s := unknown(m)
	s.Segments, s.PriceMicros, s.Receipts, s.Reference, s.Await = 3, 84_000, 3, references,
		72*time.Hour
	return s
}

const parts = `select concat_ws(' ', m.state, a.outcome, a.receipt_state,
	a.delivered_at is not null, a.provider_reference)
	from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq
	  and a.attempt = 1`

// TestTheReceiptOfOnePartIsNoDelivery: all parts of a submission carry the same key.
func TestTheReceiptOfOnePartIsNoDelivery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		references string
		given      func(ledger.Message) []ledger.Receipt
		want, then string // then: when time is up
	}{
		"by key": {
			"", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{keyed(m, 1, "r1", provider.Delivered)}
			},
			"accepted accepted f r1", "no_receipt accepted no_receipt f r1",
		},
		"by an id that was answered": {
			"r1", func(ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{receipt("r1", provider.Delivered)}
			},
			"unknown unknown f r1", "unknown unknown f r1",
		},
		"by both": {
			"r1", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{
					receipt("r1", provider.Delivered),
					keyed(m, 1, "r2", provider.Delivered),
				}
			},
			"accepted accepted f r1 r2", "no_receipt accepted no_receipt f r1 r2",
		},
		"undelivered": {
			"", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{
					keyed(m, 1, "r1", provider.Delivered),
					keyed(m, 1, "r2", provider.Undelivered),
				}
			},
			"accepted accepted f r1 r2", "no_receipt accepted no_receipt f r1 r2",
		},
		"by a key without an id": {
			"", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{
					keyed(m, 1, "", provider.Delivered),
					keyed(m, 1, "", provider.Delivered), keyed(m, 1, "", provider.Delivered),
				}
			},
			"accepted accepted f", "no_receipt accepted no_receipt f",
		},
		"of all parts": {
			"", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{
					keyed(m, 1, "r1", provider.Delivered),
					keyed(m, 1, "r2", provider.Delivered), keyed(m, 1, "r3", provider.Delivered),
				}
			},
			"delivered accepted delivered t r1 r2 r3", "delivered accepted delivered t r1 r2 r3",
		},
		"of all parts, one of them not": {
			"", func(m ledger.Message) []ledger.Receipt {
				return []ledger.Receipt{
					keyed(m, 1, "r1", provider.Delivered),
					keyed(m, 1, "r2", provider.Undelivered), keyed(m, 1, "r3", provider.Delivered),
				}
			},
			"undelivered accepted undelivered f r1 r2 r3",
			"undelivered accepted undelivered f r1 r2 r3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, []ledger.Settlement{unanswered(m, test.references)})
			receive(t, l, test.given(m)...)
			if got := see(parts); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			see(dueNow)
			overdue(t, l)
			if got := see(parts); got != test.then {
				t.Errorf("then %s\nwant %s", got, test.then)
			}
			if n := see(`select count(*)::text from dispatcher.receipts
				where due_at < now() + interval '1 hour'`); n != "0" {
				t.Error("a row is looked at for ever")
			}
		})
	}
}

// TestAPartThatNeverLeftKeepsTheOthersFromBeingADelivery: two of three parts were submitted,
// without an answer.
func TestAPartThatNeverLeftKeepsTheOthersFromBeingADelivery(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := unanswered(m, "")
	s.Segments, s.Receipts, s.CutShort = 2, 2, true
	settleAll(t, l, []ledger.Settlement{s})
	receive(t, l, keyed(m, 1, "r1", provider.Delivered))
	if got := see(parts); got != "accepted accepted f r1" {
		t.Error(got)
	}
	receive(t, l, keyed(m, 1, "r2", provider.Delivered))
	if got := see(parts); got != "undelivered accepted undelivered f r1 r2" {
		t.Error(got)
	}
	if got := see(`select receipt_code from dispatcher.all_attempts`); got != "unsent" {
		t.Error(got)
	}
}

// TestALateAnswerIsAReceiptThatIsPending: an answer after the timeout names the id of a part. It
// proves that the part was accepted, and later receipts with that id match it.
func TestALateAnswerIsAReceiptThatIsPending(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := unanswered(m, "")
	s.State, s.Reason, s.PossibleDuplicate = ledger.Retry, "resend", true
	settleAll(t, l, []ledger.Settlement{s})
	for i, step := range []struct {
		given []ledger.Receipt
		want  string
	}{
		{[]ledger.Receipt{keyed(m, 1, "r2", provider.Pending)}, "accepted accepted f r2"},
		{
			[]ledger.Receipt{keyed(m, 1, "r1", provider.Pending), keyed(m, 1, "r3", provider.Pending)},
			"accepted accepted f r2 r1 r3",
		},
		{[]ledger.Receipt{receipt("r2", provider.Delivered)}, "accepted accepted f r2 r1 r3"},
		{[]ledger.Receipt{receipt("r1", provider.Delivered)}, "accepted accepted f r2 r1 r3"},
		{
			[]ledger.Receipt{receipt("r3", provider.Delivered)},
			"delivered accepted delivered t r2 r1 r3",
		},
	} {
		if got := receive(t, l, step.given...); got.Matched != len(step.given) {
			t.Errorf("step %d: %+v", i, got)
		}
		overdue(t, l)
		if got := see(parts); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
	if got := see(chronicle); got != "delivered | accepted delivered | accepted delivered" {
		t.Error(got)
	}
}

// TestALateAnswerBeforeItsSettlement comes between the timeout and the settlement.
func TestALateAnswerBeforeItsSettlement(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	receive(t, l, keyed(m, 1, "r1", provider.Pending))
	s := unknown(m)
	s.Receipts, s.Await = 1, time.Hour
	settleAll(t, l, []ledger.Settlement{s})
	see(allDue)
	overdue(t, l)
	if got := see(parts); got != "accepted accepted f r1" {
		t.Fatal(got)
	}
	receive(t, l, receipt("r1", provider.Delivered))
	if got := see(parts); got != "delivered accepted delivered t r1" {
		t.Error(got)
	}
}

// TestAReceiptWithoutIDIsNotAboutAllPartsThatWereNamed: it names the submission and no part.
func TestAReceiptWithoutIDIsNotAboutAllPartsThatWereNamed(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1 r2"))
	receive(t, l, keyed(m, 1, "", provider.Delivered))
	if got := see(parts); got != "accepted accepted f r1 r2" {
		t.Error(got)
	}
	receive(t, l, receipt("r2", provider.Delivered))
	if got := see(parts); got != "accepted accepted f r1 r2" {
		t.Error(got)
	}
	receive(t, l, receipt("r1", provider.Undelivered))
	if got := see(parts); got != "undelivered accepted undelivered f r1 r2" {
		t.Error(got)
	}
}

// TestALateAnswerToTheWholeCorrectsTheExpectedReceipts: only the late answer shows that the
// provider gives one id for all parts. The order of answer and receipt makes no difference.
func TestALateAnswerToTheWholeCorrectsTheExpectedReceipts(t *testing.T) {
	t.Parallel()
	for _, proved := range []bool{false, true} {
		l, m, see := one(t)
		settleAll(t, l, []ledger.Settlement{unanswered(m, "")})
		if proved {
			receive(t, l, keyed(m, 1, "r1", provider.Delivered))
		}
		late := expecting(m, "r1")
		late[0].Receipts = 1
		settleAll(t, l, late)
		if !proved {
			receive(t, l, receipt("r1", provider.Delivered))
		}
		overdue(t, l)
		if got := see(parts); got != "delivered accepted delivered t r1" {
			t.Errorf("proved before %t: %s", proved, got)
		}
	}
}

// TestAVerdictThatAReceiptHasProvedWrongIsNotWrittenDown: the receipt came after the operator had
// read the ambiguity.
func TestAVerdictThatAReceiptHasProvedWrongIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.AwaitReceipt)
	receive(t, l, keyed(m, 1, "r1", provider.Pending))
	no := unknown(m)
	no.Outcome, no.State, no.Segments, no.PriceMicros = provider.Refused, ledger.Retry, 0, 0
	if resolve(t, l, ledger.Resolution{
		Seq: m.Seq, Key: "k", As: ledger.NotTaken, Author: "ops",
		Settlement: &no,
	}) || resolve(t, l, final(m)) {
		t.Error("it was")
	}
	if got := see(parts); got != "accepted accepted f r1" {
		t.Error(got)
	}
}

package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestWhereNoReceiptsAreExpectedNoneIsMissing: on a channel without receipts the answer is the last
// message, however late it came. This stays so when receipts with our key come that are not final.
func TestWhereNoReceiptsAreExpectedNoneIsMissing(t *testing.T) {
	t.Parallel()
	type deed func(*testing.T, *ledger.Ledger, ledger.Message)
	settled := func(change func(*ledger.Settlement)) deed {
		return func(t *testing.T, l *ledger.Ledger, m ledger.Message) {
			s := expecting(m, "r1")
			s[0].Await = 0
			if change != nil {
				change(&s[0])
			}
			settleAll(t, l, s)
		}
	}
	silent := func(await time.Duration, receipts int) deed {
		return settled(func(s *ledger.Settlement) {
			s.Outcome, s.State, s.Reference, s.Await, s.Receipts = provider.Unknown, ledger.Unknown,
				"", await, receipts
		})
	}
	told := func(reference string, state provider.ReceiptState) deed {
		return func(t *testing.T, l *ledger.Ledger, m ledger.Message) {
			receive(t, l, keyed(m, 1, reference, state))
		}
	}
	pending := func(reference string) deed { return told(reference, provider.Pending) }
	two := settled(func(s *ledger.Settlement) { s.Reference, s.Receipts = "r1 r2", 2 })
	for name, test := range map[string]struct {
		deeds []deed
		want  string
	}{
		"an answer, and its id": {
			[]deed{settled(nil), pending("r1")},
			"accepted accepted f r1",
		},
		"an answer, and another id": {
			[]deed{settled(nil), pending("r2")},
			"accepted accepted f r1",
		},
		"an answer, and no id": {
			[]deed{settled(nil), pending("")},
			"accepted accepted f r1",
		},
		"an answer without id": {[]deed{settled(func(s *ledger.Settlement) {
			s.Reference = ""
		}), pending("r1")}, "accepted accepted f"},
		"an answer that comes second": {
			[]deed{pending("r1"), settled(nil)},
			"accepted accepted f r1",
		},
		"an answer for several parts": {[]deed{settled(func(s *ledger.Settlement) {
			s.Receipts = 3
		}), pending("r1")}, "accepted accepted f r1"},
		"an answer that holds its slot": {[]deed{settled(func(s *ledger.Settlement) {
			s.Hold = time.Hour
		}), pending("r1")}, "accepted accepted f r1"},
		"no answer": {
			[]deed{silent(0, 1), pending("r1")},
			"accepted accepted f r1",
		},
		"no answer, for several parts": {
			[]deed{silent(0, 3), pending("r1")},
			"accepted accepted f r1",
		},
		"a late answer": {
			[]deed{silent(0, 1), settled(nil), pending("r1")},
			"accepted accepted f r1",
		},
		"a late answer, of another mind": {
			[]deed{silent(time.Hour, 1), settled(nil), pending("r1")}, "accepted accepted f r1",
		},
		"a late answer to who said nothing": {
			[]deed{silent(0, 0), settled(nil), pending("r1")},
			"accepted accepted f r1",
		},
		"a last word about one part": {
			[]deed{two, told("r1", provider.Delivered)},
			"accepted accepted f r1 r2",
		},
		"last words about all parts": {
			[]deed{two, told("r1", provider.Delivered), told("r2", provider.Delivered)},
			"delivered accepted delivered t r1 r2",
		},
		"a last word about the message": {
			[]deed{settled(nil), told("", provider.Delivered)},
			"delivered accepted delivered t r1",
		},
		"a last word about parts with one id": {
			[]deed{settled(func(s *ledger.Settlement) {
				s.Reference = "r1 r1"
			}), told("r1", provider.Delivered)}, "delivered accepted delivered t r1 r1",
		},
		"a last word that names no part": {
			[]deed{two, told("", provider.Delivered)},
			"accepted accepted f r1 r2",
		},
		"last words, of which one names none": {[]deed{
			two, told("", provider.Delivered),
			told("r2", provider.Delivered),
		}, "delivered accepted delivered t r1 r2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			for _, do := range test.deeds {
				do(t, l, m)
			}
			for range 2 {
				see(dueNow)
				overdue(t, l)
			}
			if got := see(parts); got != test.want {
				t.Errorf("it came to %q, want %q", got, test.want)
			}
			if n := see(`select count(*)::text from dispatcher.receipts
				where due_at is not null`); n != "0" {
				t.Error("a row is looked at for ever")
			}
		})
	}
}

// TestAProofIsAwaitedWhereNothingWasSaidOfReceipts: the instance that settled the attempt did not
// know whether the channel gives receipts.
func TestAProofIsAwaitedWhereNothingWasSaidOfReceipts(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	receive(t, l, keyed(m, 1, "r1", provider.Pending))
	receive(t, l, keyed(m, 1, "r2", provider.Pending)) // after the proof, not with it
	if n := see(`select count(*)::text from dispatcher.receipts
		where due_at between now() + interval '71 hours'
		  and now() + interval '73 hours'`); n != "2" {
		t.Errorf("%s rows are awaited for three days", n)
	}
	see(dueNow)
	overdue(t, l)
	if got := see(parts); got != "no_receipt accepted no_receipt f r1" {
		t.Errorf("it came to %q", got)
	}
}

package ledger

import (
	"strings"
	"testing"
	"time"
)

// denials are attempts: an outcome, the parts that were taken, and those that the answer denied, in
// the letters of rowsOf.
func denials(words ...string) (tries []attemptStatus) {
	for i := 0; i < len(words); i += 3 {
		s := attempted(words[i], time.Hour, false, words[i+1])
		for _, p := range rowsOf(words[i+2]) {
			p.byKey = true
			s.parts = append(s.parts, p)
		}
		s.number = i/3 + 1
		tries = append(tries, s)
	}
	return tries
}

// TestWhatWasDeniedAndDelivered is the state of a message, and whether it is flagged, after a
// receipt that contradicts an answer.
func TestWhatWasDeniedAndDelivered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state   State
		tries   []attemptStatus
		denied  int // of the first attempt
		want    State
		flagged bool
	}{
		"it is to be sent again": {
			Retry, denials("refused", "", "d"), 0,
			Delivered, false,
		},
		"it waits": {
			Waiting, denials("throttled", "", "d"), 0,
			Delivered, false,
		},
		"it was rejected": {
			Rejected, denials("rejected", "", "d"), 0,
			Delivered, false,
		},
		"it failed": {
			Failed, denials("refused", "", "d", "refused", "", ""), 0, Delivered, false,
		},
		"nobody knows of the other": {
			Unknown, denials("refused", "", "d", "unknown", "", ""), 0, Delivered, true,
		},
		"another is under way": {
			Sending, denials("refused", "", "d", "", "", ""), 0, Delivered, true,
		},
		"another took it": {
			Accepted, denials("refused", "", "d", "accepted", "e", ""), 0, Delivered, true,
		},
		"another delivered it": {
			Delivered, denials("refused", "", "d", "accepted", "d", ""), 0, Delivered, true,
		},
		"another did not deliver it": {
			Undelivered, denials("refused", "", "d", "accepted", "u", ""), 0, Delivered, true,
		},
		"another was refused as well": {
			Retry, denials("refused", "", "d", "refused", "", "e"), 0, Delivered, false,
		},
		"both were delivered": {
			Retry, denials("refused", "", "d", "refused", "", "d"), 0, Delivered, true,
		},
		"it says no more than the answer": {
			Retry, denials("refused", "", "u"), 0, "",
			false,
		},
		"it says nothing yet": {
			Retry, denials("refused", "", "p"), 0, "",
			false,
		},
		"one part of two": {
			Retry, denials("refused", "", "d"), 2, "",
			false,
		},
		"one part of two, and another took it": {
			Accepted, denials("refused", "", "d", "accepted", "e", ""), 2, Accepted, true,
		},
		"one part of two, another is under way": {
			Sending, denials("refused", "", "d", "", "", ""), 2, "", true,
		},
		"two parts of two": {
			Retry, denials("refused", "", "dd"), 2,
			Delivered, false,
		},
		"the rest, with what was taken": {
			Retry, denials("refused", "d", "d"), 1,
			Delivered, false,
		},
		"the rest, while the other is awaited": {
			Retry, denials("refused", "e", "d"), 1,
			Accepted, false,
		},
		"the rest was awaited in vain": {
			Accepted, denials("refused", "E", "d"), 1,
			NoReceipt, false,
		},
		"the rest, and the other was not": {
			Accepted, denials("refused", "u", "d"), 1,
			Undelivered, false,
		},
		"the rest of what was rejected": {
			Rejected, denials("rejected", "d", "d"), 1,
			Delivered, false,
		},
		"the rest of what was rejected, too soon": {
			Rejected, denials("rejected", "e", "d"), 1, "",
			false,
		},
		"delivered stays": {Delivered, denials("refused", "", "d"), 0, "", false},
	} {
		s := receiptStatus{state: test.state, attempts: len(test.tries), tries: test.tries}
		s.tries[0].denied = test.denied
		s.conclude()
		if s.closing.State != test.want || s.flagged != test.flagged ||
			s.closing.PossibleDuplicate != test.flagged {
			t.Errorf("%s: %s comes to %q, flagged: %t", name, test.state, s.closing.State,
				s.flagged)
		}
		again := receiptStatus{state: s.state, attempts: len(s.tries), tries: s.tries}
		if s.closing.State != "" {
			again.state = s.closing.State
		}
		again.closing.PossibleDuplicate = s.closing.PossibleDuplicate
		again.conclude()
		if again.flagged || again.closing.State != "" && s.closing.State != Accepted {
			t.Errorf("%s: the second look brings it from %s to %q", name, s.closing.State,
				again.closing.State)
		}
	}
}

// TestAReceiptUnderAnotherIDStandsForAPart: its key proves that it is about one of them.
func TestAReceiptUnderAnotherIDStandsForAPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		named, others string // rows by the ids of the answer, and by others with our key
		want          State
	}{
		{"e", "d", Delivered},
		{"e", "u", Undelivered},
		{"e", "p", ""},
		{"E", "d", Delivered},
		{"u", "d", Delivered},
		{"d", "u", Delivered},
		{"ee", "d", ""},
		{"ee", "dd", Delivered},
		{"ee", "du", Undelivered},
		{"de", "d", Delivered},
		{"EE", "d", NoReceipt},
		{"du", "d", Undelivered}, // it may be about the part that is delivered
		{"du", "dd", Delivered},
		{"ue", "d", Undelivered},
	} {
		one := denials("accepted", test.named, test.others)[0]
		count := one.countParts()
		if got := count.word(); got.state != test.want {
			t.Errorf("%q and %q come to %q, want %q", test.named, test.others, got.state, test.want)
		}
	}
}

// TestOnePartThatIsToldOfTwiceIsOnePart: by the id that the answer named, and by our key with
// another id or with none.
func TestOnePartThatIsToldOfTwiceIsOnePart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rows string // references of what is delivered
		want bool
	}{
		{"7F", false}, {"7F 80", true}, {"7F x", false}, {"7F _", false}, {"x y", true}, {
			"x _", false,
		}, {"7F 80 x", true},
	} {
		one := attemptStatus{outcome: "refused", reference: "7F 80", denied: 2}
		for id := range strings.FieldsSeq(test.rows) {
			one.parts = append(one.parts, part{
				reference: strings.ReplaceAll(id, "_", " 1.1"),
				byKey:     true, state: string(Delivered),
			})
		}
		if got := one.deliveredAnyway(); got != test.want {
			t.Errorf("%s: all of it was delivered: %t", test.rows, got)
		}
	}
}

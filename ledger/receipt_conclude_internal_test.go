package ledger

import (
	"testing"
	"time"

	"dispatcher/provider"
)

// row is a part in a state, by a letter: d delivered, u undelivered, p pending, e expected. A
// lower-case one is awaited while it is not final, an upper-case one is not. w is a receipt for the
// whole attempt.
func row(letter byte) part {
	p := part{reference: "r", state: map[byte]string{
		'd': "delivered", 'u': "undelivered",
		'p': "pending", 'e': "expected", 'P': "pending", 'E': "expected",
	}[letter]}
	p.awaited = letter == 'p' || letter == 'e'
	if p.state == "undelivered" {
		p.word.cause = provider.Absent
	}
	p.word.at = time.Unix(int64(letter), 0)
	return p
}

func rowsOf(letters string) (parts []part) {
	for i := range len(letters) {
		if letters[i] == 'w' {
			whole := row('d')
			whole.reference, whole.byKey = " 1.1", true
			parts = append(parts, whole)
			continue
		}
		parts = append(parts, row(letters[i]))
	}
	return parts
}

// comeTo is the receipt state of an accepted attempt with these parts that expects so many
// receipts.
func comeTo(expected int, parts []part) reported {
	count := (&attemptStatus{
		outcome: provider.Accepted.String(), expected: expected, within: time.Hour,
		parts: parts,
	}).countParts()
	return count.word()
}

func TestPartsComeToOneWord(t *testing.T) {
	t.Parallel()
	for letters, want := range map[string]State{
		"": "", "d": Delivered, "u": Undelivered, "p": "", "e": "", "P": NoReceipt, "E": NoReceipt,
		"dd": Delivered, "du": Undelivered, "ud": Undelivered, "uu": Undelivered, "de": "",
		"ue": "", "dE": NoReceipt, "uE": NoReceipt,
		"ePd": "", "dPd": NoReceipt, "w": Delivered, "we": Delivered, "wu": Delivered,
		// one of two parts, nobody knows which
		"wee": "", "we" + "E": "", "wdd": Delivered, "wud": Undelivered,
	} {
		got := comeTo(0, rowsOf(letters))
		if got.state != want {
			t.Errorf("%q comes to %q, want %q", letters, got.state, want)
		}
		if got.state == Undelivered && got.cause != provider.Absent || got.state != Undelivered &&
			got.cause != "" {
			t.Errorf("%q has cause %q", letters, got.cause)
		}
	}
}

// TestPartsWithoutAWordKeepTheOthersFromBeingADelivery: there are rows for the parts that have a
// receipt, but more parts were submitted.
func TestPartsWithoutAWordKeepTheOthersFromBeingADelivery(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		expected int // receipts
		letters  string
		timed    bool // the first part is awaited
		want     State
	}{
		{1, "d", false, Delivered},
		{2, "d", true, ""},
		{2, "d", false, NoReceipt},
		{2, "u", true, ""},
		{3, "dd", false, NoReceipt},
		{3, "du", true, ""},
		{3, "ddd", true, Delivered},
		{2, "dd", false, Delivered},
		{2, "de", false, ""},
		{3, "de", false, ""},
		{1, "w", false, Delivered},
		{3, "w", false, NoReceipt},
		{3, "w", true, ""},
		{2, "wd", false, Delivered},
		{2, "we", false, ""},
		{3, "wdd", false, Delivered},
		{3, "wdu", false, Undelivered},
		{2, "wud", false, Undelivered},
		{1, "we", false, Delivered},
	} {
		parts := rowsOf(test.letters)
		parts[0].awaited = parts[0].awaited || test.timed
		if got := comeTo(test.expected, parts); got.state != test.want {
			t.Errorf("%q of %d comes to %q, want %q", test.letters, test.expected, got.state,
				test.want)
		}
	}
}

// TestAMessageThatWasCutShortIsNotDelivered: that is certain when all parts that were sent are
// final.
func TestAMessageThatWasCutShortIsNotDelivered(t *testing.T) {
	t.Parallel()
	for letters, want := range map[string]reported{
		"":   {},
		"dd": {state: Undelivered, code: "unsent"},
		"du": {state: Undelivered, cause: provider.Absent},
		"d":  {state: NoReceipt},
		"dE": {state: NoReceipt},
		"de": {},
	} {
		count := (&attemptStatus{
			outcome: provider.Accepted.String(), expected: 2, within: time.Hour,
			cut: true, parts: rowsOf(letters),
		}).countParts()
		got := count.word()
		got.at = time.Time{}
		if got != want {
			t.Errorf("%q comes to %+v, want %+v", letters, got, want)
		}
	}
}

// attemptsOf are the attempts of a message. Each word is an outcome and the parts.
func attemptsOf(outcomes ...string) (tries []attemptStatus) {
	for i := 0; i < len(outcomes); i += 2 {
		tries = append(tries, attemptStatus{
			number: i/2 + 1, outcome: outcomes[i],
			within: time.Hour, parts: rowsOf(outcomes[i+1]),
		})
	}
	return tries
}

func TestAMessageComesToAState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state State
		tries []attemptStatus
		want  State
	}{
		"delivered": {
			Accepted, attemptsOf("accepted", "d"),
			Delivered,
		},
		"still open": {
			Accepted, attemptsOf("accepted", "de"),
			"",
		},
		"nothing is expected": {Accepted, attemptsOf("accepted", ""), ""},
		"no word": {
			Accepted, attemptsOf("accepted", "E"),
			NoReceipt,
		},
		"no word again": {
			NoReceipt, attemptsOf("accepted", "E"),
			"",
		},
		"late": {
			NoReceipt, attemptsOf("accepted", "u"),
			Undelivered,
		},
		"proven wrong": {
			Undelivered, attemptsOf("accepted", "d"),
			Delivered,
		},
		"delivered stays": {
			Delivered, attemptsOf("accepted", "u"),
			"",
		},
		"parts of two attempts": {
			Accepted, attemptsOf("throttled", "d", "accepted", "d"), Delivered,
		},
		"a part of the first is missing": {
			Accepted, attemptsOf("throttled", "u", "accepted", "d"), Undelivered,
		},
		"the rest is on its way": {
			Sending, attemptsOf("refused", "d", "", ""), "",
		},
		"the rest waits": {Retry, attemptsOf("refused", "d"), ""},
		"two copies, one delivered": {
			Accepted, attemptsOf("accepted", "u", "accepted", "d"), Delivered,
		},
		"two copies, neither": {
			Accepted, attemptsOf("accepted", "u", "accepted", "u"), Undelivered,
		},
		"two copies, one open": {
			Accepted, attemptsOf("accepted", "u", "accepted", "e"), "",
		},
		"two copies, the first is silent": {
			Accepted, attemptsOf("accepted", "E", "accepted", "u"), NoReceipt,
		},
		"a copy that nobody expects a receipt for": {
			Accepted, attemptsOf("accepted", "u", "accepted", ""), "",
		},
		"the first copy, the second is unknown": {
			Unknown, attemptsOf("accepted", "d", "unknown", ""), Delivered,
		},
		"an undelivered copy, the second is unknown": {
			Unknown, attemptsOf("accepted", "u", "unknown", ""), "",
		},
		"found out of the first, the second is unknown": {
			Unknown, attemptsOf("accepted", "e", "unknown", ""), Accepted,
		},
		"found out of the first, the second is refused": {
			Retry, attemptsOf("accepted", "e", "refused", ""), Accepted,
		},
		"found out while it waits": {
			Retry, attemptsOf("accepted", "e"),
			Accepted,
		},
		"found out and silent": {
			Unknown, attemptsOf("accepted", "E"),
			Accepted,
		},
		"a part of what is unknown": {Unknown, attemptsOf("unknown", "d"), ""},
		"what was refused since stays so": {
			Failed, attemptsOf("accepted", "d", "refused", ""), "",
		},
		"undelivered, and a further copy is on its way": {
			Sending, attemptsOf("accepted", "u", "", ""), "",
		},
		"undelivered, and a further copy has begun since": {
			Sending, attemptsOf("accepted", "u"), "",
		},
		"pending, and a further copy is on its way": {
			Sending, attemptsOf("accepted", "p", "", ""), "",
		},
		"silent, and a further copy is on its way": {
			Sending, attemptsOf("accepted", "E", "", ""), "",
		},
		"silent, and a further copy has begun since": {
			Sending, attemptsOf("accepted", "E"), "",
		},
		"silent, and the resend of a proved copy is on its way": {
			Accepted, attemptsOf("accepted", "E", "", ""), "",
		},
		"delivered, and a further copy is on its way": {
			Sending, attemptsOf("accepted", "d", "", ""), Delivered,
		},
		"the second copy is refused by the subscriber": {
			Rejected, attemptsOf("accepted", "d", "rejected", ""), "",
		},
	} {
		s := receiptStatus{state: test.state, attempts: len(test.tries), tries: test.tries}
		s.conclude()
		if s.closing.State != test.want {
			t.Errorf("%s: %s comes to %q, want %q", name, test.state, s.closing.State, test.want)
		}
	}
}

// attempted is an attempt whose receipts are awaited for within, or not at all, with its parts,
// which a settlement or receipts with our key made.
func attempted(outcome string, within time.Duration, byKey bool, letters string) attemptStatus {
	s := attemptStatus{outcome: outcome, within: within, left: within, parts: rowsOf(letters)}
	for i := range s.parts {
		s.parts[i].byKey = byKey
	}
	return s
}

// TestAPartWithoutReceiptsToComeIsNotMissing, neither alone nor beside a part of another attempt
// whose receipt was expected.
func TestAPartWithoutReceiptsToComeIsNotMissing(t *testing.T) {
	t.Parallel()
	const awaited, byKey = time.Hour, true
	ofTwo := attempted("accepted", awaited, byKey, "d")
	ofTwo.expected, ofTwo.within = 2, 0
	nameless := attempted("throttled", awaited, !byKey, "")
	nameless.expected, nameless.segments = 1, 1
	corrected := attempted("refused", awaited, !byKey, "") // it was taken for lost first
	corrected.expected, corrected.cut = 2, true
	for name, test := range map[string]struct {
		tries []attemptStatus
		want  State
	}{
		"proved under way": {
			[]attemptStatus{attempted("unknown", 0, byKey, "P")}, Accepted,
		},
		"answered, then under way": {
			[]attemptStatus{attempted("accepted", awaited, byKey, "P")}, "",
		},
		"answered, then delivered": {
			[]attemptStatus{attempted("accepted", awaited, byKey, "d")}, Delivered,
		},
		"answered, then not delivered": {
			[]attemptStatus{attempted("accepted", awaited, byKey, "u")}, Undelivered,
		},
		"answered, one of two came to an end": {
			[]attemptStatus{attempted("accepted", awaited, byKey, "dP")}, "",
		},
		"the first part was delivered": {[]attemptStatus{attempted("throttled", awaited,
			!byKey, "d"), attempted("accepted", awaited, byKey, "P")}, ""},
		"answered, one of two": {[]attemptStatus{ofTwo}, ""},
		"nothing is due of the first part": {[]attemptStatus{
			attempted("throttled", 0, !byKey, "P"), attempted("accepted", awaited, !byKey, "d"),
		}, ""},
		"nothing was taken, as it turned out": {
			[]attemptStatus{corrected, attempted("accepted", awaited, !byKey, "d")}, Delivered,
		},
		"the first part has no id": {
			[]attemptStatus{nameless, attempted("accepted", awaited, !byKey, "d")}, NoReceipt,
		},
		"the first part was not delivered": {[]attemptStatus{attempted("throttled", awaited,
			!byKey, "u"), attempted("accepted", awaited, byKey, "P")}, ""},
		"nobody told of the first part": {[]attemptStatus{attempted("throttled", awaited,
			!byKey, "E"), attempted("accepted", awaited, byKey, "P")}, NoReceipt},
		"nobody told of the first part yet": {[]attemptStatus{attempted("throttled", awaited,
			!byKey, "e"), attempted("accepted", awaited, byKey, "P")}, ""},
		"no receipt of the first part was due": {[]attemptStatus{attempted("throttled", awaited,
			byKey, "P"), attempted("accepted", awaited, !byKey, "d")}, Delivered},
		"the first part, and the rest is proved": {[]attemptStatus{
			attempted("throttled", awaited, !byKey, "d"), attempted("unknown", 0, byKey, "P"),
		}, Accepted},
	} {
		s := receiptStatus{state: Accepted, attempts: len(test.tries), tries: test.tries}
		for i := range s.tries {
			s.tries[i].number = i + 1
			if s.tries[i].outcome == provider.Unknown.String() {
				s.state = Unknown
			}
		}
		s.conclude()
		if s.closing.State != test.want {
			t.Errorf("%s: it comes to %q, want %q", name, s.closing.State, test.want)
		}
		last := &s.tries[len(s.tries)-1]
		for i := range last.parts {
			if wait := s.dueAgain(last, &last.parts[i]); wait != 0 {
				t.Errorf("%s: somebody is to look at it in %s", name, wait)
			}
		}
	}
}

// TestAProofIsLookedAtOnceMoreWhereItIsNotTheEnd: by then the message is accepted, and its parts
// decide its next state. Where they decide nothing the row is not due again.
func TestAProofIsLookedAtOnceMoreWhereItIsNotTheEnd(t *testing.T) {
	t.Parallel()
	const byKey = true
	for _, test := range []struct {
		first, proof string
		want         time.Duration
	}{
		{"E", "P", recheckInterval}, // no receipt of the first part came in time
		{"E", "d", recheckInterval},
		{"u", "P", 0}, // nobody knows of the rest
		{"e", "P", 0}, // the row of the first part is looked at
	} {
		rest := attempted("unknown", 0, byKey, test.proof)
		rest.number = 2
		head := attempted("throttled", time.Hour, !byKey, test.first)
		head.number = 1
		s := receiptStatus{state: Unknown, attempts: 2, tries: []attemptStatus{head, rest}}
		s.conclude()
		if got := s.dueAgain(&s.tries[1], &s.tries[1].parts[0]); got != test.want ||
			s.closing.State != Accepted {
			t.Errorf("%q and %q: %s, looked at again in %s, want %s", test.first, test.proof,
				s.closing.State, got, test.want)
		}
	}
}

// TestAProofIsLookedAtWhenItsTimeIsOver: an earlier attempt expects the receipt of a part without a
// row, which is awaited for as long as the proved one.
func TestAProofIsLookedAtWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	head := attempted("refused", time.Hour, false, "E")
	rest := attempted("unknown", time.Hour, true, "d")
	head.number, head.left, head.expected, rest.number, rest.expected = 1, 0, 2, 2, 1
	s := receiptStatus{state: Unknown, attempts: 2, tries: []attemptStatus{head, rest}}
	s.conclude()
	wait := s.dueAgain(&s.tries[1], &s.tries[1].parts[0])
	if s.closing.State != Accepted || wait <= 0 {
		t.Fatalf("%s, looked at again in %s", s.closing.State, wait)
	}
	later := receiptStatus{state: Accepted, attempts: 2, tries: []attemptStatus{head, rest}}
	later.tries[1].outcome, later.tries[1].proved, later.tries[1].left = provider.Accepted.String(),
		true, time.Hour-wait
	later.tries[0].parts, later.tries[1].parts = rowsOf("E"), rowsOf("d")
	later.tries[1].parts[0].byKey = true
	later.conclude()
	if later.closing.State != NoReceipt {
		t.Errorf("after %s it comes to %q", wait, later.closing.State)
	}
}

// TestOnlyALaterRepeatOnItsChannelTakesAnAttemptOver: when the settlement of an attempt expected no
// receipts, receipts with our key do not keep the message from ending, unless a settlement has made
// rows for a later attempt on that channel.
func TestOnlyALaterRepeatOnItsChannelTakesAnAttemptOver(t *testing.T) {
	t.Parallel()
	told, expected := attempted("accepted", 0, true, "P"), attempted("accepted", 0, false, "u")
	told.within, expected.within = time.Hour, time.Hour
	for name, test := range map[string]struct {
		tries    []attemptStatus
		channels [2]string
		want     State
	}{
		"a later one on its channel": {
			[]attemptStatus{told, expected},
			[2]string{"a", "a"},
			NoReceipt,
		},
		"a later one on another channel": {
			[]attemptStatus{told, expected},
			[2]string{"a", "b"},
			"",
		},
		"one before it on its channel": {
			[]attemptStatus{expected, told},
			[2]string{"a", "a"},
			"",
		},
		"one before it, on another": {
			[]attemptStatus{expected, told},
			[2]string{"b", "a"},
			"",
		},
		"its own settlement expected one": {[]attemptStatus{expected, expected}, [2]string{
			"a", "a",
		}, Undelivered},
	} {
		s := receiptStatus{state: Accepted, attempts: 2, tries: test.tries}
		for i := range s.tries {
			s.tries[i].number, s.tries[i].channel = i+1, test.channels[i]
		}
		s.conclude()
		if s.closing.State != test.want {
			t.Errorf("%s: it comes to %q, want %q", name, s.closing.State, test.want)
		}
	}
}

// TestOnlyAResendThatIsNotMadeTakesTheFlagAway: a message waits to be sent, and a receipt proves
// its last attempt. If that attempt was a resend, the one before it may have been accepted as well.
func TestOnlyAResendThatIsNotMadeTakesTheFlagAway(t *testing.T) {
	t.Parallel()
	for name, resend := range map[string]bool{
		"it was to be sent once more":  false,
		"it was sent once more before": true,
	} {
		first, last := attempted("unknown", 1, false, ""), attempted("unknown", 1, true, "d")
		first.number, last.number, last.resend = 1, 2, resend
		s := receiptStatus{state: Retry, attempts: 2, tries: []attemptStatus{first, last}}
		s.closing.PossibleDuplicate = true
		s.conclude()
		if s.closing.State != Delivered || s.closing.PossibleDuplicate != resend {
			t.Errorf("%s: it comes to %q, flagged %t", name, s.closing.State,
				s.closing.PossibleDuplicate)
		}
	}
}

// TestAFurtherCopyIsFlaggedAndCountsOnItsOwn: a message that ends while a further attempt is in
// flight may arrive twice, and nothing shows that later. The parts of that attempt do not belong to
// the first copy.
func TestAFurtherCopyIsFlaggedAndCountsOnItsOwn(t *testing.T) {
	t.Parallel()
	for _, under := range [][]attemptStatus{
		attemptsOf("accepted", "d", "", ""), attemptsOf("accepted", "d"),
	} {
		s := receiptStatus{state: Sending, attempts: 2, tries: under}
		s.conclude()
		if s.closing.State != Delivered || !s.closing.PossibleDuplicate {
			t.Errorf("%d attempts were seen: it comes to %q, flagged %t", len(under),
				s.closing.State, s.closing.PossibleDuplicate)
		}
	}
	s := receiptStatus{
		state: Accepted, attempts: 2, tries: attemptsOf("accepted", "d", "refused", "u"),
	}
	s.tries[1].further, s.tries[1].segments = true, 1
	if s.conclude(); s.closing.State != Delivered {
		t.Errorf("with a part of a further copy it comes to %q", s.closing.State)
	}
}

func TestTheCauseIsThatOfTheFirstPartWithoutSuccess(t *testing.T) {
	t.Parallel()
	parts := rowsOf("duu")
	parts[2].word.cause, parts[1].word.code, parts[2].word.code = provider.Spam, "one", "two"
	if got := comeTo(0, parts); got.cause != provider.Absent || got.code != "one" ||
		!got.at.Equal(time.Unix('u', 0)) {
		t.Errorf("%+v", got)
	}
}

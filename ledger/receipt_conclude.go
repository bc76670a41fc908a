package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// The rules by which receipts change the state of a message. The input is the message, its attempts
// and the rows of its parts. There is no I/O here.
//
//   - A copy of a message is what one accepted attempt sent, together with the parts that earlier
//     attempts got accepted before their provider refused the rest. Usually there is one copy.
//     There are two when an unknown attempt turns out to have been accepted after the message was
//     resent.
//   - A message is delivered when all parts of one copy are. It is undelivered when all parts of
//     all copies are final and no copy is delivered. It has no receipt when time ran out for some
//     part, and no attempt is in flight or to be made.
//   - States only advance: delivered replaces undelivered, both replace no_receipt, and that
//     replaces accepted.
//   - A receipt that carries our key proves that an unknown attempt was accepted, and makes it
//     accepted. It proves nothing about the delivery of other parts, see countParts.
//   - An attempt that was denied has only the parts that its settlement named. A receipt about any
//     other part of it carries our key, or an id that came with the refusal, and does not change
//     the attempt: undelivered repeats the provider's answer, and delivered contradicts it. A
//     contradiction is counted and reported; the attempt keeps the outcome of the answer and costs
//     nothing. But when everything that the answer denied was delivered, the message is delivered
//     and is not sent again. When other attempts may have reached the subscriber as well, the
//     message is flagged as a possible duplicate.

// recheckInterval is the time after which a row whose attempt is still in flight is due again.
const recheckInterval = 5 * time.Second

// furtherInterval is the same for a message that waits to be sent to a further channel, see
// ByNoReceipt. There may be many of them, and each claim checks them anyway.
const furtherInterval = time.Minute

// receiptStatus is a message as read from the database, and what receipts change about it.
type receiptStatus struct {
	closing  Closing // State is the new state; empty for no change
	state    State
	attempts int
	// furtherPending: it is accepted and is to be sent to a further channel, see ByNoReceipt.
	furtherPending bool
	plain          bool            // the row of its only attempt tells its state
	tries          []attemptStatus // ascending by number; without attempts that began after the read
	flagged        bool            // receipts show that it may be a duplicate, which it was not before
	// deferred is the time after which the message is checked again for NoReceipt; 0 when it need not
	// be.
	deferred time.Duration
}

// attemptStatus is an attempt as read from the database, and what receipts change about it.
type attemptStatus struct {
	number int
	// laterUnderKey is, for a denied attempt, the number of the latest attempt under its key, which is
	// the same submission; 0 for none.
	laterUnderKey    int
	channel, outcome string
	// resend: the attempt was sent because an earlier one may have been accepted.
	resend bool
	// further: it was sent although an earlier one had been accepted, see ByNoReceipt.
	further   bool
	reference string // the provider's ids, separated by spaces
	// held: it keeps its slot beyond its answer. freed: the slot was given back.
	held, freed bool
	receipt     State // its receipt state so far; empty for none
	// expected is how many receipts tell everything about it; 0 for one for each part that its
	// settlement named.
	expected int
	// cut: some parts of its message were certainly not taken, see Settlement.CutShort.
	cut          bool
	proved       bool // it is accepted because of a receipt, not because of an answer
	denied       int  // how many parts the answer denied; 0 for expected, or one
	contradicted bool // an earlier receipt said that denied parts were delivered
	segments     int  // that were taken, or may have been
	// within is for how long receipts are awaited after its answer, and left for how long from now on;
	// 0 where none are expected.
	within, left time.Duration
	parts        []part

	// What changes.
	accepted bool     // a receipt makes it accepted
	named    bool     // receipts named ids of parts that its settlement did not know
	frees    bool     // it gives its slot back
	says     reported // its new receipt state; State is empty when that does not change
	// alone: it awaits receipts that have no row, or whose row is not due at any time.
	alone bool
}

// part is a row of receipts.
type part struct {
	channel, reference string
	// byKey: a receipt with our key made the row, or an answer that denied the part. No settlement
	// expects it.
	byKey   bool
	state   string
	word    reported
	due     bool // the row has a due_at
	awaited bool // its time is not over
}

// whole reports whether the part is a receipt without a reference. It is about the whole attempt.
func (p *part) whole() bool { return strings.HasPrefix(p.reference, " ") }

func (p *part) final() bool {
	return p.state == string(Delivered) || p.state == string(Undelivered)
}

// conclude sets the fields that say what changes.
func (s *receiptStatus) conclude() {
	s.moveToLater()
	for i := range s.tries {
		s.answered(i)
		s.tries[i].concludeAttempt()
	}
	to, by, says := s.next()
	moves := to != "" && to != s.state
	told := s.closing.PossibleDuplicate
	twice := s.possiblyTwice() || moves && s.furtherInFlight()
	s.flagged = twice && !told
	s.closing.PossibleDuplicate = twice || told && (!moves || !s.waitsForResend())
	if !moves {
		if !s.flagged {
			return
		}
		if to, by, says = s.announced(); by == nil {
			return
		}
	}
	s.closing.State, s.closing.Channel, s.closing.Attempt, s.closing.Reference = to, by.channel,
		by.number, by.reference
	s.closing.Cause, s.closing.Code = says.cause, says.code
}

// toldByAttempt reports whether only the attempt's row has to be written: for a plain message it
// says that the message was delivered.
func (s *receiptStatus) toldByAttempt() bool {
	return s.plain && s.closing.State == Delivered && s.tries[0].says.state == Delivered
}

// waitsForResend reports whether the message waits and was not resent before. When it moves on now
// it will not be resent, and so is not a duplicate.
func (s *receiptStatus) waitsForResend() bool {
	return (s.state == Retry || s.state == Waiting) &&
		!slices.ContainsFunc(s.tries, func(o attemptStatus) bool { return o.resend })
}

// moveToLater moves receipts with our key from a denied attempt to the latest attempt under that
// key. The key cannot tell these attempts apart, and a denied one did not leave or was not taken,
// so the receipts are about the latest.
func (s *receiptStatus) moveToLater() {
	for i := range s.tries {
		t := &s.tries[i]
		at := slices.IndexFunc(s.tries, func(o attemptStatus) bool { return o.number == t.laterUnderKey })
		if !t.isDenied() || at <= i {
			continue
		}
		for _, p := range t.parts {
			if p.byKey {
				s.tries[at].parts = append(s.tries[at].parts, p)
			}
		}
		t.parts = slices.DeleteFunc(t.parts, func(p part) bool { return p.byKey })
	}
}

// answered sets the wait for receipts to zero for an attempt that its provider accepted and whose
// settlement made no row for a receipt. If receipts were expected there would be a row, even where
// the answer named no id, unless a later attempt under the same key has taken it over. A channel
// that sends no receipts may still send one with our key, and that may be final or not.
func (s *receiptStatus) answered(i int) {
	t := &s.tries[i]
	if t.outcome != provider.Accepted.String() || t.proved {
		return
	}
	for j := i; j < len(s.tries); j++ {
		if later := &s.tries[j]; later.channel == t.channel && slices.ContainsFunc(later.parts,
			func(p part) bool {
				return !p.byKey
			}) {
			return
		}
	}
	t.within, t.left = 0, 0
}

// concludeAttempt sets the fields that say what changes about the attempt. While the attempt is
// unknown, receipts for some of its parts say nothing about the whole.
func (s *attemptStatus) concludeAttempt() {
	if s.outcome == provider.Unknown.String() {
		s.acceptByReceipt()
	}
	s.wait()
	s.name()
	count := s.countParts()
	s.alone = count.missing > 0 || slices.ContainsFunc(count.parts, func(p part) bool {
		return !p.final() && p.awaited && !p.due
	})
	if s.outcome == "" || len(count.parts) == 0 {
		return
	}
	if says := count.word(); s.outcome != provider.Unknown.String() &&
		rank(says.state) > rank(s.receipt) {
		s.says = says
	}
	s.frees = s.held && !s.freed && (s.says.state != "" || anyFinal(count.parts))
}

// isDenied reports whether the provider answered that it did not take the attempt, or not all parts
// of it.
func (s *attemptStatus) isDenied() bool {
	switch s.outcome {
	case provider.Refused.String(), provider.Throttled.String(), provider.Rejected.String():
		return true
	}
	return false
}

// untaken reports whether the provider answered that it took no part of the attempt. Receipts that
// came while the attempt was unknown then no longer count.
func (s *attemptStatus) untaken() bool {
	return s.isDenied() && s.segments == 0 && len(s.counted()) == 0
}

// counted are the parts that were taken, or may have been.
func (s *attemptStatus) counted() []part {
	if !s.isDenied() {
		return s.parts
	}
	return slices.DeleteFunc(slices.Clone(s.parts), func(p part) bool { return p.byKey })
}

// contradictedBy reports whether a receipt says that a part of a denied attempt was delivered.
func (s *attemptStatus) contradictedBy(p *part) bool {
	return s.isDenied() && p.byKey && p.state == string(Delivered)
}

// acceptByReceipt makes an unknown attempt accepted if a receipt carries its key. Where receipts
// are expected, they are awaited from now on: the receipt proves that the provider took the
// attempt, not that further receipts will come.
func (s *attemptStatus) acceptByReceipt() {
	if !slices.ContainsFunc(s.parts, func(p part) bool { return p.byKey }) {
		return
	}
	s.accepted, s.outcome, s.left = true, provider.Accepted.String(), s.within
}

// wait marks parts as awaited while their attempt still awaits receipts: parts that a key made, and
// all parts if the number of expected receipts is stored. due_at of such a row only says when it is
// read again.
func (s *attemptStatus) wait() {
	for i := range s.parts {
		p := &s.parts[i]
		p.awaited = p.awaited || s.left > 0 && (p.byKey || s.expected > 0)
	}
}

// name adds to the reference the ids from receipts with our key, for parts that no answer named.
func (s *attemptStatus) name() {
	if s.outcome != provider.Accepted.String() || s.expected == 0 && !s.accepted {
		return
	}
	names := strings.Fields(s.reference)
	for i := range s.parts {
		p := &s.parts[i]
		if p.byKey && !p.whole() && len(names) < max(s.expected, 1) &&
			!slices.Contains(names, p.reference) {
			names, s.named = append(names, p.reference), true
		}
	}
	if s.named {
		s.reference = strings.Join(names, " ")
	}
}

// next is the new state of the message, the attempt that decides it, and what its receipts say. The
// state is empty when it does not change.
func (s *receiptStatus) next() (to State, by *attemptStatus, says reported) {
	var last *attemptStatus
	var rest partCount
	for i := range s.tries {
		t := &s.tries[i]
		switch t.outcome {
		case provider.Refused.String(), provider.Throttled.String():
			if !t.untaken() && !t.further {
				rest = rest.with(t.countParts())
			}
		case provider.Accepted.String():
			last = t // later attempts were not accepted, are unknown or have no outcome
		}
	}
	if to, by, says = s.deliveredAnyway(rest, last != nil); by != nil {
		return to, by, says
	}
	if !s.concludable() && (s.state != Sending || last == nil) {
		return "", nil, reported{}
	}
	worst := reported{state: Undelivered}
	for i := range s.tries {
		t := &s.tries[i]
		if t.outcome != provider.Accepted.String() || len(t.parts) == 0 {
			continue
		}
		copied := rest.with(t.countParts())
		says := copied.word()
		if says.state == Delivered {
			return Delivered, t, says
		}
		if rank(says.state) < rank(worst.state) || t == last && says.state == worst.state {
			worst = says
		}
	}
	switch {
	case last == nil, worst.state == Undelivered && s.openAfter(last) &&
		(s.wasAccepted() || s.state == Unknown):
		return "", nil, reported{}
	case worst.state == Undelivered && s.openAfter(last): // accepted, so that it is not sent again
		return Accepted, last, reported{}
	case len(last.parts) > 0 && rank(worst.state) > s.rank():
		if worst.state == NoReceipt {
			s.deferred = s.defers()
		}
		if s.deferred > 0 {
			return "", nil, reported{}
		}
		return worst.state, last, worst
	case !s.wasAccepted():
		return Accepted, last, reported{}
	}
	return "", nil, reported{}
}

// defers is the time after which a message is checked again whose accepted attempts got no receipt,
// because an attempt is in flight, or will be. Its provider may take the message and send a
// receipt. If its provider refuses, the message is sent to another channel, which a message that
// has ended would not be. It is 0 when nothing more is sent.
func (s *receiptStatus) defers() time.Duration {
	switch {
	case s.inFlight():
		return recheckInterval
	case s.furtherPending:
		return furtherInterval
	}
	return 0
}

// openAfter reports whether a later attempt than t is in flight or unknown: it may be delivered.
func (s *receiptStatus) openAfter(t *attemptStatus) bool {
	return s.inFlight() || slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.number > t.number && o.outcome == provider.Unknown.String()
	})
}

// inFlight reports whether an attempt is in flight. It may have begun after the tries were read.
func (s *receiptStatus) inFlight() bool {
	return s.state == Sending || slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.outcome == ""
	})
}

// concludable reports whether receipts may change the state. While an attempt is in flight and no
// other was accepted, its own answer comes first. A state that the provider's refusal or the
// deadline set stays.
func (s *receiptStatus) concludable() bool {
	switch s.state {
	case Accepted, NoReceipt, Undelivered, Unknown, Retry, Waiting:
		return true
	case Scheduled, Sending, Delivered, Rejected, Failed, Dead:
	}
	return false
}

// rank is the rank of the state. A message that was not accepted before ranks as NoReceipt: it
// becomes accepted first, before it can become NoReceipt.
func (s *receiptStatus) rank() int {
	if !s.wasAccepted() {
		return rank(NoReceipt)
	}
	return rank(s.state)
}

// wasAccepted reports whether the message has been accepted, for the states that receipts may
// change.
func (s *receiptStatus) wasAccepted() bool {
	switch s.state {
	case Sending:
		return s.furtherInFlight()
	case Unknown, Retry, Waiting:
		return false
	case Scheduled, Accepted, Delivered, Undelivered, NoReceipt, Rejected, Failed, Dead:
	}
	return true
}

// furtherInFlight reports whether an attempt is in flight although an answer had accepted an
// earlier one, see ByNoReceipt. An answer or a receipt that comes while the message is resent makes
// it accepted at once. The attempt in flight may have begun after the tries were read.
func (s *receiptStatus) furtherInFlight() bool {
	return s.state == Sending && slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.outcome == provider.Accepted.String() && !o.accepted
	})
}

// dueAgain is the time after which a part is due again; 0 for never. It is called after conclude. A
// part that is final may be due again in place of other receipts of its attempt: of those without a
// row, and of those whose time ended while the attempt was unknown and begins again with the proof.
// The rows of these must not be written here, because a transaction that has an attempt locked must
// not wait for rows of receipts.
func (s *receiptStatus) dueAgain(t *attemptStatus, p *part) time.Duration {
	switch {
	case t.isDenied() && p.byKey:
		return 0
	case t.outcome == "" || p.final() && s.inFlight():
		return recheckInterval
	case s.deferred > 0 && !p.awaited:
		return s.deferred
	case t.outcome == provider.Unknown.String():
		return 0
	case t.left > 0 && (t.alone || !p.final() && (p.byKey || t.expected > 0)):
		return t.left
	// its other parts are concluded once the message is accepted
	case s.closing.State == Accepted && s.changesNext():
		return recheckInterval
	// other attempts may still await receipts, for as long as this one does
	case s.closing.State == Accepted && p.final():
		return max(t.left, 0)
	}
	return 0
}

// changesNext reports whether the message gets another state as soon as it is accepted.
func (s *receiptStatus) changesNext() bool {
	accepted := receiptStatus{state: Accepted, attempts: s.attempts, tries: s.tries}
	to, _, _ := accepted.next()
	return to != ""
}

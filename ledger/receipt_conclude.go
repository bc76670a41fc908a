package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// What receipts come to is decided here, without a database: from a message, its attempts and the
// rows of its parts to the state that they bring it to.
//
//   - A copy of a message is what one accepted attempt sent, together with the parts that earlier
//     attempts got taken before their provider refused the rest. Nearly always there is one copy; a
//     late truth about an unknown attempt beside its resend makes two.
//   - A message is delivered when all parts of a copy are. It is undelivered when the parts of all
//     copies have their last word and no copy is delivered, and without receipt when time ran out
//     for the others.
//   - Nothing is taken back: delivered replaces undelivered, both replace no_receipt, and that
//     replaces accepted.
//   - A receipt that carries our key proves that an unknown attempt was taken: it is accepted then.
//     It proves nothing about how its other parts fared, see tally.
//   - An attempt that was not taken has only the parts that its settlement named. What a receipt
//     says of it beyond those, by our key or by an id that came with the refusal, is no word about
//     the attempt: undelivered is what the provider's answer said already, and delivered
//     contradicts that answer. It is counted and told; the attempt stays what the answer said, at
//     no price. But when all that the answer denied was delivered, so was the message: it is not
//     sent any more. When other attempts may have reached the subscriber as well, the message is
//     flagged.

// relook is after what time a row is looked at again whose attempt is still under way.
const relook = 5 * time.Second

// receiptStatus is a message as receipts find it, and what they make of it.
type receiptStatus struct {
	closing  Closing // State is what it comes to; empty for no change
	state    State
	attempts int
	plain    bool            // the row of its only attempt tells its state
	tries    []attemptStatus // ascending by number; attempts that began later are not in it
	flagged  bool            // it is a possible duplicate by what receipts say
}

// attemptStatus is an attempt as receipts find it, and what they make of it.
type attemptStatus struct {
	number int
	// of one that was denied: the latest attempt under its key, which is the same submission; 0 for
	// none
	heir             int
	channel, outcome string
	// it was sent once more because an earlier one may have been taken
	resend bool
	// it was sent although an earlier one had been accepted, see ByNoReceipt
	further   bool
	reference string // the provider's ids, separated by spaces
	// whether it got a slot to hold beyond its answer, and whether that was given back
	held, freed bool
	receipt     State // what its receipts came to so far; empty for nothing
	// how many receipts tell all about it; 0 for as many as its settlement named parts
	owed int
	// parts of its message certainly were not taken, see Settlement.CutShort
	cut          bool
	proved       bool // a receipt made it accepted, no answer did
	denied       int  // how many parts the answer said were not taken; 0 for owed, or one
	contradicted bool // a receipt has said before that some of them were delivered
	segments     int  // that were taken, or may have been
	// for how long receipts are awaited from its answer on, and from now on; 0 where none are
	// expected
	within, left time.Duration
	parts        []part

	// What changes.
	accepted bool     // a late truth makes it accepted
	named    bool     // receipts told ids of its parts that its settlement did not know
	frees    bool     // it gives its slot back
	says     reported // what its receipts come to now; without state when that is nothing new
	// receipts of it are awaited, and nobody is going to look at their rows, if there are any
	alone bool
}

// part is a row of receipts.
type part struct {
	channel, reference string
	// a receipt with our key made it, or an answer that denied it; no settlement expects it
	byKey   bool
	state   string
	word    reported
	due     bool // somebody is going to look at it
	awaited bool // its time is not over
}

// whole reports whether the part stands for a receipt that named none: it is about all of its
// attempt.
func (p *part) whole() bool { return strings.HasPrefix(p.reference, " ") }

func (p *part) final() bool {
	return p.state == string(Delivered) || p.state == string(Undelivered)
}

// conclude fills in what changes.
func (s *receiptStatus) conclude() {
	s.handOver()
	for i := range s.tries {
		s.answered(i)
		s.tries[i].conclude()
	}
	to, by, says := s.next()
	moves := to != "" && to != s.state
	told := s.closing.PossibleDuplicate
	twice := s.twice() || moves && s.furtherUnderWay()
	s.flagged = twice && !told
	s.closing.PossibleDuplicate = twice || told && (!moves || !s.waitsForResend())
	if !moves {
		if !s.flagged {
			return
		}
		if to, by, says = s.stands(); by == nil {
			return
		}
	}
	s.closing.State, s.closing.Channel, s.closing.Attempt, s.closing.Reference = to, by.channel,
		by.number, by.reference
	s.closing.Cause, s.closing.Code = says.cause, says.code
}

// toldByAttempt reports whether the change of the attempt's row is all that is to be written: it
// says that the message was delivered.
func (s *receiptStatus) toldByAttempt() bool {
	return s.plain && s.closing.State == Delivered && s.tries[0].says.state == Delivered
}

// waitsForResend reports whether the message may wait to be sent once more, and was not before: it
// is not any more, and then there is no duplicate.
func (s *receiptStatus) waitsForResend() bool {
	return (s.state == Retry || s.state == Waiting) &&
		!slices.ContainsFunc(s.tries, func(o attemptStatus) bool { return o.resend })
}

// handOver gives what receipts with our key say of a denied attempt to the latest one under that
// key: the key cannot tell them apart, and what was denied did not leave, or was not taken, so it
// is about the latest.
func (s *receiptStatus) handOver() {
	for i := range s.tries {
		t := &s.tries[i]
		at := slices.IndexFunc(s.tries, func(o attemptStatus) bool { return o.number == t.heir })
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

// answered expects no receipts of an attempt that its provider took when its settlement made no row
// for any: there would be one otherwise, even where the answer named nothing, unless a later
// attempt under the same key has taken it over. What a channel that gives none says all the same
// under our key may be its last word or not.
func (s *receiptStatus) answered(i int) {
	t := &s.tries[i]
	if t.outcome != provider.Accepted.String() || t.proved {
		return
	}
	for j := i; j < len(s.tries); j++ {
		if heir := &s.tries[j]; heir.channel == t.channel && slices.ContainsFunc(heir.parts,
			func(p part) bool {
				return !p.byKey
			}) {
			return
		}
	}
	t.within, t.left = 0, 0
}

// conclude fills in what changes about the attempt itself. While nobody knows whether it was taken,
// receipts for the parts that were say nothing about all of it.
func (t *attemptStatus) conclude() {
	if t.outcome == provider.Unknown.String() {
		t.believe()
	}
	t.wait()
	t.name()
	count := t.tally()
	t.alone = count.missing > 0 || slices.ContainsFunc(count.parts, func(p part) bool {
		return !p.final() && p.awaited && !p.due
	})
	if t.outcome == "" || len(count.parts) == 0 {
		return
	}
	if says := count.word(); t.outcome != provider.Unknown.String() &&
		rank(says.state) > rank(t.receipt) {
		t.says = says
	}
	t.frees = t.held && !t.freed && (t.says.state != "" || anyFinal(count.parts))
}

// isDenied reports whether the provider answered that it did not take the attempt, or not all parts
// of it.
func (t *attemptStatus) isDenied() bool {
	switch t.outcome {
	case provider.Refused.String(), provider.Throttled.String(), provider.Rejected.String():
		return true
	}
	return false
}

// untaken reports whether the provider answered that it took no part of the attempt. What was said
// of its receipts while nobody knew that does not count any more.
func (t *attemptStatus) untaken() bool {
	return t.isDenied() && t.segments == 0 && len(t.counted()) == 0
}

// counted are the parts that were taken, or may have been.
func (t *attemptStatus) counted() []part {
	if !t.isDenied() {
		return t.parts
	}
	return slices.DeleteFunc(slices.Clone(t.parts), func(p part) bool { return p.byKey })
}

// contradictedBy reports whether a receipt says of an attempt that was not taken that it was
// delivered.
func (t *attemptStatus) contradictedBy(p *part) bool {
	return t.isDenied() && p.byKey && p.state == string(Delivered)
}

// believe makes an unknown attempt accepted if a receipt with our key says so. Its receipts are
// awaited from now on, where any are expected: a late answer proves that the provider took it, and
// no receipt that one is to come.
func (t *attemptStatus) believe() {
	if !slices.ContainsFunc(t.parts, func(p part) bool { return p.byKey }) {
		return
	}
	t.accepted, t.outcome, t.left = true, provider.Accepted.String(), t.within
}

// wait lets rows be awaited for as long as their attempt is: those that a key made, and all of an
// attempt that may owe more receipts than there are rows. The time of such a row only says when
// somebody looks at it.
func (t *attemptStatus) wait() {
	for i := range t.parts {
		p := &t.parts[i]
		p.awaited = p.awaited || t.left > 0 && (p.byKey || t.owed > 0)
	}
}

// name adds the ids that receipts with our key told, of parts that nobody had answered for.
func (t *attemptStatus) name() {
	if t.outcome != provider.Accepted.String() || t.owed == 0 && !t.accepted {
		return
	}
	names := strings.Fields(t.reference)
	for i := range t.parts {
		p := &t.parts[i]
		if p.byKey && !p.whole() && len(names) < max(t.owed, 1) &&
			!slices.Contains(names, p.reference) {
			names, t.named = append(names, p.reference), true
		}
	}
	if t.named {
		t.reference = strings.Join(names, " ")
	}
}

// next is the state that the message comes to, by which attempt, and what the receipts said.
func (s *receiptStatus) next() (to State, by *attemptStatus, says reported) {
	var last *attemptStatus
	var rest partCount
	for i := range s.tries {
		t := &s.tries[i]
		switch t.outcome {
		case provider.Refused.String(), provider.Throttled.String():
			if !t.untaken() && !t.further {
				rest = rest.with(t.tally())
			}
		case provider.Accepted.String():
			last = t // what came of later ones, nobody took them, or nobody knows
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
		copied := rest.with(t.tally())
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
	case worst.state == Undelivered && s.openAfter(last): // it must not be sent again
		return Accepted, last, reported{}
	case len(last.parts) > 0 && rank(worst.state) > s.rank():
		return worst.state, last, worst
	case !s.wasAccepted():
		return Accepted, last, reported{}
	}
	return "", nil, reported{}
}

// openAfter reports whether a later attempt is under way, or nobody knows of it: it may be
// delivered.
func (s *receiptStatus) openAfter(t *attemptStatus) bool {
	return s.underWay() || slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.number > t.number && o.outcome == provider.Unknown.String()
	})
}

// underWay reports whether an attempt has no answer yet. It may have begun after the tries were
// read.
func (s *receiptStatus) underWay() bool {
	return s.state == Sending || slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.outcome == ""
	})
}

// concludable reports whether receipts may change the state. While an attempt is under way and no
// other was taken, its own answer comes first; what the provider or the deadline has refused stays
// so.
func (s *receiptStatus) concludable() bool {
	switch s.state {
	case Accepted, NoReceipt, Undelivered, Unknown, Retry, Waiting:
		return true
	case Scheduled, Sending, Delivered, Rejected, Failed, Dead:
	}
	return false
}

// rank is that of the state. Who was not known to be accepted does not come to be without a receipt
// before he was accepted.
func (s *receiptStatus) rank() int {
	if !s.wasAccepted() {
		return rank(NoReceipt)
	}
	return rank(s.state)
}

// wasAccepted reports whether the message has been accepted, if receipts may change its state at
// all.
func (s *receiptStatus) wasAccepted() bool {
	switch s.state {
	case Sending:
		return s.furtherUnderWay()
	case Unknown, Retry, Waiting:
		return false
	case Scheduled, Accepted, Delivered, Undelivered, NoReceipt, Rejected, Failed, Dead:
	}
	return true
}

// furtherUnderWay reports whether an attempt is under way although an earlier one was accepted by
// its answer, see ByNoReceipt. An answer or a receipt that comes while the message is sent once more
// makes it accepted at once. The attempt may have begun after the tries were read.
func (s *receiptStatus) furtherUnderWay() bool {
	return s.state == Sending && slices.ContainsFunc(s.tries, func(o attemptStatus) bool {
		return o.outcome == provider.Accepted.String() && !o.accepted
	})
}

// lookAgain is after what time somebody has to look at a part again; 0 for never. It is asked after
// conclude. A part that has its last word stands in for receipts of its attempt that nobody would
// look for otherwise: those without a row, and those whose time ended while nobody knew whether the
// attempt was taken and begins anew with the proof. Their own rows are not ours to write: whoever
// has an attempt locked must not wait for rows of receipts.
func (s *receiptStatus) lookAgain(t *attemptStatus, p *part) time.Duration {
	switch {
	case t.isDenied() && p.byKey:
		return 0
	case t.outcome == "" || p.final() && s.underWay():
		return relook
	case t.outcome == provider.Unknown.String():
		return 0
	case t.left > 0 && (t.alone || !p.final() && (p.byKey || t.owed > 0)):
		return t.left
	// what its other parts come to is seen once it is accepted
	case s.closing.State == Accepted && s.goesOn():
		return relook
	// other attempts may owe what is awaited for as long as this one is
	case s.closing.State == Accepted && p.final():
		return max(t.left, 0)
	}
	return 0
}

// goesOn reports whether the message is to come to another state as soon as it has been accepted.
func (s *receiptStatus) goesOn() bool {
	accepted := receiptStatus{state: Accepted, attempts: s.attempts, tries: s.tries}
	to, _, _ := accepted.next()
	return to != ""
}

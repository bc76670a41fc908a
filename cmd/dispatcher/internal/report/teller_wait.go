package report

import (
	"slices"
	"time"
)

// waiting tells what a message waits for now, and what ends that.
func (t *teller) waiting() {
	if t.limit == nil {
		t.say("It waits%s.", t.waitWhy())
		t.released()
		t.lookedAt()
		return
	}
	begin := "It waits"
	if t.held() {
		begin += " for its first choice, as route " + t.story.Route + " lets messages do, and so"
	}
	t.say("%s.", t.limit.sentence(begin, t.when))
	if others := t.others(); len(others) > 0 {
		t.say("Besides, %s.", reasons(others))
	}
	t.released()
	t.outlook()
}

// released says until when a held message waits for its first choice alone. It is more than a matter of the limit: that
// may have room only long after others have taken the message.
func (t *teller) released() {
	if end := t.story.HeldUntil; end != nil {
		t.say("It is kept for %s until %s, then others may have it.", t.story.FirstChoice, t.when(*end))
	}
}

// held reports whether the message was last held for its first choice, and nobody else was looked at.
func (t *teller) held() bool { return t.seen.held() }

// others are the channels that something else than the limit keeps from taking the message.
func (t *teller) others() []Candidate {
	return slices.DeleteFunc(slices.Clone(passedOver(t.seen.candidates)), func(c Candidate) bool {
		return t.limit.explains(&c, t.record.Message.Reason)
	})
}

// outlook says when the limit has room again, or that the message does not live to see that.
func (t *teller) outlook() {
	m, l := &t.record.Message, t.limit
	never := l.lack == closed || l.lack == tooSmall
	tooLate := !l.until.IsZero() && !l.until.Before(m.ExpiresAt) || l.lack == noPlace && l.until.IsZero()
	switch {
	case never:
		if m.NextAt.Before(m.ExpiresAt) {
			t.lookedAt()
		}
		t.say("Unless %s, it fails at its deadline, %s.", l.hopes(), t.when(m.ExpiresAt))
	case tooLate && !t.held() && l.lack == noPlace:
		t.say("Its deadline is %s, so it will fail unless %s.", t.when(m.ExpiresAt), l.hopes())
	case tooLate && !t.held():
		t.say("Its deadline is %s; the limit has no room before %s, so it will fail unless %s.", t.when(m.ExpiresAt), t.when(l.until), l.hopes())
	case l.lack == usedUp && l.until.After(t.now) && l.until.Equal(m.NextAt):
		t.say("The limit has room again %s, and the message is looked at then.", t.at(l.until))
	case l.lack == usedUp && l.until.After(t.now):
		t.say("The limit has room again %s.", t.at(l.until))
		t.lookedAt()
	case l.lack == noPlace && l.until.After(t.now):
	default:
		t.lookedAt()
	}
}

// overdue is how much later than it is due a message may be looked at before that is worth a word: due messages are read
// every second, and the oldest come first.
const overdue = 5 * time.Second

// lookedAt says when the message is looked at again. Its last look is at its deadline.
func (t *teller) lookedAt() {
	m := &t.record.Message
	if late := t.now.Sub(m.NextAt); !t.now.IsZero() && late > overdue {
		t.say("It has been due to be looked at again for %s: either others come first, or no process runs.", span(late))
		return
	}
	deadline := ""
	if !m.NextAt.Before(m.ExpiresAt) {
		deadline = ", its deadline"
	}
	t.say("It is looked at again %s%s.", t.at(m.NextAt), deadline)
}

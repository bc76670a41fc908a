package smpp

import (
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// callOutcome is the outcome of one submit_sm.
type callOutcome uint8

const (
	// noAnswer is the zero value, like provider.Unknown: octets may have left and no answer came.
	noAnswer callOutcome = iota
	// unsent means that no octet left.
	unsent
	// answered means that the SMSC sent a status.
	answered
)

// call is one submit_sm. The sender owns it until session.submit, then the session until it puts a
// token into done, then the sender again.
type call struct {
	frame         []byte         // the encoded PDU
	submit        pdu.SubmitSM   // the PDU in frame, kept for its storage
	text          []byte         // storage of submit.ShortMessage
	key           []byte         // storage of the parameter that holds Submission.Key
	submissionKey string         // Submission.Key
	source        messageAddress // of the source address

	// expires is the time from which the frame may no longer leave, even if other parts of its message
	// have left; zero sets no bound.
	expires time.Time
	// validityAt is the offset of a relative validity_period in the frame, which is rewritten right
	// before the frame leaves; 0 otherwise.
	validityAt int

	// done gets one token when the outcome is known; its capacity is 1.
	done chan struct{}

	// first is the first of the calls that leave together; a single call is its own first.
	// first.started is set once one of them has been taken for writing. Until then none may be taken
	// at or after first.latest.
	first    *call     // guarded by session.mu
	started  bool      // guarded by session.mu
	latest   time.Time // guarded by session.mu; zero sets no bound
	sequence uint32    // guarded by session.mu
	// order counts the submits of the session from 1; zero until sequence is set.
	order    uint64
	deadline time.Time // guarded by session.mu; meaningful once written

	outcome   callOutcome
	why       string     // the bounded word unless answered
	status    pdu.Status // when answered
	messageID string     // when answered
	// abandonedEarly marks a timeout whose sender gave up too early for it to count against the
	// bind.
	abandonedEarly bool
}

// callPool reuses the memory of finished calls. Each client has its own, so that its channels
// belong to one testing/synctest bubble.
type callPool struct{ sync.Pool }

func (p *callPool) get() *call {
	c, ok := p.Get().(*call)
	if !ok {
		return &call{done: make(chan struct{}, 1)}
	}
	c.submissionKey, c.source, c.outcome, c.why, c.status, c.messageID, c.abandonedEarly,
		c.sequence = "", messageAddress{}, noAnswer, "", 0, "", false, 0
	c.order = 0
	c.first, c.started, c.latest, c.expires, c.validityAt = nil, false, time.Time{}, time.Time{}, 0
	return c
}

// put returns a call whose token has been taken.
func (p *callPool) put(c *call) { p.Put(c) }

// expired reports whether the frame may not leave any more.
func (c *call) expired(now time.Time) bool { return !c.expires.IsZero() && !now.Before(c.expires) }

// late is the code of a call that did not leave in time. A message past its deadline is not tried
// again.
func (c *call) late(why string, now time.Time) string {
	if why == whyLate && c.expired(now) {
		return whyExpired
	}
	return why
}

// tooLate reports whether the queued call may not leave any more; session.mu is held.
func (c *call) tooLate(now time.Time) bool {
	until := c.leavesUntil()
	return !until.IsZero() && !now.Before(until)
}

// leavesUntil is the time from which the queued call may not leave: when it expires, or earlier if
// its message has not started and may not start any more; zero for never. session.mu is held.
func (c *call) leavesUntil() time.Time {
	if latest := c.first.latest; !c.first.started && !latest.IsZero() &&
		(c.expires.IsZero() || latest.Before(c.expires)) {
		return latest
	}
	return c.expires
}

// accepted reports whether the SMSC accepted the part; the sender has its token.
func (c *call) accepted(cfg *Config) bool {
	return c.outcome == answered && cfg.outcome(c.status) == provider.Accepted
}

// end sets an outcome that is not an answer.
func (c *call) end(o callOutcome, why string) { c.outcome, c.why = o, why }

// part is the result of the part with that index.
func (c *call) part(cfg *Config, index int) provider.Part {
	switch c.outcome {
	case answered:
		return provider.Part{
			Index: index, Outcome: cfg.outcome(c.status), Reference: c.messageID,
			Code: c.status.Code(),
		}
	case unsent:
		return provider.Part{Index: index, Outcome: provider.Refused, Code: c.why}
	case noAnswer:
	}
	return provider.Part{Index: index, Outcome: provider.Unknown, Code: c.why}
}

// unfit reports whether the refusal is about this message alone.
func (c *call) unfit(cfg *Config) bool {
	return c.outcome == answered && cfg.statusMeaning(c.status, c.source).Unfit
}

// explain is the error that belongs to part; nil when it was accepted.
func (c *call) explain(outcome provider.Outcome) error {
	switch {
	case outcome == provider.Accepted:
		return nil
	case c.outcome == answered:
		return &StatusError{c.status}
	default:
		return codeError(c.why)
	}
}

package smpp

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// keepLoop runs the timers of a session: it sends enquire_link, ends submits whose answer is
// overdue, reports changes of the bind's health, and ends the session of a peer that is silent or
// does not read. It returns nil when the session has stopped.
func (s *session) keepLoop() error {
	enquire := time.NewTicker(s.cfg.EnquireLink)
	defer enquire.Stop()
	silence := time.NewTimer(s.cfg.ResponseTimeout)
	silence.Stop()
	defer silence.Stop()
	overdue := time.NewTimer(s.cfg.SubmitTimeout)
	defer overdue.Stop()
	for {
		select {
		case <-s.stopped:
			return nil
		case <-s.health:
			s.onHealth(s.pool.isUnhealthy(s))
		case <-enquire.C:
			if s.enquire() {
				silence.Reset(s.cfg.ResponseTimeout)
			}
		case <-silence.C:
			if s.silent() {
				return errEnquireLink
			}
		case <-overdue.C:
			next, err := s.expire(time.Now())
			if err != nil {
				return err
			}
			overdue.Reset(next)
		}
	}
}

// enquire sends enquire_link, unless the last one has no answer yet. It bypasses the window and
// goes before queued submits.
func (s *session) enquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enquiry != 0 {
		return false
	}
	s.enquiry = s.nextSequence()
	s.control = pdu.AppendEmpty(s.control, pdu.CommandEnquireLink, pdu.StatusOK, s.enquiry)
	s.wakeWriter()
	return true
}

func (s *session) enquiryAnswered(sequence uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enquiry == sequence {
		s.enquiry = 0
	}
}

func (s *session) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enquiry != 0
}

// expire ends the submits whose answer is overdue at now and returns when the next one will be. It
// fails when one write, or one PDU of the peer, has taken the whole response timeout: queued
// submits would not get through either.
func (s *session) expire(now time.Time) (next time.Duration, err error) {
	next = min(s.cfg.ResponseTimeout, s.cfg.SubmitTimeout)
	if left, begun := s.in.left(now, s.cfg.ResponseTimeout); begun {
		next = min(next, left)
		if left <= 0 {
			err = errSlowPDU
		}
	}
	var overdue []*call
	s.mu.Lock()
	if !s.writing.IsZero() {
		left := s.writing.Add(s.cfg.ResponseTimeout).Sub(now)
		next = min(next, left)
		if left <= 0 {
			err = errStalled
		}
	}
	for _, c := range s.pending {
		if left := c.deadline.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		s.giveUp(c)
		overdue = append(overdue, c)
	}
	s.mu.Unlock()
	for _, c := range overdue {
		c.end(noAnswer, whyTimeout)
		s.finish(c)
	}
	return next, err
}

// A late submit_sm_resp is the only proof in SMPP that a timed-out submit was accepted: its
// message_id is needed to query it. So a session remembers timed-out submits, and a late acceptance
// goes to Config.OnLate. maxGivenUp bounds how many are remembered; the oldest are forgotten first.
const maxGivenUp = 10_000

// givenUp holds the keys of submits that were written and timed out, by sequence_number; no later
// submit of the connection gets the same number. The zero value is empty.
type givenUp struct {
	keys  map[uint32]string
	order []uint32 // as they were given up; some may have been taken
}

// add remembers a submit.
func (g *givenUp) add(sequence uint32, key string) {
	if g.keys == nil {
		g.keys = make(map[uint32]string)
	}
	if len(g.order) >= maxGivenUp {
		delete(g.keys, g.order[0])
		g.order = g.order[1:]
	}
	g.keys[sequence] = key
	g.order = append(g.order, sequence)
}

// take removes a submit whose answer has come.
func (g *givenUp) take(sequence uint32) (key string, known bool) {
	key, known = g.keys[sequence]
	delete(g.keys, sequence)
	return key, known
}

// giveUp moves a written call from pending to the remembered ones; mu is held.
func (s *session) giveUp(c *call) {
	s.forget(c.sequence)
	if s.cfg.OnLate != nil && c.submissionKey != "" {
		s.givenUp.add(c.sequence, c.submissionKey)
	}
}

// lateResponse reports that a submit which had timed out was accepted. A late refusal is not
// reported: no receipt can express it.
func (s *session) lateResponse(sequence uint32, status pdu.Status, messageID string) {
	s.mu.Lock()
	key, known := s.givenUp.take(sequence)
	s.mu.Unlock()
	if known && s.cfg.outcome(status) == provider.Accepted {
		s.cfg.OnLate(provider.Receipt{
			Reference: messageID, Key: key, State: provider.Pending, At: time.Now(),
		})
	}
}

package smpp

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// An answer to a submit that was given up is the only proof that SMPP has of what became of it: the message_id in it cannot
// be asked for otherwise. So a session remembers what it gave up, and a late yes is handed to Config.OnLate.

// maxGivenUp bounds the submits of one session whose late answer counts; the oldest are forgotten first.
const maxGivenUp = 10_000

// givenUp are the keys of submits that were written and given up, by sequence_number, which no later submit of the
// connection gets. The zero value has none.
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

// take forgets a submit, whose answer has come.
func (g *givenUp) take(sequence uint32) (key string, known bool) {
	key, known = g.keys[sequence]
	delete(g.keys, sequence)
	return key, known
}

// giveUp takes a call that was written out of pending and remembers it; mu is held.
func (s *session) giveUp(c *call) {
	s.forget(c.sequence)
	if s.cfg.OnLate != nil && c.submissionKey != "" {
		s.givenUp.add(c.sequence, c.submissionKey)
	}
}

// lateResponse hands over that a submit was taken which had been given up. That one was not is nothing that a receipt can
// say.
func (s *session) lateResponse(sequence uint32, status pdu.Status, messageID string) {
	s.mu.Lock()
	key, known := s.givenUp.take(sequence)
	s.mu.Unlock()
	if known && s.cfg.outcome(status) == provider.Accepted {
		s.cfg.OnLate(provider.Receipt{Reference: messageID, Key: key, State: provider.Pending, At: time.Now()})
	}
}

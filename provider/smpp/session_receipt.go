package smpp

import (
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// maxUnanswered is how many receipts of one bind may wait for the answer of Config.OnReceipt. More are answered
// "temporary error", and the SMSC keeps them. All these answers may come at once, and maxControl has room for them.
const maxUnanswered = 10_000

// receipt reads the receipt in m; false for what is none, and when nobody wants any.
func (s *session) receipt(m *pdu.Message) (provider.Receipt, bool) {
	if s.cfg.OnReceipt == nil {
		return provider.Receipt{}, false
	}
	return s.cfg.parseReceipt(m, time.Now())
}

// handOver gives a receipt to OnReceipt. Its response is written when OnReceipt answers, from whatever goroutine that
// is, and never when the session is over by then: the SMSC sends the receipt again over another one.
func (s *session) handOver(r provider.Receipt, response pdu.Command, sequence uint32) error {
	if s.unanswered.Load() >= maxUnanswered { // only the reader adds to it
		return s.respond(response, pdu.StatusReceiverTemporary, sequence)
	}
	s.unanswered.Add(1)
	var answered atomic.Bool
	s.cfg.OnReceipt(r, func(taken bool) {
		if answered.Swap(true) {
			return
		}
		s.unanswered.Add(-1)
		status := pdu.StatusReceiverTemporary
		if taken {
			status = pdu.StatusOK
		}
		if s.respond(response, status, sequence) != nil {
			s.flood()
		}
	})
	return nil
}

// flood ends the session because the peer does not read its answers. It does not block.
func (s *session) flood() {
	select {
	case s.flooded <- struct{}{}:
	default:
	}
}

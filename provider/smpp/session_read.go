package smpp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// deliveryQueue is how many deliver_sm and data_sm of one bind may wait for Config.OnDeliver.
// Further ones are answered "temporary error", and the SMSC sends them again.
const deliveryQueue = 256

// delivery is a deliver_sm or data_sm that waits for its handler.
type delivery struct {
	response pdu.Command
	sequence uint32
	handle   func(context.Context) pdu.Status
}

// readLoop handles what the peer sends until the stream ends.
func (s *session) readLoop() error {
	for {
		h, frame, err := s.in.next()
		if errors.Is(err, pdu.ErrLength) {
			// Nothing after this header can be framed: report it and end (section 3.2).
			_ = s.replyEmpty(pdu.CommandGenericNack, pdu.StatusInvCmdLen, h.Sequence)
		}
		if err != nil {
			return err
		}
		if err := s.handle(h, frame); err != nil {
			return err
		}
	}
}

func (s *session) handle(h pdu.Header, frame []byte) error {
	switch h.Command {
	case pdu.CommandSubmitSMResp:
		// The status decides even if the rest of the body cannot be read.
		_ = s.resp.Parse(frame[pdu.HeaderSize:])
		s.answer(h.Sequence, h.Status, cleanID([]byte(s.resp.MessageID)))
		if s.cfg.HonorCongestion {
			s.pool.limitWindow(s, congestion(s.resp.TLVs))
		}
	case pdu.CommandQuerySMResp, pdu.CommandCancelSMResp:
		s.answered(h, frame)
	case pdu.CommandGenericNack:
		s.nack(h)
	case pdu.CommandEnquireLink:
		return s.replyEmpty(pdu.CommandEnquireLinkResp, pdu.StatusOK, h.Sequence)
	case pdu.CommandEnquireLinkResp:
		s.enquiryAnswered(h.Sequence)
	case pdu.CommandDeliverSM, pdu.CommandDataSM:
		return s.deliver(h, frame)
	case pdu.CommandUnbind:
		return s.peerUnbinds(h)
	case pdu.CommandUnbindResp:
		s.peerUnbound()
	case pdu.CommandAlertNotification:
		// It has no response (section 4.12).
	case pdu.CommandOutbind, pdu.CommandBindReceiver, pdu.CommandBindTransmitter,
		pdu.CommandBindTransceiver:
		return s.replyEmpty(pdu.CommandGenericNack, pdu.StatusInvBndSts, h.Sequence)
	default:
		if !h.Command.IsResponse() {
			return s.replyEmpty(pdu.CommandGenericNack, pdu.StatusInvCmdID, h.Sequence)
		}
	}
	return nil
}

// answer ends the submit with that sequence_number, or reports a late response to one that timed
// out. Repeated and unknown answers are ignored.
func (s *session) answer(sequence uint32, status pdu.Status, messageID string) {
	s.mu.Lock()
	c := s.pending[sequence]
	if c != nil {
		s.forget(sequence)
	}
	s.mu.Unlock()
	if c == nil {
		s.lateResponse(sequence, status, messageID)
		return
	}
	c.outcome, c.status, c.messageID = answered, status, messageID
	s.finish(c)
}

// nack handles a generic_nack (section 4.3): the peer could not read a request of ours, so it did
// not act on it. One with status 0 is invalid and is ignored.
func (s *session) nack(h pdu.Header) {
	if h.Status == pdu.StatusOK {
		return
	}
	s.answer(h.Sequence, h.Status, "")
	s.answered(h, nil)
	s.enquiryAnswered(h.Sequence) // an odd answer, but the peer is alive
}

// peerUnbinds starts no further submit, answers, and lets the pending answers arrive.
func (s *session) peerUnbinds(h pdu.Header) error {
	s.pool.remove(s)
	s.mu.Lock()
	s.leaving = true
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	for _, c := range queue {
		c.end(unsent, whyUnbound)
		s.finish(c)
	}
	return s.replyEmpty(pdu.CommandUnbindResp, pdu.StatusOK, h.Sequence)
}

func (s *session) peerUnbound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unbound {
		s.unbound = true
		close(s.unbindResp)
	}
}

// deliver passes a message or a receipt on. The response follows once it is stored; the reader does
// not wait for that.
func (s *session) deliver(h pdu.Header, frame []byte) error {
	response := h.Command.Response()
	m, readable := delivered(frame)
	if !readable {
		// Sending it again would not make it readable.
		return s.respond(response, pdu.StatusReceiverPermanent, h.Sequence)
	}
	if r, ok := s.receipt(&m); ok {
		return s.handOver(r, response, h.Sequence)
	}
	take := s.deliveryHandler(&m)
	if take == nil {
		return s.respond(response, pdu.StatusOK, h.Sequence)
	}
	select {
	case s.deliveries <- delivery{response, h.Sequence, take}:
		return nil
	default:
		return s.respond(response, pdu.StatusReceiverTemporary, h.Sequence)
	}
}

// delivered reads a deliver_sm or data_sm. One with a damaged end counts if it has content: a text,
// or the receipt parameters including the state. Acknowledging a receipt whose state was cut off
// would lose it.
func delivered(frame []byte) (m pdu.Message, readable bool) {
	_, body, err := pdu.Decode(frame)
	switch b := body.(type) {
	case *pdu.DeliverSM:
		m = b.Message
	case *pdu.DataSM:
		m = b.Message()
	}
	return m, err == nil || len(m.Payload()) > 0 || named(&m) && stated(&m)
}

// named reports whether a parameter holds the message_id of the PDU's message.
func named(m *pdu.Message) bool {
	_, ok := m.TLVs.Get(pdu.TagReceiptedMessageID)
	return ok
}

// stated reports whether a parameter holds a readable message state.
func stated(m *pdu.Message) bool {
	_, ok := m.TLVs.Uint(pdu.TagMessageState)
	return ok
}

// deliveryHandler returns the function that handles a message which is not a receipt; nil if none
// is set. A subscriber's message that cannot be decoded is refused, so that the SMSC does not count
// it as delivered.
func (s *session) deliveryHandler(m *pdu.Message) func(context.Context) pdu.Status {
	if s.cfg.OnInbound != nil {
		in, readable := s.cfg.parseInbound(m, time.Now())
		switch {
		case readable:
			return func(context.Context) pdu.Status {
				if s.cfg.OnInbound(in) {
					return pdu.StatusOK
				}
				return pdu.StatusReceiverTemporary
			}
		case s.cfg.OnDeliver == nil && s.cfg.isInbound(m):
			return func(context.Context) pdu.Status { return pdu.StatusReceiverReject }
		}
	}
	if s.cfg.OnDeliver == nil {
		return nil
	}
	d := pdu.DeliverSM{Message: m.Clone()}
	return func(ctx context.Context) pdu.Status { return s.cfg.OnDeliver(ctx, d) }
}

// respond answers deliver_sm or data_sm. The message_id of the response is empty (section 4.6.2).
func (s *session) respond(command pdu.Command, status pdu.Status, sequence uint32) error {
	frame, err := pdu.Append(nil, status, sequence, &pdu.MessageResp{Command: command})
	if err != nil {
		return err
	}
	return s.reply(frame)
}

// deliverLoop calls the handlers one at a time to keep the order. Deliveries left at the end of the
// session were not answered and will be sent again.
func (s *session) deliverLoop(ctx context.Context) {
	for {
		select {
		case <-s.stopped:
			return
		case d := <-s.deliveries:
			if s.respond(d.response, d.handle(ctx), d.sequence) != nil {
				return // the peer does not read; the reader ends the session for the same reason
			}
		}
	}
}

// maxUnanswered is how many receipts of one bind may wait for the answer of Config.OnReceipt.
// Further ones are answered "temporary error", and the SMSC sends them again. The answers may all
// come at once; maxControl has room for them.
const maxUnanswered = 10_000

// receipt reads the receipt in m; false if it is none, or if OnReceipt is not set.
func (s *session) receipt(m *pdu.Message) (provider.Receipt, bool) {
	if s.cfg.OnReceipt == nil {
		return provider.Receipt{}, false
	}
	return s.cfg.parseReceipt(m, time.Now())
}

// handOver passes a receipt to OnReceipt. The response is written when OnReceipt answers, from any
// goroutine, and not at all if the session has ended: the SMSC then repeats the receipt over
// another session.
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

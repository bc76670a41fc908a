package smpptest

import (
	"time"

	"dispatcher/provider/smpp/pdu"
)

// submitted handles submit_sm and data_sm as the script says.
func (c *conn) submitted(script *script, h pdu.Header, frame []byte) error {
	m, err := c.parse(h, frame)
	if err != nil {
		c.srv.counts.unread.Add(1)
		c.answer(h, pdu.StatusInvMsgLen)
		return nil
	}
	if !c.sends() {
		c.answer(h, pdu.StatusInvBndSts)
		return nil
	}
	at := time.Now()
	v := script.decide(at)
	messageID := c.count(script, v)
	number := 0
	if c.srv.records() || script.Receipts {
		entry := c.entry(at, h, m, v, messageID)
		number = c.srv.journal.write(entry)
		if c.srv.cfg.OnSubmit != nil {
			c.srv.cfg.OnSubmit(entry)
		}
		if script.Receipts && entry.Receipt && entry.Accepted() {
			c.srv.receipts.schedule.add(at.Add(v.delay+script.ReceiptDelay), newReceipt(script, entry))
		}
	}
	switch v.fate {
	case Cut:
		return errEnd
	case Answered:
		return c.answerSubmit(h, v, messageID, at, number)
	case Dropped:
	}
	return nil
}

func (c *conn) parse(h pdu.Header, frame []byte) (*pdu.Message, error) {
	if h.Command == pdu.CommandSubmitSM {
		return &c.submit.Message, c.submit.Parse(frame[pdu.HeaderSize:])
	}
	_, body, err := pdu.Decode(frame)
	if err != nil {
		return nil, err
	}
	m := body.(*pdu.DataSM).Message()
	return &m, nil
}

// count returns the message_id of an accepted submit.
func (c *conn) count(script *script, v verdict) string {
	counts := &c.srv.counts
	counts.submits.Add(1)
	switch v.status {
	case pdu.StatusOK:
		counts.accepted.Add(1)
		return script.messageID(c.srv.accepted.Add(1))
	case pdu.StatusThrottled:
		counts.throttled.Add(1)
	}
	return ""
}

// records reports whether anybody wants to know about submits in detail.
func (s *Server) records() bool {
	return s.journal.keep != 0 || s.journal.destinations || s.cfg.OnSubmit != nil
}

func (c *conn) entry(at time.Time, h pdu.Header, m *pdu.Message, v verdict, messageID string) Submit {
	place, octets := content(m)
	return Submit{
		At: at, Connection: c.id, SystemID: c.systemID, Sequence: h.Sequence,
		From: m.Source.Addr, To: m.Dest.Addr, DataCoding: m.DataCoding, ESMClass: m.ESMClass,
		ServiceType: m.ServiceType, Validity: m.ValidityPeriod,
		Reference: place.reference, Part: place.part, Parts: place.parts,
		Text:   decodeText(m.DataCoding, c.srv.cfg.Alphabet, octets),
		Status: v.status, Fate: v.fate, MessageID: messageID, Receipt: m.RegisteredDelivery&3 != 0,
	}
}

// answerSubmit answers at once or later. A refusal has no body (section 4.4.2).
func (c *conn) answerSubmit(h pdu.Header, v verdict, messageID string, at time.Time, number int) (err error) {
	out := c.out
	if v.delay > 0 {
		out = nil
	}
	if v.status != pdu.StatusOK {
		out = pdu.AppendEmpty(out, h.Command.Response(), v.status, h.Sequence)
	} else if out, err = pdu.Append(out, v.status, h.Sequence, &pdu.MessageResp{Command: h.Command.Response(), MessageID: messageID}); err != nil {
		return err
	}
	if v.delay > 0 {
		c.delays.add(at.Add(v.delay), delayed{frame: out, number: number})
		return nil
	}
	c.out = out
	return nil
}

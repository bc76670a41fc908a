package smpptest

import (
	"time"

	"dispatcher/provider/smpp/pdu"
)

// submitted handles submit_sm and data_sm as the script says.
func (c *conn) submitted(script *script, h pdu.Header, frame []byte) error {
	m := c.parse(h, frame)
	switch {
	case m == nil:
		c.srv.counts.unread.Add(1)
		c.answer(h, pdu.StatusInvMsgLen)
		return nil
	case !c.sends():
		c.answer(h, pdu.StatusInvBndSts)
		return nil
	}
	entry := Submit{At: time.Now(), Connection: c.id, SystemID: c.systemID, Sequence: h.Sequence}
	detailed := c.srv.records() || script.Receipts && asksReceipt(m) || script.Decide != nil
	if detailed {
		c.describe(&entry, m)
		entry.Echo = m.TLVs.Text(script.ReceiptForm.Echo)
	}
	a := script.decide(entry.At, entry)
	entry.Status, entry.AnswerState, entry.MessageID = a.Status, a.State, c.count(script, a)
	number := 0
	if detailed {
		number = c.record(script, entry, a)
	}
	switch a.State {
	case Cut:
		return errEnd
	case Answered:
		return c.answerSubmit(h, a, entry, number)
	case Dropped:
	}
	return nil
}

// record writes the journal and schedules the receipt.
func (c *conn) record(script *script, entry Submit, a Answer) (number int) {
	number = c.srv.journal.write(entry)
	if c.srv.cfg.OnSubmit != nil {
		c.srv.cfg.OnSubmit(entry)
	}
	if !entry.Receipt || !entry.Accepted() {
		return number
	}
	c.srv.receipts.order(entry, number, script.receipt(entry, a), entry.At.Add(a.Delay))
	return number
}

// parse returns nil for a body that cannot be read.
func (c *conn) parse(h pdu.Header, frame []byte) *pdu.Message {
	if h.Command == pdu.CommandSubmitSM {
		if c.submit.Parse(frame[pdu.HeaderSize:]) == nil {
			return &c.submit.Message
		}
		return nil
	}
	_, body, err := pdu.Decode(frame)
	if data, ok := body.(*pdu.DataSM); ok && err == nil {
		m := data.Message()
		return &m
	}
	return nil
}

// count counts a submit and returns its message_id, empty unless it was accepted.
func (c *conn) count(script *script, a Answer) string {
	counts := &c.srv.counts
	counts.submits.Add(1)
	switch a.Status {
	case pdu.StatusOK:
		counts.accepted.Add(1)
		n := c.srv.accepted.Add(1)
		if a.MessageID != "" {
			return a.MessageID
		}
		return script.messageID(n)
	case pdu.StatusThrottled:
		counts.throttled.Add(1)
	default:
	}
	return ""
}

// records reports whether the details of submits are used.
func (s *Server) records() bool {
	return s.journal.keep != 0 || s.cfg.OnSubmit != nil
}

// describe fills in the fields of the message.
func (c *conn) describe(entry *Submit, m *pdu.Message) {
	place, octets := content(m)
	entry.From, entry.To = m.Source.Addr, m.Dest.Addr
	entry.DataCoding, entry.ESMClass = m.DataCoding, m.ESMClass
	entry.Source, entry.Dest = m.Source, m.Dest
	entry.ProtocolID, entry.Priority = m.ProtocolID, m.PriorityFlag
	entry.ServiceType, entry.Schedule, entry.Validity = m.ServiceType, m.ScheduleDeliveryTime,
		m.ValidityPeriod
	entry.Reference, entry.Part, entry.Parts = place.reference, place.part, place.parts
	entry.Text = decodeText(m.DataCoding, c.srv.cfg.Alphabet, place.shift, octets)
	entry.Receipt = asksReceipt(m)
}

// asksReceipt reports whether the message requests a final receipt.
func asksReceipt(m *pdu.Message) bool { return m.RegisteredDelivery&pdu.ReceiptMask != 0 }

// answerSubmit answers at once or later. A refusal has no body (section 4.4.2).
func (c *conn) answerSubmit(h pdu.Header, a Answer, entry Submit, number int) (err error) {
	later := a.Delay > 0 || a.Hold != nil
	out := c.out
	if later {
		out = nil
	}
	if a.Status != pdu.StatusOK {
		out = pdu.AppendEmpty(out, h.Command.Response(), a.Status, h.Sequence)
	} else if out, err = pdu.Append(out, a.Status, h.Sequence, c.response(h, entry)); err != nil {
		return err
	}
	switch {
	case !later:
		c.out = out
	case a.Hold == nil:
		c.delays.add(entry.At.Add(a.Delay), delayed{frame: out, number: number})
	default:
		c.late.Go(func() { c.answerHeld(a, delayed{frame: out, number: number}) })
	}
	return nil
}

func (c *conn) response(h pdu.Header, entry Submit) *pdu.MessageResp {
	body := &pdu.MessageResp{Command: h.Command.Response(), MessageID: entry.MessageID}
	if state := c.srv.script.Load().Congestion; state > 0 {
		body.TLVs = pdu.TLVs{pdu.Uint8(pdu.TagCongestionState, state)}
	}
	return body
}

// answerHeld waits until the answer may be sent or the connection has ended.
func (c *conn) answerHeld(a Answer, d delayed) {
	select {
	case <-a.Hold:
		c.delays.add(time.Now().Add(a.Delay), d)
	case <-c.stop:
		c.srv.journal.cut(d.number)
	}
}

// asked answers query_sm and cancel_sm, if the script does.
func (c *conn) asked(script *script, h pdu.Header, frame []byte) error {
	_, body, err := pdu.Decode(frame)
	switch q := body.(type) {
	case *pdu.QuerySM:
		if script.Queries && err == nil {
			c.srv.counts.queries.Add(1)
			return c.queried(script, h, q)
		}
	case *pdu.CancelSM:
		if script.Cancels && err == nil {
			c.answer(h, c.cancelled(q))
			return nil
		}
	}
	c.out = pdu.AppendEmpty(c.out, pdu.CommandGenericNack, pdu.StatusInvCmdID, h.Sequence)
	return nil
}

// queried answers query_sm with the state of a logged submit. The request must name the sender of
// that submit.
func (c *conn) queried(script *script, h pdu.Header, q *pdu.QuerySM) (err error) {
	entry, ok := c.srv.journal.get(c.srv.journal.find(q.MessageID))
	if !ok || entry.Source.Addr != q.Source.Addr {
		c.answer(h, pdu.StatusQueryFail)
		return nil
	}
	word := entry.State
	switch {
	case entry.Cancelled:
		word = pdu.StateDeleted.Word()
	case script.QueryState != nil:
		word = script.QueryState(entry)
	case word == "":
		word = pdu.StateEnroute.Word()
	}
	c.out, err = pdu.Append(c.out, pdu.StatusOK, h.Sequence,
		&pdu.QuerySMResp{MessageID: q.MessageID, MessageState: pdu.ParseState(word)})
	return err
}

// cancelled cancels a logged submit that has had no receipt.
func (c *conn) cancelled(q *pdu.CancelSM) pdu.Status {
	status := pdu.StatusCancelFail
	c.srv.journal.amend(c.srv.journal.find(q.MessageID), func(s *Submit) {
		if s.ReceiptAt.IsZero() && s.To == q.Dest.Addr && s.From == q.Source.Addr {
			s.Cancelled, status = true, pdu.StatusOK
		}
	})
	return status
}

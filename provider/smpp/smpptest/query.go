package smpptest

import (
	"dispatcher/provider/smpp/pdu"
)

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
			c.srv.counts.cancels.Add(1)
			c.answer(h, c.cancelled(q))
			return nil
		}
	}
	c.out = pdu.AppendEmpty(c.out, pdu.CommandGenericNack, pdu.StatusInvCmdID, h.Sequence)
	return nil
}

// queried tells the state of a submit of the log to whoever names its sender.
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
	c.out, err = pdu.Append(c.out, pdu.StatusOK, h.Sequence, &pdu.QuerySMResp{MessageID: q.MessageID, MessageState: pdu.ParseState(word)})
	return err
}

// cancelled takes a submit of the log back that has had no receipt.
func (c *conn) cancelled(q *pdu.CancelSM) pdu.Status {
	status := pdu.StatusCancelFail
	c.srv.journal.amend(c.srv.journal.find(q.MessageID), func(s *Submit) {
		if s.ReceiptAt.IsZero() && s.To == q.Dest.Addr && s.From == q.Source.Addr {
			s.Cancelled, status = true, pdu.StatusOK
		}
	})
	return status
}

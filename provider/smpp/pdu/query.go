package pdu

// QuerySM asks what became of a submitted message (section 4.8).
type QuerySM struct {
	MessageID string
	Source    Address
}

// CommandID implements Body.
func (*QuerySM) CommandID() Command { return CommandQuerySM }

func (q *QuerySM) appendTo(dst []byte) ([]byte, error) {
	dst, err := appendCString(dst, "message_id", q.MessageID, maxMessageID)
	if err != nil {
		return dst, err
	}
	return q.Source.appendTo(dst, "source_addr", maxAddress)
}

func (q *QuerySM) parse(body []byte) error {
	c := cursor{rest: body}
	q.MessageID = c.cstring("message_id")
	q.Source = c.address("source_addr")
	return c.err
}

// QuerySMResp answers a QuerySM (section 4.8.2). A refusal may come without a body.
type QuerySMResp struct {
	MessageID    string
	FinalDate    string // empty until the message reached a final state
	MessageState MessageState
	ErrorCode    byte
}

// CommandID implements Body.
func (*QuerySMResp) CommandID() Command { return CommandQuerySMResp }

func (q *QuerySMResp) appendTo(dst []byte) ([]byte, error) {
	dst, err := appendCString(dst, "message_id", q.MessageID, maxMessageID)
	if err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "final_date", q.FinalDate, maxTime); err != nil {
		return dst, err
	}
	return append(dst, byte(q.MessageState), q.ErrorCode), nil
}

func (q *QuerySMResp) parse(body []byte) error {
	if len(body) == 0 {
		*q = QuerySMResp{}
		return nil
	}
	c := cursor{rest: body}
	q.MessageID = c.cstring("message_id")
	q.FinalDate = c.cstring("final_date")
	q.MessageState = MessageState(c.octet("message_state"))
	q.ErrorCode = c.octet("error_code")
	return c.err
}

// CancelSM takes back a submitted message that has not been delivered (section 4.9).
// Its response is Empty.
type CancelSM struct {
	ServiceType string
	MessageID   string
	Source      Address
	Dest        Address
}

// CommandID implements Body.
func (*CancelSM) CommandID() Command { return CommandCancelSM }

func (q *CancelSM) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = appendCString(dst, "service_type", q.ServiceType, maxServiceType); err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "message_id", q.MessageID, maxMessageID); err != nil {
		return dst, err
	}
	if dst, err = q.Source.appendTo(dst, "source_addr", maxAddress); err != nil {
		return dst, err
	}
	return q.Dest.appendTo(dst, "destination_addr", maxAddress)
}

func (q *CancelSM) parse(body []byte) error {
	c := cursor{rest: body}
	q.ServiceType = c.cstring("service_type")
	q.MessageID = c.cstring("message_id")
	q.Source = c.address("source_addr")
	q.Dest = c.address("destination_addr")
	return c.err
}

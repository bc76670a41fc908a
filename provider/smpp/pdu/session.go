package pdu

// Interface versions as they travel in binds (section 5.2.4).
const (
	Version33 byte = 0x33
	Version34 byte = 0x34
	Version50 byte = 0x50
)

// Bind is bind_transmitter, bind_receiver or bind_transceiver (section 4.1).
type Bind struct {
	Command          Command // one of the three
	SystemID         string
	Password         string
	SystemType       string
	InterfaceVersion byte
	AddrTON, AddrNPI byte
	AddressRange     string
}

// CommandID implements Body.
func (b *Bind) CommandID() Command { return b.Command }

func (b *Bind) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = appendCString(dst, "system_id", b.SystemID, maxSystemID); err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "password", b.Password, maxPassword); err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "system_type", b.SystemType, maxSystemType); err != nil {
		return dst, err
	}
	dst = append(dst, b.InterfaceVersion, b.AddrTON, b.AddrNPI)
	return appendCString(dst, "address_range", b.AddressRange, maxAddressRange)
}

func (b *Bind) parse(body []byte) error {
	c := cursor{rest: body}
	b.SystemID = c.cstring("system_id")
	b.Password = c.cstring("password")
	b.SystemType = c.cstring("system_type")
	b.InterfaceVersion = c.octet("interface_version")
	b.AddrTON = c.octet("addr_ton")
	b.AddrNPI = c.octet("addr_npi")
	b.AddressRange = c.cstring("address_range")
	return c.err
}

// BindResp answers a Bind. A refusal may come without a body.
type BindResp struct {
	Command  Command // the response of the bind's command
	SystemID string
	TLVs     TLVs
}

// CommandID implements Body.
func (b *BindResp) CommandID() Command { return b.Command }

func (b *BindResp) appendTo(dst []byte) ([]byte, error) {
	dst, err := appendCString(dst, "system_id", b.SystemID, maxSystemID)
	if err != nil {
		return dst, err
	}
	return b.TLVs.appendTo(dst)
}

func (b *BindResp) parse(body []byte) error {
	b.SystemID, b.TLVs = "", b.TLVs[:0]
	if len(body) == 0 {
		return nil
	}
	c := cursor{rest: body}
	b.SystemID = c.looseCString("system_id")
	b.TLVs = c.tlvs(b.TLVs)
	return c.err
}

// Outbind asks the ESME to bind as a receiver (section 4.1.7).
type Outbind struct {
	SystemID string
	Password string
}

// CommandID implements Body.
func (o *Outbind) CommandID() Command { return CommandOutbind }

func (o *Outbind) appendTo(dst []byte) ([]byte, error) {
	dst, err := appendCString(dst, "system_id", o.SystemID, maxSystemID)
	if err != nil {
		return dst, err
	}
	return appendCString(dst, "password", o.Password, maxPassword)
}

func (o *Outbind) parse(body []byte) error {
	c := cursor{rest: body}
	o.SystemID = c.cstring("system_id")
	o.Password = c.cstring("password")
	return c.err
}

// Empty is an operation that has no body: unbind, enquire_link, their responses,
// generic_nack and cancel_sm_resp.
type Empty struct{ Command Command }

// CommandID implements Body.
func (e *Empty) CommandID() Command { return e.Command }

func (e *Empty) appendTo(dst []byte) ([]byte, error) { return dst, nil }

// parse ignores a body: it could mean nothing, and some peers add padding.
func (e *Empty) parse([]byte) error { return nil }

// AlertNotification says that an unreachable handset can be reached again (section 4.12). It has no
// response.
type AlertNotification struct {
	Source Address
	ESME   Address
	TLVs   TLVs
}

// CommandID implements Body.
func (a *AlertNotification) CommandID() Command { return CommandAlertNotification }

func (a *AlertNotification) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = a.Source.appendTo(dst, "source_addr", maxDataAddress); err != nil {
		return dst, err
	}
	if dst, err = a.ESME.appendTo(dst, "esme_addr", maxDataAddress); err != nil {
		return dst, err
	}
	return a.TLVs.appendTo(dst)
}

func (a *AlertNotification) parse(body []byte) error {
	c := cursor{rest: body}
	a.Source = c.address("source_addr")
	a.ESME = c.address("esme_addr")
	a.TLVs = c.tlvs(a.TLVs)
	return c.err
}

// QuerySM asks for the state of a submitted message (section 4.8).
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

// CancelSM cancels a submitted message that has not been delivered (section 4.9). Its response is
// Empty.
type CancelSM struct {
	ServiceType string
	MessageID   string
	Source      Address
	Dest        Address
}

// CommandID implements Body.
func (*CancelSM) CommandID() Command { return CommandCancelSM }

func (cs *CancelSM) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = appendCString(dst, "service_type", cs.ServiceType, maxServiceType); err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "message_id", cs.MessageID, maxMessageID); err != nil {
		return dst, err
	}
	if dst, err = cs.Source.appendTo(dst, "source_addr", maxAddress); err != nil {
		return dst, err
	}
	return cs.Dest.appendTo(dst, "destination_addr", maxAddress)
}

func (cs *CancelSM) parse(body []byte) error {
	c := cursor{rest: body}
	cs.ServiceType = c.cstring("service_type")
	cs.MessageID = c.cstring("message_id")
	cs.Source = c.address("source_addr")
	cs.Dest = c.address("destination_addr")
	return c.err
}

package smpptest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider/smpp/pdu"
)

var errEnd = errors.New("connection is over")

// conn is one connection. Its reader goroutine handles requests in order and writes
// answers in batches; delayed answers and receipts are written by others.
type conn struct {
	srv    *Server
	nc     net.Conn
	id     int
	reader *pdu.Reader
	delays *schedule[delayed]
	stop   chan struct{}  // closed when the reader ends
	late   sync.WaitGroup // goroutines besides the reader

	submit pdu.SubmitSM // storage; owned by the reader
	out    []byte       // answers not yet written; owned by the reader

	role     atomic.Uint32 // the bind's command; zero while unbound
	plain    atomic.Bool   // no optional parameters: one side is of version 3.3
	systemID string        // set by the reader before role
	writeMu  sync.Mutex    // one write at a time
	halted   bool          // nothing is written any more; guarded by writeMu

	mu         sync.Mutex
	sequence   uint32              // guarded by mu
	unanswered map[uint32]*receipt // receipts without answer, by sequence_number; guarded by mu
}

// delayed is an answer that waits for its time.
type delayed struct {
	frame  []byte
	number int // in the journal
}

func newConn(s *Server, nc net.Conn, id int) *conn {
	return &conn{
		srv: s, nc: nc, id: id, reader: pdu.NewReader(nc), delays: newSchedule[delayed](),
		stop: make(chan struct{}), unanswered: make(map[uint32]*receipt),
	}
}

// serve returns when the connection is over and its goroutines have ended.
func (c *conn) serve() {
	c.late.Go(func() { c.delays.loop(c.stop, c.sendDelayed) })
	for {
		err := c.next()
		if len(c.out) > 0 && (err != nil || !c.reader.Ready()) {
			_ = c.write(c.out)
			c.out = c.out[:0]
		}
		if err != nil {
			break
		}
	}
	_ = c.nc.Close()
	close(c.stop)
	c.late.Wait()
	for _, d := range c.delays.rest() {
		c.srv.journal.cut(d.number)
	}
	c.srv.receipts.hold(c)
}

func (c *conn) next() error {
	h, frame, err := c.reader.Next()
	if errors.Is(err, pdu.ErrLength) {
		c.out = pdu.AppendEmpty(c.out, pdu.CommandGenericNack, pdu.StatusInvCmdLen, h.Sequence)
	}
	if err != nil {
		return err
	}
	return c.handle(h, frame)
}

func (c *conn) handle(h pdu.Header, frame []byte) error {
	script := c.srv.script.Load()
	switch h.Command {
	case pdu.CommandSubmitSM, pdu.CommandDataSM:
		return c.submitted(script, h, frame)
	case pdu.CommandDeliverSMResp, pdu.CommandDataSMResp:
		c.receiptAnswered(h)
		return nil
	case pdu.CommandGenericNack:
		return nil
	case pdu.CommandEnquireLink:
		c.srv.counts.enquireLinks.Add(1)
	default:
	}
	ignored := h.Command == pdu.CommandEnquireLink && script.IgnoreEnquireLink
	if ignored || script.Silent || h.Command.IsResponse() {
		return nil
	}
	return c.control(script, h, frame)
}

// control handles PDUs that are not about messages.
func (c *conn) control(script *script, h pdu.Header, frame []byte) error {
	switch h.Command {
	case pdu.CommandBindReceiver, pdu.CommandBindTransmitter, pdu.CommandBindTransceiver:
		return c.bind(script, h, frame)
	case pdu.CommandEnquireLink:
		c.answer(h, pdu.StatusOK)
	case pdu.CommandUnbind:
		c.srv.counts.unbinds.Add(1)
		c.answer(h, pdu.StatusOK)
		return errEnd
	case pdu.CommandQuerySM, pdu.CommandCancelSM:
		return c.asked(script, h, frame)
	default:
		c.out = pdu.AppendEmpty(c.out, pdu.CommandGenericNack, pdu.StatusInvCmdID, h.Sequence)
	}
	return nil
}

// answer appends a response without body.
func (c *conn) answer(h pdu.Header, status pdu.Status) {
	c.out = pdu.AppendEmpty(c.out, h.Command.Response(), status, h.Sequence)
}

func (c *conn) bind(script *script, h pdu.Header, frame []byte) error {
	_, body, err := pdu.Decode(frame)
	request, ok := body.(*pdu.Bind)
	if err != nil || !ok {
		// The bind cannot be read, so its sender is unknown.
		c.srv.counts.unread.Add(1)
		c.answer(h, pdu.StatusInvCmdLen)
		return errEnd
	}
	if status := c.admit(script, request); status != pdu.StatusOK {
		c.srv.counts.bindsRefused.Add(1)
		c.answer(h, status)
		return errEnd
	}
	response := &pdu.BindResp{Command: h.Command.Response(), SystemID: c.srv.cfg.Name}
	c.plain.Store(c.srv.cfg.Version == pdu.Version33 || request.InterfaceVersion < pdu.Version34)
	if c.srv.cfg.Version != 0 && !c.plain.Load() {
		response.TLVs = pdu.TLVs{pdu.Uint8(pdu.TagSCInterfaceVersion, c.srv.cfg.Version)}
	}
	if c.out, err = pdu.Append(c.out, pdu.StatusOK, h.Sequence, response); err != nil {
		return err
	}
	err = c.write(c.out) // before a receipt can leave
	c.out = c.out[:0]
	c.systemID = request.SystemID
	c.role.Store(uint32(h.Command))
	c.srv.counts.binds.Add(1)
	if c.receives() {
		c.srv.receipts.release(c.systemID)
	}
	return err
}

func (c *conn) admit(script *script, b *pdu.Bind) pdu.Status {
	cfg := &c.srv.cfg
	switch {
	case c.role.Load() != 0:
		return pdu.StatusAlyBnd
	case script.RefuseBinds != pdu.StatusOK:
		return script.RefuseBinds
	case cfg.SystemID != "" && b.SystemID != cfg.SystemID:
		return pdu.StatusInvSysID
	case cfg.SystemID != "" && b.Password != cfg.Password:
		return pdu.StatusInvPaswd
	}
	return pdu.StatusOK
}

// receives reports whether the bind takes deliver_sm.
func (c *conn) receives() bool {
	role := pdu.Command(c.role.Load())
	return role == pdu.CommandBindReceiver || role == pdu.CommandBindTransceiver
}

// sends reports whether the bind may submit.
func (c *conn) sends() bool {
	role := pdu.Command(c.role.Load())
	return role == pdu.CommandBindTransmitter || role == pdu.CommandBindTransceiver
}

// request sends a request to a bound peer.
func (c *conn) request(body pdu.Body) {
	if c.role.Load() == 0 {
		return
	}
	if frame, err := pdu.Append(nil, pdu.StatusOK, c.nextSequence(), body); err == nil {
		_ = c.write(frame)
	}
}

func (c *conn) nextSequence() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence = pdu.NextSequence(c.sequence)
	return c.sequence
}

// write writes at once, or as slowly as the script says.
func (c *conn) write(b []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	script := c.srv.script.Load()
	switch {
	case c.halted:
		return nil
	case script.HalfPDU:
		b, c.halted = b[:len(b)/2], true
	case script.Trickle > 0:
		return c.trickle(b, script.Trickle)
	}
	_, err := c.nc.Write(b)
	return err
}

// trickle writes octet by octet until the server ends.
func (c *conn) trickle(b []byte, pause time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range b {
		select {
		case <-timer.C:
		case <-c.srv.stop:
			return errEnd
		}
		if _, err := c.nc.Write(b[i : i+1]); err != nil {
			return err
		}
		timer.Reset(pause)
	}
	return nil
}

// cut ends the connection; the reader notices.
func (c *conn) cut() { _ = c.nc.Close() }

func (c *conn) sendDelayed(batch []delayed) {
	var out []byte
	for _, d := range batch {
		out = append(out, d.frame...)
	}
	if c.write(out) == nil {
		return
	}
	for _, d := range batch {
		c.srv.journal.cut(d.number)
	}
}

package smpptest

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"dispatcher/provider/smpp/pdu"
)

const (
	// receiptRetry is when a receipt that the ESME could not take is sent again.
	receiptRetry = time.Second
	// maxHeld bounds the receipts that wait for a receiver to bind.
	maxHeld = 100_000
	// receiptTime is how the times within a receipt are written (appendix B).
	receiptTime = "0601021504"
)

// receipt is a receipt on its way to an account.
type receipt struct {
	systemID string
	message  pdu.Message
	number   int // of the submit in the journal
}

// newReceipt writes the receipt of an accepted submit in the form of appendix B, with
// the parameters that 3.4 added.
func newReceipt(s Submit, number int, state string, done time.Time) receipt {
	state = cmp.Or(state, "DELIVRD")
	delivered := 0
	if state == "DELIVRD" {
		delivered = 1
	}
	text := fmt.Sprintf("id:%s sub:001 dlvrd:%03d submit date:%s done date:%s stat:%s err:000 text:",
		s.MessageID, delivered, s.At.UTC().Format(receiptTime), done.UTC().Format(receiptTime), state)
	return receipt{number: number, systemID: s.SystemID, message: pdu.Message{
		Source: pdu.Address{TON: 1, NPI: 1, Addr: s.To}, Dest: pdu.Address{Addr: s.From},
		ESMClass: pdu.ESMClassReceipt, ShortMessage: []byte(text),
		TLVs: pdu.TLVs{
			{Tag: pdu.TagReceiptedMessageID, Value: append([]byte(s.MessageID), 0)},
			pdu.Uint8(pdu.TagMessageState, messageState(state)),
		},
	}}
}

// messageState translates the word of appendix B to the value of section 5.2.28.
func messageState(word string) byte {
	switch word {
	case "DELIVRD":
		return 2
	case "EXPIRED":
		return 3
	case "DELETED":
		return 4
	case "UNDELIV":
		return 5
	case "ACCEPTD":
		return 6
	case "REJECTD":
		return 8
	default:
		return 7
	}
}

// receiptDesk sends receipts when they are due, to any bind of the account that
// receives; it keeps them while there is none, and sends them again until they are
// answered ESME_ROK.
type receiptDesk struct {
	srv      *Server
	schedule *schedule[receipt]
	mu       sync.Mutex
	held     map[string][]receipt // by system_id; guarded by mu
	count    int                  // of held; guarded by mu
}

func newReceiptDesk(s *Server) *receiptDesk {
	return &receiptDesk{srv: s, schedule: newSchedule[receipt](), held: make(map[string][]receipt)}
}

// SendReceipt sends a receipt for a submit of the log, whatever Behaviour says: at once, or when a bind of its
// account receives. An empty state is DELIVRD.
func (s *Server) SendReceipt(entry Submit, state string) {
	now := time.Now()
	s.receipts.schedule.add(now, newReceipt(entry, s.journal.find(entry.MessageID), state, now))
}

func (d *receiptDesk) send(batch []receipt) {
	for _, r := range batch {
		if c := d.receiver(r.systemID); c == nil || !c.sendReceipt(r) {
			d.keep(r)
		}
	}
}

func (d *receiptDesk) receiver(systemID string) *conn {
	for _, c := range d.srv.snapshot() {
		if c.receives() && c.systemID == systemID {
			return c
		}
	}
	return nil
}

func (d *receiptDesk) keep(r receipt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count < maxHeld {
		d.held[r.systemID] = append(d.held[r.systemID], r)
		d.count++
	}
}

// release sends what waited for a receiver of the account.
func (d *receiptDesk) release(systemID string) {
	d.mu.Lock()
	waiting := d.held[systemID]
	delete(d.held, systemID)
	d.count -= len(waiting)
	d.mu.Unlock()
	at := time.Now()
	for _, r := range waiting {
		d.schedule.add(at, r)
	}
}

// hold takes back what a connection that ended did not answer.
func (d *receiptDesk) hold(c *conn) {
	c.mu.Lock()
	owed := c.owed
	c.owed = nil
	c.mu.Unlock()
	at := time.Now()
	for _, r := range owed {
		d.schedule.add(at.Add(receiptRetry), r)
	}
}

// sendReceipt reports false when the connection has ended.
func (c *conn) sendReceipt(r receipt) bool {
	sequence := c.nextSequence()
	frame, err := pdu.Append(nil, pdu.StatusOK, sequence, &pdu.DeliverSM{Message: r.message})
	if err != nil {
		return true // it would not become encodable by waiting
	}
	c.mu.Lock()
	if c.owed == nil {
		c.mu.Unlock()
		return false
	}
	c.owed[sequence] = r
	c.mu.Unlock()
	c.srv.counts.receiptsSent.Add(1)
	c.srv.journal.receipt(r.number, time.Now())
	_ = c.write(frame) // a failure ends the connection, which gives the receipt back
	return true
}

func (c *conn) receiptAnswered(h pdu.Header) {
	c.mu.Lock()
	r, ok := c.owed[h.Sequence]
	delete(c.owed, h.Sequence)
	c.mu.Unlock()
	switch {
	case !ok:
	case h.Status == pdu.StatusOK:
		c.srv.counts.receiptsTaken.Add(1)
	default:
		c.srv.receipts.schedule.add(time.Now().Add(receiptRetry), r)
	}
}

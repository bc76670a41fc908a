package smpptest

import (
	"sync"
	"time"

	"dispatcher/provider/smpp/pdu"
)

const (
	// receiptRetry is the pause before a receipt that the ESME did not accept is sent again.
	receiptRetry = time.Second
	// maxHeld bounds the receipts that wait for a receiver to bind.
	maxHeld = 100_000
)

// receipt is a receipt or a message on its way to an account.
type receipt struct {
	systemID string // empty for any
	number   int    // of the submit in the journal; below zero for none
	entry    Submit
	Receipt
	at      time.Time    // done date
	inbound *pdu.Message // the message of a subscriber; nil for a receipt
}

// message is what is sent. If the submit was cancelled meanwhile, the receipt says so.
func (r *receipt) message(s *Server) pdu.Message {
	if r.inbound != nil {
		return *r.inbound
	}
	if entry, ok := s.journal.get(r.number); ok && entry.Cancelled {
		r.State, r.Error = pdu.StateDeleted.Word(), ""
	}
	form := s.script.Load().ReceiptForm
	if r.Form != nil {
		form = *r.Form
	}
	return form.compose(&r.entry, &r.Receipt, r.at)
}

// receiptQueue sends receipts when they are due, to any receiving bind of the account. It keeps
// them while there is none, and repeats them until they are answered ESME_ROK.
type receiptQueue struct {
	srv      *Server
	schedule *schedule[*receipt]
	mu       sync.Mutex
	held     map[string][]*receipt // by system_id; guarded by mu
	count    int                   // of held; guarded by mu
}

func newReceiptQueue(s *Server) *receiptQueue {
	return &receiptQueue{
		srv: s, schedule: newSchedule[*receipt](), held: make(map[string][]*receipt),
	}
}

// SendReceipt sends a receipt for a submit of the log, whatever Behaviour says: at once, or when a
// bind of its account receives. An empty state is DELIVRD.
func (s *Server) SendReceipt(entry Submit, state string) {
	now := time.Now()
	s.receipts.order(entry, s.journal.find(entry.MessageID), Receipt{State: state}, now)
}

// order schedules the receipts of a submit; their delays count from from.
func (q *receiptQueue) order(entry Submit, number int, r Receipt, from time.Time) {
	at := from.Add(r.Delay)
	if !r.Never {
		q.schedule.add(at, &receipt{
			systemID: entry.SystemID, number: number, entry: entry, Receipt: r, at: at,
		})
	}
	for _, further := range r.Again {
		q.order(entry, number, further, from)
	}
}

func (q *receiptQueue) send(batch []*receipt) {
	for _, r := range batch {
		switch c := q.receiver(r.systemID); {
		case c == nil:
			q.keep(r)
		// The connection has just ended; keep would still find it and send again at once.
		case !c.sendReceipt(r):
			q.schedule.add(time.Now().Add(receiptRetry), r)
		}
	}
}

func (q *receiptQueue) receiver(systemID string) *conn {
	for _, c := range q.srv.snapshot() {
		if c.receives() && (systemID == "" || c.systemID == systemID) {
			return c
		}
	}
	return nil
}

// keep holds a receipt until a receiver binds.
func (q *receiptQueue) keep(r *receipt) {
	q.mu.Lock()
	if q.count < maxHeld {
		q.held[r.systemID] = append(q.held[r.systemID], r)
		q.count++
	}
	q.mu.Unlock()
	// A receiver that has bound meanwhile may have found nothing to release.
	if q.receiver(r.systemID) != nil {
		q.release(r.systemID)
	}
}

// release sends the receipts held for the account, and those for any.
func (q *receiptQueue) release(systemID string) {
	q.mu.Lock()
	waiting := q.held[""]
	if systemID != "" {
		waiting = append(waiting, q.held[systemID]...)
	}
	delete(q.held, "")
	delete(q.held, systemID)
	q.count -= len(waiting)
	q.mu.Unlock()
	at := time.Now()
	for _, r := range waiting {
		q.schedule.add(at, r)
	}
}

// hold keeps the receipts that a connection did not answer before it ended.
func (q *receiptQueue) hold(c *conn) {
	c.mu.Lock()
	unanswered := c.unanswered
	c.unanswered = nil
	c.mu.Unlock()
	at := time.Now()
	for _, r := range unanswered {
		q.schedule.add(at.Add(receiptRetry), r)
	}
}

// sendReceipt reports false when the connection has ended.
func (c *conn) sendReceipt(r *receipt) bool {
	sequence := c.nextSequence()
	m := r.message(c.srv)
	if c.plain.Load() {
		m.TLVs = nil
	}
	frame, err := pdu.Append(nil, pdu.StatusOK, sequence, r.body(c.srv, m))
	if err != nil {
		return true // waiting would not make it encodable
	}
	c.mu.Lock()
	if c.unanswered == nil {
		c.mu.Unlock()
		return false
	}
	c.unanswered[sequence] = r
	c.mu.Unlock()
	if r.inbound != nil {
		c.srv.counts.inboundSent.Add(1)
	} else {
		c.srv.counts.receiptsSent.Add(1)
		c.srv.journal.receipt(r.number, r.word(), time.Now())
	}
	_ = c.write(frame) // a failure ends the connection, which returns the receipt
	return true
}

// receiptAnswered repeats a receipt that was not accepted, unless the refusal is permanent.
func (c *conn) receiptAnswered(h pdu.Header) {
	c.mu.Lock()
	r, ok := c.unanswered[h.Sequence]
	delete(c.unanswered, h.Sequence)
	c.mu.Unlock()
	counts := &c.srv.counts
	switch {
	case !ok:
	case h.Status == pdu.StatusOK && r.inbound != nil:
		counts.inboundTaken.Add(1)
	case h.Status == pdu.StatusOK:
		counts.receiptsTaken.Add(1)
	case h.Status == pdu.StatusReceiverPermanent, h.Status == pdu.StatusReceiverReject:
		counts.refused.Add(1)
	default:
		c.srv.receipts.schedule.add(time.Now().Add(receiptRetry), r)
	}
}

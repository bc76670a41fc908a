package smpp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// Handle names a message that the SMSC has accepted. SMPP can only name it by the SMSC's
// message_id, so a submission without an answer cannot be looked up, and Client is not a
// provider.Finder.
type Handle struct {
	Reference string // Result.Reference or Part.Reference
	// From and To are those of the submission. The SMSC compares them (sections 4.8.1 and 4.9.1).
	From, To string
}

// ErrNotOffered says that the channel's settings do not enable the operation.
var ErrNotOffered = errors.New("the channel's settings do not offer it")

// Query asks the SMSC for the state of a message, with query_sm (section 4.8). The answer is a
// receipt, Pending while nothing is final. A refusal is a *StatusError. No error holds a phone
// number.
func (c *Client) Query(ctx context.Context, h Handle) (provider.Receipt, error) {
	if !c.cfg.Query {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", ErrNotOffered)
	}
	source, err := c.cfg.sourceTo(h.From, h.To)
	if err != nil {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", err)
	}
	return c.query(ctx, c.pool.any(), h.Reference, source)
}

// querySpare queries if a window has a free slot, and holds the slot until the answer comes,
// because SMSCs count all unanswered requests. Without a free slot the error is errNoSlot.
func (c *Client) querySpare(
	ctx context.Context, reference string, source pdu.Address,
) (provider.Receipt, error) {
	s, err := c.pool.takeSpare()
	if err != nil {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", err)
	}
	defer c.pool.release(s, 1)
	return c.query(ctx, s, reference, source)
}

// query takes the source address as it was sent.
func (c *Client) query(
	ctx context.Context, s *session, reference string, source pdu.Address,
) (provider.Receipt, error) {
	body, err := ask(ctx, s, &pdu.QuerySM{MessageID: reference, Source: source})
	if err != nil {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", err)
	}
	state, ok := body.(*pdu.QuerySMResp)
	if !ok || state.MessageState.Word() == "" {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", errUnreadable)
	}
	return c.cfg.queried(reference, state, time.Now()), nil
}

// errUnreadable says that the SMSC answered with success, but the body cannot be read.
var errUnreadable = errors.New("the answer cannot be read")

// queried reads the answer to query_sm like a receipt.
func (c *Config) queried(reference string, q *pdu.QuerySMResp, now time.Time) provider.Receipt {
	word, failure := q.MessageState.Word(), ""
	if q.ErrorCode != 0 {
		failure = fmt.Sprintf("%03d", q.ErrorCode)
	}
	r := provider.Receipt{Reference: reference, Code: receiptCode(word, failure), At: now}
	r.State, r.Cause = c.meaning(&pdu.Message{}, word, r.Code)
	return r
}

// Cancel cancels a message that has not been delivered, with cancel_sm (section 4.9). Nil means
// that the SMSC cancelled it. A refusal is a *StatusError, after which the message may still be
// delivered.
func (c *Client) Cancel(ctx context.Context, h Handle) error {
	if !c.cfg.Cancel {
		return fmt.Errorf("cancel_sm: %w", ErrNotOffered)
	}
	source, err := c.cfg.sourceTo(h.From, h.To)
	if err != nil {
		return fmt.Errorf("cancel_sm: %w", err)
	}
	dest, err := c.cfg.destination(h.To)
	if err != nil {
		return fmt.Errorf("cancel_sm: %w", err)
	}
	_, err = ask(ctx, c.pool.any(),
		&pdu.CancelSM{
			ServiceType: c.cfg.ServiceType, MessageID: h.Reference, Source: source, Dest: dest,
		})
	if err != nil {
		return fmt.Errorf("cancel_sm: %w", err)
	}
	return nil
}

// ask sends a request on a bind, nil when none is up, and returns the body of a successful answer.
func ask(ctx context.Context, s *session, request pdu.Body) (pdu.Body, error) {
	if s == nil {
		return nil, errNoBind
	}
	r, err := s.ask(ctx, request)
	if err != nil {
		return nil, err
	}
	if r.status != pdu.StatusOK {
		return nil, &StatusError{r.status}
	}
	return r.body, nil
}

// response is the answer to a request other than submit_sm.
type response struct {
	status pdu.Status
	body   pdu.Body // nil for generic_nack and for what cannot be read
}

var (
	errNotAnswered = errors.New("no answer")
	errNoBind      = errors.New("no bind is up")
	errNoSlot      = errors.New("no window has room")
)

// ask sends a request outside the window and waits for its answer, at most for the response
// timeout.
func (s *session) ask(ctx context.Context, body pdu.Body) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ResponseTimeout)
	defer cancel()
	answers := make(chan response, 1)
	sequence, err := s.request(body, answers)
	if err != nil {
		return response{}, err
	}
	select {
	case r, ok := <-answers:
		if !ok {
			return r, errNotAnswered
		}
		return r, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.requests, sequence)
		s.mu.Unlock()
		return response{}, errNotAnswered
	}
}

// request queues a request. Its answer goes to a channel of capacity 1, which is closed if none
// will come.
func (s *session) request(body pdu.Body, answers chan<- response) (sequence uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.leaving {
		return 0, errNoBind
	}
	sequence = s.nextSequence()
	frame, err := pdu.Append(nil, pdu.StatusOK, sequence, body)
	if err != nil {
		return 0, err
	}
	if len(s.control)+len(frame) > maxControl {
		return 0, errStalled
	}
	s.requests[sequence] = answers
	s.control = append(s.control, frame...)
	s.wakeWriter()
	return sequence, nil
}

// answered delivers the answer to a request. Answers to unknown requests are ignored.
func (s *session) answered(h pdu.Header, frame []byte) {
	s.mu.Lock()
	answers := s.requests[h.Sequence]
	delete(s.requests, h.Sequence)
	s.mu.Unlock()
	if answers == nil {
		return
	}
	r := response{status: h.Status}
	if frame != nil {
		_, r.body, _ = pdu.Decode(frame) // an unreadable body leaves the status alone
	}
	answers <- r
}

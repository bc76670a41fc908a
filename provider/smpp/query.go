package smpp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// query asks the SMSC for the state of a message, with query_sm (section 4.8). It needs a free slot
// of a window, and holds it until the answer comes, because SMSCs count all unanswered requests.
// Without one the error is errNoSlot. source is the address as it was sent, which the SMSC
// compares. The answer is a receipt, Pending while nothing is final. A refusal is a *StatusError.
// No error holds a phone number.
//
// SMPP can only name a message by the SMSC's message_id, so a submission without an answer cannot
// be looked up, and Client is not a provider.Finder.
func (c *Client) query(
	ctx context.Context, reference string, source pdu.Address,
) (provider.Receipt, error) {
	s, err := c.pool.takeSpare()
	if err != nil {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", err)
	}
	defer c.pool.release(s, 1)
	answer, err := s.ask(ctx, &pdu.QuerySM{MessageID: reference, Source: source})
	if err == nil && answer.status != pdu.StatusOK {
		err = &StatusError{answer.status}
	}
	if err != nil {
		return provider.Receipt{}, fmt.Errorf("query_sm: %w", err)
	}
	state, ok := answer.body.(*pdu.QuerySMResp)
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

// ask sends a request and waits for its answer, at most for the response timeout. The caller holds
// a slot of the window.
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

package smpp

import (
	"context"
	"errors"

	"dispatcher/provider/smpp/pdu"
)

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

// ask sends a request past the window and waits for its answer, for the response timeout at most.
func (s *session) ask(ctx context.Context, body pdu.Body) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ResponseTimeout)
	defer cancel()
	answers := make(chan response, 1)
	sequence, err := s.request(body, answers)
	if err != nil {
		return response{}, err
	}
	select {
	case a, ok := <-answers:
		if !ok {
			return a, errNotAnswered
		}
		return a, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.requests, sequence)
		s.mu.Unlock()
		return response{}, errNotAnswered
	}
}

// request queues a request whose answer goes to a channel of capacity 1, which is closed when none will come.
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

// answered hands the answer to a request over. One that nobody waits for is ignored.
func (s *session) answered(h pdu.Header, frame []byte) {
	s.mu.Lock()
	answers := s.requests[h.Sequence]
	delete(s.requests, h.Sequence)
	s.mu.Unlock()
	if answers == nil {
		return
	}
	a := response{status: h.Status}
	if frame != nil {
		_, a.body, _ = pdu.Decode(frame) // one that cannot be read says no more than its status
	}
	answers <- a
}

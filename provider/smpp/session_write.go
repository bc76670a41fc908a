package smpp

import (
	"runtime"
	"slices"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// Bounds of the writer, in octets.
const (
	// writeSize is how many octets are gathered for one write.
	writeSize = 64 << 10
	// maxControl bounds the queued answers to a peer that sends requests and does not read.
	maxControl = 256 << 10
)

// span says where in the octets of a write a submit_sm starts.
type span struct {
	sequence uint32
	start    int
}

// writeLoop sends what is queued in as few writes as possible. It returns when a write fails, when
// the session has stopped, or when the peer has unbound and nothing is pending.
func (s *session) writeLoop() error {
	buf := make([]byte, 0, writeSize)
	spans := make([]span, 0, s.cfg.Window)
	for {
		select {
		case <-s.wake:
		case <-s.stopped:
			return s.writeControl(buf)
		}
		// Senders that are ready to run get to queue first: one syscall for all of them.
		runtime.Gosched()
		for {
			var left bool
			if buf, spans, left = s.take(buf[:0], spans[:0]); left {
				return errPeerUnbound
			}
			if len(buf) == 0 {
				break
			}
			n, err := s.conn.Write(buf)
			if err != nil {
				s.writeFailed(spans, n)
				return err
			}
		}
	}
}

// take moves what is to be written into buf: first the PDUs that bypass the window, then queued
// submits that are not too late. Each submit is registered under its sequence_number before an
// octet of it can leave. left reports that the peer has unbound and nothing is pending.
func (s *session) take(buf []byte, spans []span) (_ []byte, _ []span, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.finishLate(s.removeLate(now)) // slots are freed under mu, which is locked before pool.mu
	buf = append(buf, s.control...)
	s.control = s.control[:0]
	if len(s.queue) == 0 && len(buf) == 0 {
		s.writing = time.Time{}
		return buf, spans, s.leaving && len(s.pending) == 0
	}
	deadline := now.Add(s.cfg.SubmitTimeout)
	taken := 0
	for _, c := range s.queue {
		if len(buf) > 0 && len(buf)+len(c.frame) > writeSize {
			break
		}
		s.submits++
		c.sequence, c.order, c.deadline, c.first.started = s.nextSequence(), s.submits, deadline,
			true
		pdu.SetSequence(c.frame, c.sequence)
		c.renewValidity(s.cfg, now)
		s.pending[c.sequence] = c
		spans = append(spans, span{c.sequence, len(buf)})
		buf = append(buf, c.frame...)
		taken++
	}
	s.queue = slices.Delete(s.queue, 0, taken)
	s.writing = now
	for _, c := range s.queue { // they wait for the end of this write
		s.watch(c)
	}
	return buf, spans, false
}

// writeFailed ends submits of a write that sent only n octets: those that start after them were not
// sent. Under TLS n is not exact, so all of them stay Unknown.
func (s *session) writeFailed(spans []span, n int) {
	if !s.exact {
		return
	}
	var never []*call
	s.mu.Lock()
	for _, at := range spans {
		if c := s.pending[at.sequence]; c != nil && at.start >= n {
			s.forget(at.sequence)
			never = append(never, c)
		}
	}
	s.mu.Unlock()
	for _, c := range never {
		c.end(unsent, whyLost)
		s.finish(c)
	}
}

// writeControl writes only what bypasses the window; the connection has a deadline or is closed.
func (s *session) writeControl(buf []byte) error {
	s.mu.Lock()
	s.closed = true
	buf = append(buf[:0], s.control...)
	s.mu.Unlock()
	if len(buf) == 0 {
		return nil
	}
	_, err := s.conn.Write(buf)
	return err
}

// reply queues a PDU that bypasses the window; queued PDUs leave together. It fails when the peer
// does not read its answers. After the end of the session it does nothing.
func (s *session) reply(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if len(s.control)+len(frame) > maxControl {
		return errFlood
	}
	s.control = append(s.control, frame...)
	s.wakeWriter()
	return nil
}

// replyEmpty queues a PDU without body.
func (s *session) replyEmpty(command pdu.Command, status pdu.Status, sequence uint32) error {
	var frame [pdu.HeaderSize]byte
	return s.reply(pdu.AppendEmpty(frame[:0], command, status, sequence))
}

package smpp

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// flushGrace is how long the working direction of a broken connection has to finish: answers that
// have arrived are read, and a last generic_nack is written.
const flushGrace = time.Second

// Reasons for which a session ends.
var (
	errEnquireLink = errors.New("enquire_link was not answered")
	errStalled     = errors.New("peer does not read")
	errPeerUnbound = errors.New("peer sent unbind")
	errSlowPDU     = errors.New("peer began a PDU and did not finish it")
	errFlood       = errors.New("peer sends requests faster than it reads answers")
	errUnbound     = errors.New("unbound")
)

// session is one bound connection. run owns it and its goroutines: reader, writer, timers, and
// delivery of inbound PDUs.
//
// A submit_sm is in queue (not one octet has left), then in pending (the writer has taken it, so
// octets may have left), then in neither (its outcome is known). Only take, under mu and before the
// write, moves it from queue to pending, and decides there whether a message that has not started
// is too late.
type session struct {
	cfg  *Config
	pool *pool
	conn net.Conn
	in   *pduReader
	// exact says that conn.Write returns the number of octets that left. Under TLS it does not.
	exact bool
	slots slots

	wake       chan struct{} // capacity 1: the writer has something to do
	health     chan struct{} // capacity 1: the pool has changed slots.unhealthy
	onHealth   func(unhealthy bool)
	stopped    chan struct{} // closed when the session ends
	unbindResp chan struct{} // closed by the reader on unbind_resp
	flooded    chan struct{} // capacity 1: an answer had no room in control
	deliveries chan delivery // reader to deliverer
	unanswered atomic.Int32  // receipts whose OnReceipt has not answered
	resp       pdu.MessageResp

	mu       sync.Mutex
	sequence uint32
	submits  uint64 // that were taken for writing
	queue    []*call
	pending  map[uint32]*call
	givenUp  givenUp // of calls that left pending without an answer
	// requests other than submit_sm, by sequence_number; nil once the session has ended.
	requests map[uint32]chan<- response
	control  []byte    // whole PDUs that bypass the window
	writing  time.Time // since when the writer is in Write; zero when it is not
	enquiry  uint32    // sequence_number of the unanswered enquire_link; zero for none
	leaving  bool      // the peer sent unbind: nothing new, end when pending is empty
	closed   bool      // nothing new
	// alarm runs expireQueued at alarmAt. It is set while calls are queued and the writer is writing.
	alarm   *time.Timer
	alarmAt time.Time // zero when the alarm is not set
	unbound bool      // unbindResp is closed
}

func newSession(cfg *Config, p *pool, in *pduReader) *session {
	return &session{
		cfg: cfg, pool: p, conn: in.conn, in: in, exact: cfg.TLS == nil, sequence: bindSequence,
		wake: make(chan struct{}, 1), health: make(chan struct{}, 1), onHealth: func(bool) {},
		stopped: make(chan struct{}), unbindResp: make(chan struct{}),
		flooded: make(chan struct{}, 1), deliveries: make(chan delivery, deliveryQueue),
		pending:  make(map[uint32]*call, cfg.Window),
		requests: make(map[uint32]chan<- response),
	}
}

// run serves the connection until it breaks, leave is closed or life ends, and returns why. When
// leave is closed it sends unbind and waits for the answer; when life ends it cuts the connection.
// After run every submit_sm has its outcome and every goroutine has ended.
func (s *session) run(life context.Context, leave <-chan struct{}, submits bool) error {
	if submits {
		s.pool.add(s)
	}
	ctx, cancel := context.WithCancel(life)
	reading, writing, rest := spawn(s.readLoop), spawn(s.writeLoop), &sync.WaitGroup{}
	rest.Go(func() { s.deliverLoop(ctx) })
	keeping := spawn(s.keepLoop)

	var err error
	select {
	case <-reading.done:
		err = reading.err
	case <-writing.done:
		err = writing.err
	case <-keeping.done:
		err = keeping.err
	case <-s.flooded:
		err = errFlood
	case <-leave:
		s.unbind(life, reading, writing)
		err = errUnbound
	case <-life.Done():
		err = errUnbound
	}
	s.pool.remove(s)
	cancel()
	s.stopLoops(life, reading, writing)
	<-keeping.done
	rest.Wait()
	s.finishAll()
	return err
}

// stopLoops ends the reader and the writer. If one of them failed, the other has flushGrace to
// finish.
func (s *session) stopLoops(life context.Context, reading, writing *task) {
	grace := time.Now().Add(flushGrace)
	switch {
	case life.Err() != nil:
		_ = s.conn.Close()
	case reading.ended():
		_ = s.conn.SetWriteDeadline(grace) // a last generic_nack may leave
	case writing.ended() && !errors.Is(writing.err, errPeerUnbound):
		_ = s.conn.SetReadDeadline(grace) // answers that have arrived count
		<-reading.done
	default:
		_ = s.conn.Close()
	}
	close(s.stopped)
	<-writing.done
	_ = s.conn.Close()
	<-reading.done
}

// task is a goroutine whose end can be waited for.
type task struct {
	done chan struct{}
	err  error // valid once done is closed
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func spawn(f func() error) *task {
	t := &task{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.err = f()
	}()
	return t
}

// unbind sends unbind and waits for unbind_resp, at most for the response timeout.
func (s *session) unbind(life context.Context, reading, writing *task) {
	s.mu.Lock()
	s.control = pdu.AppendEmpty(s.control, pdu.CommandUnbind, pdu.StatusOK, s.nextSequence())
	s.mu.Unlock()
	s.wakeWriter()
	timeout := time.NewTimer(s.cfg.ResponseTimeout)
	defer timeout.Stop()
	select {
	case <-s.unbindResp:
	case <-reading.done:
	case <-writing.done:
	case <-timeout.C:
	case <-life.Done():
	}
}

// submit queues calls that leave together; each holds a slot of s. If the session takes no more it
// returns false, and the caller keeps the calls. From latest on none of them leaves unless one
// already has; a zero latest sets no bound.
func (s *session) submit(latest time.Time, calls ...*call) bool {
	s.mu.Lock()
	if s.closed || s.leaving {
		s.mu.Unlock()
		s.pool.release(s, len(calls))
		return false
	}
	for _, c := range calls {
		c.first = calls[0]
	}
	calls[0].latest = latest
	s.queue = append(s.queue, calls...)
	if !s.writing.IsZero() {
		for _, c := range calls {
			s.watch(c)
		}
	}
	s.mu.Unlock()
	s.wakeWriter()
	return true
}

// wait returns when c has its outcome; it takes the token.
func (s *session) wait(ctx context.Context, c *call) {
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c, abandonReason(ctx))
		<-c.done
	}
}

// watch sets the alarm for the time from which a queued call may not leave any more, unless it is
// set for an earlier one. Without the alarm, calls would wait for the writer, which checks the
// queue between two writes, so not while the peer does not read. mu is held.
func (s *session) watch(c *call) {
	until := c.leavesUntil()
	if until.IsZero() || !s.alarmAt.IsZero() && !until.Before(s.alarmAt) {
		return
	}
	s.alarmAt = until
	if s.alarm == nil {
		s.alarm = time.AfterFunc(time.Until(until), func() { s.expireQueued(time.Now()) })
		return
	}
	s.alarm.Reset(time.Until(until))
}

// expireQueued ends queued calls that may not leave any more, and sets the alarm for the others.
func (s *session) expireQueued(now time.Time) {
	s.mu.Lock()
	s.alarmAt = time.Time{}
	late := s.removeLate(now)
	for _, c := range s.queue {
		s.watch(c)
	}
	s.mu.Unlock()
	s.finishLate(late)
}

// removeLate takes calls that may not leave any more out of the queue; mu is held.
func (s *session) removeLate(now time.Time) (late []*call) {
	if !slices.ContainsFunc(s.queue, func(c *call) bool { return c.tooLate(now) }) {
		return nil
	}
	s.queue = slices.DeleteFunc(s.queue, func(c *call) bool {
		expired := c.tooLate(now)
		if expired {
			late = append(late, c)
		}
		return expired
	})
	return late
}

func (s *session) finishLate(late []*call) {
	now := time.Now()
	for _, c := range late {
		c.end(unsent, c.late(whyLate, now))
		s.finish(c)
	}
}

// abandonReason is why a sender gives up a written submit. A passed deadline is a timeout like the
// session's own; a cancellation does not count against the peer.
func abandonReason(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return whyTimeout
	}
	return whyCancelled
}

// abandon ends c because its sender stopped waiting. Afterwards the token is in c.done.
func (s *session) abandon(c *call, why string) {
	s.mu.Lock()
	if i := slices.Index(s.queue, c); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.mu.Unlock()
		c.end(unsent, whyCancelled)
		s.finish(c)
		return
	}
	wasPending := s.pending[c.sequence] == c
	if wasPending {
		s.giveUp(c)
		written := c.deadline.Add(-s.cfg.SubmitTimeout)
		c.abandonedEarly = time.Since(written) < s.cfg.silenceThreshold()
	}
	s.mu.Unlock()
	if wasPending {
		c.end(noAnswer, why)
		s.finish(c)
	}
}

// finish returns c to its sender. Its outcome is set, and it is in neither queue nor pending.
func (s *session) finish(c *call) {
	word, order := s.cfg.signalOf(c), c.order
	c.done <- struct{}{}
	s.pool.settle(s, 1, word, order)
}

// forget removes a call from pending; mu is held.
func (s *session) forget(sequence uint32) {
	delete(s.pending, sequence)
	if s.leaving && len(s.pending) == 0 {
		s.wakeWriter() // the writer ends the session
	}
}

// finishAll ends all remaining calls once no goroutine of the session runs any more.
func (s *session) finishAll() {
	s.mu.Lock()
	queue, pending := s.queue, s.pending
	s.queue, s.pending, s.closed = nil, nil, true
	if s.alarm != nil {
		s.alarm.Stop()
	}
	asked := s.requests
	s.requests = nil
	s.mu.Unlock()
	for _, reply := range asked {
		close(reply)
	}
	for _, c := range queue {
		c.end(unsent, whyLost)
		s.finish(c)
	}
	for _, c := range pending {
		c.end(noAnswer, whyLost)
		s.finish(c)
	}
}

// wakeWriter wakes the writer.
func (s *session) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// nextSequence is called with mu held.
func (s *session) nextSequence() uint32 {
	s.sequence = pdu.NextSequence(s.sequence)
	return s.sequence
}

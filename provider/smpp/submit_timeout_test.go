package smpp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// shortTimeout is the DISPATCHER_SEND_TIMEOUT of these tests. Submits have four fifths of it, other
// requests their default.
const shortTimeout = time.Second

// slowPeer is an SMSC that delays its answers, by a different time for each kind of request. It
// answers no other request.
type slowPeer struct {
	takes   map[pdu.Command]time.Duration
	dribble time.Duration // between two octets of an answer
	stall   time.Duration // how long it reads nothing, once the bind has been up for stallAt
	stallAt time.Duration

	dials atomic.Int32
	conns sync.WaitGroup
}

// dial is Config.Dial.
func (p *slowPeer) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.dials.Add(1)
	p.conns.Go(func() { p.serve(theirs) })
	return ours, nil
}

// serve reads until the connection ends.
func (p *slowPeer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader, began := pdu.NewReader(conn), time.Now()
	for {
		h, _, err := reader.Next()
		if err != nil {
			return
		}
		if takes, ok := p.takes[h.Command]; ok {
			p.conns.Go(func() {
				time.Sleep(takes)
				p.answer(conn, h)
			})
		}
		if p.stall > 0 && h.Command == pdu.CommandBindTransceiver {
			<-time.After(time.Until(began.Add(p.stallAt + p.stall)))
		}
	}
}

// answer ignores errors: the client may be gone.
func (p *slowPeer) answer(conn net.Conn, h pdu.Header) {
	frame := pdu.AppendEmpty(nil, h.Command.Response(), pdu.StatusOK, h.Sequence)
	if h.Command == pdu.CommandQuerySM {
		frame, _ = pdu.Append(nil, pdu.StatusOK, h.Sequence,
			&pdu.QuerySMResp{MessageID: "7F", MessageState: pdu.ParseState("DELIVRD")})
	}
	if p.dribble == 0 {
		_, _ = conn.Write(frame)
		return
	}
	for i := range frame {
		<-time.After(p.dribble)
		_, _ = conn.Write(frame[i : i+1])
	}
}

// startWithShortTimeout returns a client of that peer whose senders wait for a second.
func startWithShortTimeout(t *testing.T, p *slowPeer) *Client {
	t.Helper()
	c, err := New(Config{
		Addresses: []string{"slow:1"}, SystemID: "acme", Dial: p.dial, SendTimeout: shortTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAShortSendTimeoutLeavesEverythingButSubmitsItsTime: the bind to an SMSC that takes two
// seconds for other requests stays up.
func TestAShortSendTimeoutLeavesEverythingButSubmitsItsTime(t *testing.T) {
	t.Parallel()
	const slow = 2 * time.Second
	at := func(command pdu.Command) map[pdu.Command]time.Duration {
		takes := map[pdu.Command]time.Duration{
			pdu.CommandBindTransceiver: 0, pdu.CommandEnquireLink: 0, pdu.CommandQuerySM: 0,
			pdu.CommandUnbind: 0,
		}
		takes[command] = slow
		return takes
	}
	for name, p := range map[string]*slowPeer{
		"bind":                    {takes: at(pdu.CommandBindTransceiver)},
		"enquire_link":            {takes: at(pdu.CommandEnquireLink)},
		"query_sm":                {takes: at(pdu.CommandQuerySM)},
		"unbind":                  {takes: at(pdu.CommandUnbind)},
		"every answer, in pieces": {takes: at(0), dribble: slow / pdu.HeaderSize},
		"to read":                 {takes: at(0), stallAt: DefaultEnquireLink, stall: slow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := startWithShortTimeout(t, p)
				// inside the bubble, between two enquire_links
				<-time.After(5*time.Minute + 10*time.Second)
				if ok, why := c.Ready(); !ok || p.dials.Load() != 1 {
					t.Errorf("ready %v %q after %d dials", ok, why, p.dials.Load())
				}
				if r, err := c.query(t.Context(), "7F", pdu.Address{}); err != nil ||
					r.State != provider.Delivered {
					t.Errorf("query_sm: %+v, %v", r, err)
				}
				began := time.Now()
				closeIn(t, c)
				if took := time.Since(began); name == "unbind" && took != slow {
					t.Errorf("waited %v for unbind_resp, want %v", took, slow)
				}
				p.conns.Wait()
			})
		})
	}
}

// TestASubmitTimesOutAtItsOwnTimeout however long the bind was up and idle before.
func TestASubmitTimesOutAtItsOwnTimeout(t *testing.T) {
	t.Parallel()
	for _, idle := range []time.Duration{0, 2 * time.Second, time.Minute + time.Second/3} {
		t.Run(idle.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, c := startPiped(t, smpptest.Behaviour{DropEvery: 1},
					Config{SendTimeout: shortTimeout})
				<-time.After(idle)
				began := time.Now()
				r := send(c, submission(1))
				if took := time.Since(began); r.Outcome != provider.Unknown ||
					r.Code != "timeout" || took != shortTimeout*4/5 {
					t.Errorf("%v (%s) after %v", r.Outcome, r.Code, took)
				}
				closeIn(t, c)
				srv.Close()
			})
		})
	}
}

// TestAnUnhealthyBindIsProbedAtTheResponseTimeout: a short DISPATCHER_SEND_TIMEOUT does not make it
// lose more messages.
func TestAnUnhealthyBindIsProbedAtTheResponseTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failing := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{DropEvery: 1}})
		healthy := smpptest.New(smpptest.Config{})
		c := startPair(t, Config{SendTimeout: shortTimeout, Window: 8}, failing, healthy)
		sendFor(c, 16, time.Minute, shortTimeout)
		before := failing.Stats().Submits
		sendFor(c, 16, 10*time.Minute, shortTimeout)
		// The pause begins when the previous message has timed out.
		pace := DefaultResponseTimeout + shortTimeout*4/5
		if n, want := int(failing.Stats().Submits-before),
			int(10*time.Minute/pace); c.unhealthyBinds() != 1 ||
			n < want-1 || n > want+1 {
			t.Errorf("%d unhealthy, tried %d times in ten minutes, want %d", c.unhealthyBinds(), n,
				want)
		}
		closeIn(t, c)
		failing.Close()
		healthy.Close()
	})
}

// TestNothingWaitsForAWindowPastItsDeadline: the only slot is in use and is released after the
// deadline.
func TestNothingWaitsForAWindowPastItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: 5 * time.Second}, Config{Window: 1})
		first := sendAsync(c, submission(1))
		synctest.Wait()
		s, began := submission(2), time.Now()
		s.Deadline, s.Latest = began.Add(time.Second), began.Add(2*time.Second)
		if r := send(c, s); r.Outcome != provider.Refused || r.Code != provider.DeadlinePassed ||
			time.Since(began) != time.Second {
			t.Errorf("%v (%s) after %s", r.Outcome, r.Code, time.Since(began))
		}
		s.Deadline, s.Latest = time.Now().Add(2*time.Second), time.Now().Add(time.Second)
		if r := send(c, s); r.Code != provider.Late {
			t.Errorf("Latest passed first, and the code is %s", r.Code)
		}
		if r := <-first; r.Outcome != provider.Accepted {
			t.Errorf("the previous message: %v (%s)", r.Outcome, r.Code)
		}
		closeIn(t, c)
		srv.Close()
		if n := len(srv.Submits()); n != 1 {
			t.Errorf("the SMSC read %d submits", n)
		}
	})
}

// TestTheRestOfAMessageDoesNotLeavePastItsDeadline: five parts, a window of two, and an SMSC that
// takes a second for each answer. Parts accepted before the deadline count.
func TestTheRestOfAMessageDoesNotLeavePastItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: time.Second}, Config{Window: 2})
		began := time.Now()
		s := submission(1)
		s.Text, s.Reference, s.Deadline = longText(5), 7, began.Add(1500*time.Millisecond)
		r := send(c, s)
		if r.Outcome != provider.Refused || r.Code != provider.DeadlinePassed {
			t.Errorf("%v (%s)", r.Outcome, r.Code)
		}
		var codes []string
		for _, part := range r.Parts {
			codes = append(codes, part.Outcome.String()+" "+part.Code)
		}
		want := []string{
			"accepted 0x00000000", "accepted 0x00000000", "accepted 0x00000000", "refused expired",
			"refused expired",
		}
		if diff := cmp.Diff(want, codes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int{"0s, messages: 1": 2, "1s, messages: 1": 1},
			arrivals(srv, began)); diff != "" {
			t.Error(diff)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestTheDeadlineIsCheckedRightBeforeTheWrite, also for a message that has started: its latest time
// no longer applies, but its deadline does.
func TestTheDeadlineIsCheckedRightBeforeTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queueing(t)
		calls := s.queued(t, time.Now().Add(time.Hour), 3, writeSize/2)
		for _, c := range calls {
			c.expires = time.Now().Add(time.Second)
		}
		if buf, _, _ := s.take(nil, nil); len(buf) != writeSize {
			t.Fatalf("%d octets are written", len(buf))
		}
		<-time.After(time.Second)
		if buf, spans, _ := s.take(nil, nil); len(buf) != 0 || len(spans) != 0 ||
			len(s.queue) != 0 {
			t.Errorf("%d octets are written, %d calls stay", len(buf), len(s.queue))
		}
		if <-calls[2].done; calls[2].outcome != unsent || calls[2].why != provider.DeadlinePassed {
			t.Errorf("the rest: %v %q", calls[2].outcome, calls[2].why)
		}
	})
}

// TestASpanOfValidityIsCountedFromTheWrite: the message waits for three of its ten seconds, and
// this machine's clock differs from the database's by an hour.
func TestASpanOfValidityIsCountedFromTheWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"relative": {Config{ValidityFormat: Relative}, "000000000007000R"},
		"relative, bounded": {
			Config{ValidityFormat: Relative, LongestValidity: 5 * time.Second}, "000000000005000R",
		},
		"absolute": {Config{}, ""}, // a time of the database's clock
		"with a service": {
			Config{ValidityFormat: Relative, ServiceType: "CMT"}, "000000000007000R",
		},
		"with a sender type": {Config{ValidityFormat: Relative, From: "ACME"}, "000000000007000R"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.cfg.Window = 1
				srv, c := startPiped(t, smpptest.Behaviour{Latency: 3 * time.Second}, tc.cfg)
				first := sendAsync(c, submission(1))
				synctest.Wait()
				s := submission(2)
				s.Deadline = time.Now().Add(10 * time.Second)
				s.Validity = s.Deadline.Add(time.Hour)
				if r := send(c, s); r.Outcome != provider.Accepted {
					t.Fatalf("%v (%s)", r.Outcome, r.Code)
				}
				<-first
				closeIn(t, c)
				srv.Close()
				want := tc.want
				if want == "" {
					want = pdu.FormatTime(s.Validity)
				}
				if got := srv.Submits()[1].Validity; got != want {
					t.Errorf("validity_period %q, want %q", got, want)
				}
			})
		})
	}
}

package smpp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// sendLong sends n messages with that many parts at once. It returns the results and how long each
// took.
func sendLong(
	c *Client, n, parts int, latest time.Time,
) (results []provider.Result, took []time.Duration) {
	results, took = make([]provider.Result, n), make([]time.Duration, n)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s := submission(i)
			s.Text, s.Reference, s.Latest = longText(parts), uint16(i+1), latest
			results[i] = send(c, s)
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	return results, took
}

// arrivals counts the submits in a log by their time of arrival, and their messages.
func arrivals(srv *smpptest.Server, began time.Time) map[string]int {
	parts, messages := map[string]int{}, map[string]map[string]bool{}
	for _, s := range srv.Submits() {
		at := s.At.Sub(began).String()
		if messages[at] == nil {
			messages[at] = map[string]bool{}
		}
		parts[at]++
		messages[at][s.To] = true
	}
	out := map[string]int{}
	for at, n := range parts {
		out[fmt.Sprintf("%s, messages: %d", at, len(messages[at]))] = n
	}
	return out
}

// TestNothingLeavesAfterItsLatestWhenAWindowFrees: ten messages of four parts, a window of ten, and
// an SMSC that answers after 2.5 s. Two messages are sent. The others are refused when they are too
// late, and nothing is sent when the answers arrive.
func TestNothingLeavesAfterItsLatestWhenAWindowFrees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bound = 100 * time.Millisecond
		srv, c := startPiped(t, smpptest.Behaviour{Latency: 2500 * time.Millisecond},
			Config{Window: 10})
		began := time.Now()
		results, took := sendLong(c, 10, 4, began.Add(bound))
		late := 0
		for i, r := range results {
			switch {
			case r.Outcome == provider.Accepted:
			case r.Outcome == provider.Refused && r.Code == provider.Late && took[i] == bound:
				late++
			default:
				t.Errorf("message %d: %v (%s) after %v", i, r.Outcome, r.Code, took[i])
			}
		}
		if late != 8 {
			t.Errorf("%d messages were late, want 8", late)
		}
		<-time.After(time.Minute) // inside the bubble
		if diff := cmp.Diff(map[string]int{"0s, messages: 2": 8},
			arrivals(srv, began)); diff != "" {
			t.Error(diff)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestAMessageLeavesWithAllItsPartsOrWaits is the same without a latest time: no message starts in
// one second and ends in another.
func TestAMessageLeavesWithAllItsPartsOrWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: 2500 * time.Millisecond},
			Config{Window: 10})
		began := time.Now()
		results, _ := sendLong(c, 7, 4, time.Time{})
		if counts := tally(results); counts[provider.Accepted] != 7 {
			t.Errorf("outcomes %v", counts)
		}
		want := map[string]int{
			"0s, messages: 2": 8, "2.5s, messages: 2": 8, "5s, messages: 2": 8,
			"7.5s, messages: 1": 4,
		}
		if diff := cmp.Diff(want, arrivals(srv, began)); diff != "" {
			t.Error(diff)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestPartsBeyondTheWindowFollowOneByOne: parts that do not fit into the window are sent after the
// second whose limit counted them, so they are sent one at a time. Later messages find slots beside
// them.
func TestPartsBeyondTheWindowFollowOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: time.Second}, Config{Window: 10})
		began := time.Now()
		long := make(chan provider.Result, 1)
		go func() {
			s := submission(100)
			s.Text, s.Reference, s.Latest = longText(13), 7, began.Add(10*time.Millisecond)
			long <- send(c, s)
		}()
		synctest.Wait()
		results, _ := sendLong(c, 2, 4, time.Time{})
		if counts := tally(append(results, <-long)); counts[provider.Accepted] != 3 {
			t.Errorf("outcomes %v", counts)
		}
		want := map[string]int{
			"0s, messages: 1": 10, "1s, messages: 3": 9, "2s, messages: 1": 1, "3s, messages: 1": 1,
		}
		if diff := cmp.Diff(want, arrivals(srv, began)); diff != "" {
			t.Error(diff)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestNothingLeavesLateForAPeerThatReadsAgain: submits queued behind a blocked write are refused
// when they are too late, long before the connection is closed. They are not written when the peer
// reads again.
func TestNothingLeavesLateForAPeerThatReadsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c, err := New(Config{
			Addresses: []string{"pipe:1"}, SystemID: "acme", EnquireLink: time.Hour,
			Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		peer := newRawPeer(t, theirs)
		peer.bound()
		synctest.Wait()
		blocker := sendAsync(c, submission(100))
		synctest.Wait() // in Write
		const bound = 100 * time.Millisecond
		for parts := 1; parts <= 3; parts++ {
			results, took := sendLong(c, 3, parts, time.Now().Add(bound))
			for i, r := range results {
				if r.Outcome != provider.Refused || r.Code != provider.Late || took[i] != bound {
					t.Errorf("message %d of %d parts: %v (%s) after %v", i, parts, r.Outcome,
						r.Code, took[i])
				}
			}
		}
		after := sendAsync(c, submission(101))
		synctest.Wait()
		for range 2 {
			h := peer.expect(pdu.CommandSubmitSM)
			peer.send(0, h.Sequence,
				&pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "id"})
		}
		for _, done := range []<-chan provider.Result{blocker, after} {
			if r := <-done; r.Outcome != provider.Accepted {
				t.Errorf("%v (%s)", r.Outcome, r.Code)
			}
		}
		if all := c.pool.sessions[0].slots.used; all != 0 {
			t.Errorf("%d slots are still in use", all)
		}
		go answerUnbind(peer)
		closeIn(t, c)
	})
}

// queueing returns a session without goroutines.
func queueing(t *testing.T) *session {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = errors.Join(ours.Close(), theirs.Close()) })
	cfg := Config{}.withDefaults()
	s := newSession(&cfg, newPool(cfg.Window), newPDUReader(ours))
	s.pool.add(s)
	return s
}

// queued queues n calls of size octets.
func (s *session) queued(t *testing.T, latest time.Time, n, size int) []*call {
	t.Helper()
	var pool callPool
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = pool.get()
		calls[i].frame = make([]byte, size)
	}
	if got, why := s.pool.acquire(t.Context(), n, latest); got != s || !s.submit(latest, calls...) {
		t.Fatal("not taken", why)
	}
	return calls
}

// TestLatestIsCheckedRightBeforeTheWrite: no timer fires; the writer checks.
func TestLatestIsCheckedRightBeforeTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queueing(t)
		latest := time.Now().Add(time.Second)
		late := s.queued(t, latest, 3, 100)
		<-time.After(time.Second)
		inTime := s.queued(t, latest.Add(1), 2, 100)
		whenever := s.queued(t, time.Time{}, 1, 100)
		buf, spans, _ := s.take(nil, nil)
		if len(buf) != 300 || len(spans) != 3 || len(s.queue) != 0 {
			t.Errorf("%d octets and %d submits are written, %d stay", len(buf), len(spans),
				len(s.queue))
		}
		for _, c := range late {
			<-c.done
			if c.outcome != unsent || c.why != provider.Late {
				t.Errorf("the late call: %v %q", c.outcome, c.why)
			}
		}
		if s.slots.used != len(inTime)+len(whenever) {
			t.Errorf("%d slots are in use", s.slots.used)
		}
	})
}

// TestAStartedMessageIsFinished: after the first write of a large message, its other parts are sent
// even after the latest time.
func TestAStartedMessageIsFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queueing(t)
		s.queued(t, time.Now().Add(time.Second), 3, writeSize/2)
		if buf, _, _ := s.take(nil, nil); len(buf) != writeSize || len(s.queue) != 1 {
			t.Fatalf("%d octets are written, %d calls stay", len(buf), len(s.queue))
		}
		<-time.After(2 * time.Second)
		s.expireQueued(time.Now())
		if buf, spans, _ := s.take(nil, nil); len(buf) != writeSize/2 || len(spans) != 1 {
			t.Errorf("%d octets of the rest are written", len(buf))
		}
	})
}

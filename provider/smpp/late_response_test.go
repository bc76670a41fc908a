package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// keyed is a submission with a key, as the dispatcher sends it.
func keyed(i int) provider.Submission {
	s := submission(i)
	s.Key = fmt.Sprintf("%032x", i)
	return s
}

// lateAnswers collects the calls of OnLate.
func lateAnswers(cfg *Config) <-chan provider.Receipt {
	content := make(chan provider.Receipt, 100)
	cfg.OnLate = func(r provider.Receipt) { content <- r }
	return content
}

// TestALateAcceptanceProvesThatTheSubmitWasTaken whether the bind or the sender gave up first, and
// for each part of a message.
func TestALateAcceptanceProvesThatTheSubmitWasTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline time.Duration
		parts    int
	}{
		"response timeout": {time.Minute, 1}, "deadline of the sender": {time.Second, 1},
		"three parts": {time.Minute, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{ResponseTimeout: 3 * time.Second}
				content := lateAnswers(&cfg)
				srv, client := startPiped(t, smpptest.Behaviour{Latency: 5 * time.Second}, cfg)
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				s := keyed(7)
				if c.parts > 1 {
					s.Text = longText(c.parts)
				}
				began := time.Now()
				if r := client.Send(ctx, s); r.Outcome != provider.Unknown {
					t.Fatalf("%v (%s)", r.Outcome, r.Code)
				}
				<-time.After(time.Minute) // inside the bubble
				want := map[provider.Receipt]bool{}
				for _, one := range srv.Submits() {
					want[provider.Receipt{
						Reference: one.MessageID, Key: s.Key, State: provider.Pending,
						At: began.Add(5 * time.Second),
					}] = true
				}
				got := map[provider.Receipt]bool{}
				for range len(content) {
					got[<-content] = true
				}
				if diff := cmp.Diff(want, got); diff != "" || len(want) != c.parts {
					t.Error(diff)
				}
				closeIn(t, client)
				srv.Close()
			})
		})
	}
}

// TestOnlyALateAcceptanceIsReported: late refusals, repeated answers, answers to a submit that
// already had one, and answers to other requests are not reported.
func TestOnlyALateAcceptanceIsReported(t *testing.T) {
	t.Parallel()
	cfg := Config{ResponseTimeout: bindTimeout}
	content := lateAnswers(&cfg)
	client, peer := startRaw(t, cfg)
	yes := func(sequence uint32, id string) {
		peer.send(0, sequence, &pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: id})
	}
	var given []<-chan provider.Result
	give := func(i int) uint32 {
		given = append(given, sendAsync(client, keyed(i)))
		return peer.expect(pdu.CommandSubmitSM).Sequence
	}
	refused, nacked, late := give(1), give(2), give(4)
	for _, done := range given {
		if r := <-done; r.Outcome != provider.Unknown {
			t.Fatalf("%v", r.Outcome)
		}
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, pdu.StatusSysErr, refused))
	yes(refused, "after a no")
	peer.write(pdu.AppendEmpty(nil, pdu.CommandGenericNack, pdu.StatusSysErr, nacked))
	done := sendAsync(client, keyed(3))
	sequence := peer.expect(pdu.CommandSubmitSM).Sequence
	yes(sequence, "in time")
	yes(sequence, "in time, twice")
	if r := <-done; r.Outcome != provider.Accepted {
		t.Fatalf("%v", r.Outcome)
	}
	yes(sequence+1000, "to nothing")
	yes(late, "late")
	yes(late, "late, twice")
	if r := next(t, content); r.Reference != "late" || r.Key != keyed(4).Key {
		t.Errorf("content %+v", r)
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 9))
	peer.expect(pdu.CommandEnquireLinkResp)
	if len(content) != 0 {
		t.Errorf("content %+v too", <-content)
	}
	go answerUnbind(peer)
}

func TestTimedOutSubmitsAreBounded(t *testing.T) {
	t.Parallel()
	var g givenUp
	const n = maxGivenUp + 10
	for i := range uint32(n) {
		g.add(i, "key")
	}
	if len(g.keys) != maxGivenUp || len(g.order) != maxGivenUp {
		t.Errorf("%d keys, %d in order", len(g.keys), len(g.order))
	}
	if _, known := g.take(9); known {
		t.Error("the oldest are remembered")
	}
	if key, known := g.take(n - 1); !known || key != "key" {
		t.Error("the latest is not remembered")
	}
}

// brittleConn blocks in one write. The next write sends at most octets octets and fails.
type brittleConn struct {
	net.Conn
	entered chan struct{} // gets a token when a write blocks
	leave   chan struct{} // closed to let that write return

	mu     sync.Mutex
	armed  bool // guarded by mu
	broken bool // guarded by mu
	octets int
}

func (c *brittleConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	armed, broken := c.armed, c.broken
	c.armed, c.broken = false, armed || broken
	c.mu.Unlock()
	switch {
	case armed:
		c.entered <- struct{}{}
		<-c.leave
	case broken:
		n, _ := c.Conn.Write(p[:min(c.octets, len(p))])
		_ = c.Close()
		return n, errors.New("broken")
	}
	return c.Conn.Write(p)
}

func (c *brittleConn) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// TestUnderTLSEverySubmitOfABrokenWriteIsUnknown: the count that a TLS write returns does not show
// how much was sent. Without TLS, submits of which no octet was written are certainly unsent.
func TestUnderTLSEverySubmitOfABrokenWriteIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encrypted bool
		octets    int
		want      provider.Outcome
	}{
		"plain, nothing left":      {false, 0, provider.Refused},
		"encrypted, nothing left":  {true, 0, provider.Unknown},
		"encrypted, half of a PDU": {true, 40, provider.Unknown},
		"encrypted, several PDUs":  {true, 300, provider.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBrokenWrite(t, c.encrypted, c.octets, c.want)
		})
	}
}

func checkBrokenWrite(t *testing.T, encrypted bool, octets int, want provider.Outcome) {
	t.Helper()
	var server, ours *tls.Config
	if encrypted {
		server, ours = tlsPair(t)
	}
	srv := startServer(t, smpptest.Config{TLS: server})
	conns := make(chan *brittleConn, 1)
	cfg := fastConfig(srv.Addr())
	cfg.TLS = ours
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		brittle := &brittleConn{
			Conn: conn, entered: make(chan struct{}, 1), leave: make(chan struct{}), octets: octets,
		}
		select {
		case conns <- brittle:
			return brittle, nil
		default:
			return conn, nil // a later one
		}
	}
	client := startClient(t, cfg)
	conn := <-conns
	conn.arm()
	// blocks the writer, so that the others queue behind it
	first := sendAsync(client, submission(0))
	<-conn.entered
	var results []<-chan provider.Result
	for i := range 5 {
		results = append(results, sendAsync(client, submission(i+1)))
		tier.Eventually(t, "the submit is queued", func() bool { return client.queued() == i+1 })
	}
	close(conn.leave)
	if r := <-first; r.Outcome != provider.Accepted && r.Outcome != provider.Unknown {
		t.Errorf("the written submit: %v (%s)", r.Outcome, r.Code)
	}
	for i, done := range results {
		if r := <-done; r.Outcome != want || r.Code != "connection_lost" {
			t.Errorf("submit %d: %v (%s), want %v", i, r.Outcome, r.Code, want)
		}
	}
}

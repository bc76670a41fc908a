package smpp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

func sendAsync(c *Client, s provider.Submission) <-chan provider.Result {
	done := make(chan provider.Result, 1)
	go func() { done <- send(c, s) }()
	return done
}

func TestAnswersOfEveryLegalFormAreUnderstood(t *testing.T) {
	t.Parallel()
	empty := func(command pdu.Command, status pdu.Status) func(uint32) []byte {
		return func(sequence uint32) []byte {
			return pdu.AppendEmpty(nil, command, status, sequence)
		}
	}
	for name, c := range map[string]struct {
		answer  func(sequence uint32) []byte
		outcome provider.Outcome
		code    string
	}{
		"error without body": {
			empty(pdu.CommandSubmitSMResp, pdu.StatusMsgQFul), provider.Throttled, "0x00000014",
		},
		"success without body": {
			empty(pdu.CommandSubmitSMResp, pdu.StatusOK), provider.Accepted, "0x00000000",
		},
		"generic_nack": {
			empty(pdu.CommandGenericNack, pdu.StatusInvCmdLen), provider.Refused, "0x00000002",
		},
		"generic_nack throttle": {
			empty(pdu.CommandGenericNack, pdu.StatusThrottled), provider.Throttled, "0x00000058",
		},
		"vendor's code": {empty(pdu.CommandSubmitSMResp, 0x410), provider.Refused, "0x00000410"},
		"damaged success": {func(sequence uint32) []byte {
			frame := append(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, 0, sequence),
				"id-1\x00\x01"...)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)))
			return frame
		}, provider.Accepted, "0x00000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, peer := startRaw(t, Config{})
			done := sendAsync(client, submission(1))
			peer.dribble(c.answer(peer.expect(pdu.CommandSubmitSM).Sequence))
			if r := <-done; r.Outcome != c.outcome || r.Code != c.code {
				t.Errorf("result %+v", r)
			}
			go answerUnbind(peer)
		})
	}
}

// answerUnbind answers the unbind of a client that is closing.
func answerUnbind(p *rawPeer) {
	for {
		h, _, err := p.reader.Next()
		if err != nil {
			return
		}
		if h.Command == pdu.CommandUnbind {
			_, _ = p.conn.Write(pdu.AppendEmpty(nil, pdu.CommandUnbindResp, 0, h.Sequence))
		}
	}
}

func TestOddAnswersLeaveASubmitToItsTimeout(t *testing.T) {
	t.Parallel()
	client, peer := startRaw(t, Config{ResponseTimeout: bindTimeout})
	done := sendAsync(client, submission(1))
	sequence := peer.expect(pdu.CommandSubmitSM).Sequence
	// reports success
	peer.write(pdu.AppendEmpty(nil, pdu.CommandGenericNack, pdu.StatusOK, sequence))
	// to no request
	peer.write(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, pdu.StatusOK, sequence+1))
	// another command
	peer.write(pdu.AppendEmpty(nil, pdu.CommandDataSMResp, pdu.StatusOK, sequence))
	// refers to no request
	peer.write(pdu.AppendEmpty(nil, pdu.CommandGenericNack, pdu.StatusInvCmdLen, 0))
	// an unknown response
	peer.write(pdu.AppendEmpty(nil, pdu.Command(0x80000999), pdu.StatusOK, sequence))
	// needs no answer
	peer.send(0, 9, &pdu.AlertNotification{Source: pdu.Address{Addr: "1"}})
	// to no request
	peer.write(pdu.AppendEmpty(nil, pdu.CommandEnquireLinkResp, pdu.StatusOK, pdu.MaxSequence))
	if r := <-done; r.Outcome != provider.Unknown || r.Code != "timeout" {
		t.Errorf("result %+v", r)
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, pdu.StatusOK, sequence)) // too late
	second := sendAsync(client, submission(2))
	next := peer.expect(pdu.CommandSubmitSM).Sequence
	if next == sequence {
		t.Error("a sequence_number was used again")
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, pdu.StatusThrottled, next))
	if r := <-second; r.Outcome != provider.Throttled {
		t.Errorf("the late answer was used for the second message: %+v", r)
	}
	go answerUnbind(peer)
}

func TestRequestsOfThePeerAreAnswered(t *testing.T) {
	t.Parallel()
	_, peer := startRaw(t, Config{})
	ask := func(frame []byte, command pdu.Command, status pdu.Status) {
		t.Helper()
		peer.dribble(frame)
		if h := peer.expect(command); h.Status != status || h.Sequence != 77 {
			t.Errorf("answer %+v, want status %v", h, status)
		}
	}
	whole := func(body pdu.Body) []byte {
		frame, err := pdu.Append(nil, 0, 77, body)
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	ask(pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 77), pdu.CommandEnquireLinkResp,
		pdu.StatusOK)
	ask(pdu.AppendEmpty(nil, 0x00000999, 0, 77), pdu.CommandGenericNack, pdu.StatusInvCmdID)
	ask(whole(&pdu.QuerySM{MessageID: "1"}), pdu.CommandGenericNack, pdu.StatusInvCmdID)
	ask(whole(&pdu.Outbind{SystemID: "raw"}), pdu.CommandGenericNack, pdu.StatusInvBndSts)
	ask(whole(&pdu.DeliverSM{}), pdu.CommandDeliverSMResp, pdu.StatusOK)
	ask(whole(&pdu.DataSM{}), pdu.CommandDataSMResp, pdu.StatusOK)
	ask(pdu.AppendEmpty(nil, pdu.CommandDeliverSM, 0, 77), pdu.CommandDeliverSMResp,
		pdu.StatusReceiverPermanent)
	go answerUnbind(peer)
}

func TestGarbageIsAnsweredOnceAndTheConnectionMadeAnew(t *testing.T) {
	t.Parallel()
	for name, garbage := range map[string][]byte{
		"text":     []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"),
		"too long": {0, 1, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9},
		"too short": {
			0, 0, 0, 15, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, peer := startRaw(t, Config{})
			done := sendAsync(client, submission(1))
			peer.expect(pdu.CommandSubmitSM)
			peer.write(garbage)
			if h := peer.expect(pdu.CommandGenericNack); h.Status != pdu.StatusInvCmdLen {
				t.Errorf("answer %+v", h)
			}
			peer.awaitClosed()
			if r := <-done; r.Outcome != provider.Unknown || r.Code != "connection_lost" {
				t.Errorf("the submit in flight: %+v", r)
			}
			tier.Eventually(t, "the bind is reported lost",
				func() bool {
					return client.States()[0].Phase == Lost ||
						client.States()[0].Phase == Connecting
				})
		})
	}
}

func TestLargestPDUsPassInBothDirections(t *testing.T) {
	t.Parallel()
	got := make(chan int, 1)
	client, peer := startRaw(t, Config{
		LongMessages: MessagePayload,
		OnDeliver: func(_ context.Context, d pdu.DeliverSM) pdu.Status {
			got <- len(d.Payload())
			return pdu.StatusOK
		},
	})
	const most = pdu.MaxSize - 37
	peer.send(0, 5, &pdu.DeliverSM{Message: payload(most)})
	if n := <-got; n != most {
		t.Errorf("received %d octets, want %d", n, most)
	}
	peer.expect(pdu.CommandDeliverSMResp)
	s := submission(1)
	s.Text = longText(425)
	done := sendAsync(client, s)
	h := peer.expect(pdu.CommandSubmitSM)
	if int(h.Length) < len(s.Text) {
		t.Errorf("PDU of %d octets for a text of %d", h.Length, len(s.Text))
	}
	peer.send(0, h.Sequence, &pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "big"})
	if r := <-done; r.Outcome != provider.Accepted || r.Reference != "big" || r.Parts != nil {
		t.Errorf("result %+v", r)
	}
	go answerUnbind(peer)
}

// TestOnlySubmitsOfWhichOctetsLeftAreUnknown lets the peer read a given number of octets of one
// write, which a pipe counts exactly.
func TestOnlySubmitsOfWhichOctetsLeftAreUnknown(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]int{"none": 0, "one": 1, "three": 3} {
		for extra, cut := range map[string]int{"": 0, " and an octet": 1} {
			t.Run(name+extra, func(t *testing.T) {
				t.Parallel()
				checkAmbiguity(t, whole, cut)
			})
		}
	}
}

func checkAmbiguity(t *testing.T, whole, cut int) {
	ours, theirs := net.Pipe()
	dials := make(chan net.Conn, 1)
	dials <- ours
	cfg := fastConfig("pipe:1")
	cfg.ReconnectMin, cfg.ReconnectMax = time.Hour, time.Hour
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return <-dials, nil }
	client := startUnready(t, cfg)
	peer := newRawPeer(t, theirs)
	peer.bound()
	tier.Eventually(t, "the client is ready", func() bool { ok, _ := client.Ready(); return ok })

	// The first submit blocks the writer, so that the others queue behind it.
	blocker := sendAsync(client, submission(0))
	one := make([]byte, 1)
	if _, err := theirs.Read(one); err != nil {
		t.Fatal(err)
	}
	const n = 5
	results := make([]<-chan provider.Result, n)
	for i := range results {
		results[i] = sendAsync(client, submission(i+1))
		tier.Eventually(t, "the submit is queued", func() bool { return client.queued() == i+1 })
	}
	size := readRest(t, theirs, one)
	readExactly(t, theirs, whole*size+cut)
	_ = theirs.Close()
	if r := <-blocker; r.Outcome != provider.Unknown {
		t.Errorf("the submit that was read whole: %+v", r)
	}
	for i := range results {
		want := provider.Refused
		if i < whole || i == whole && cut > 0 {
			want = provider.Unknown
		}
		if r := <-results[i]; r.Outcome != want || r.Code != "connection_lost" {
			t.Errorf("submit %d: %v (%s), want %v", i, r.Outcome, r.Code, want)
		}
	}
}

// readRest reads the rest of the PDU that starts with first and returns its size. The messages of a
// test have the same size.
func readRest(t *testing.T, conn net.Conn, first []byte) int {
	t.Helper()
	head := append(first, readExactly(t, conn, 3)...)
	size := int(binary.BigEndian.Uint32(head))
	readExactly(t, conn, size-4)
	return size
}

func readExactly(t *testing.T, conn net.Conn, n int) []byte {
	t.Helper()
	buf := make([]byte, n)
	for at := 0; at < n; {
		m, err := conn.Read(buf[at:])
		if err != nil {
			t.Fatal(err)
		}
		at += m
	}
	return buf
}

// queued counts the submits that wait for the writer in all sessions.
func (c *Client) queued() int {
	c.pool.mu.Lock()
	sessions := slices.Clone(c.pool.sessions)
	c.pool.mu.Unlock()
	n := 0
	for _, s := range sessions {
		n += s.queueLength()
	}
	return n
}

func (s *session) queueLength() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func TestASenderThatGivesUpInTheQueueSendsNothing(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	cfg := fastConfig("pipe:1")
	cfg.ReconnectMin, cfg.ReconnectMax = time.Hour, time.Hour
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	client := startUnready(t, cfg)
	peer := newRawPeer(t, theirs)
	peer.bound()
	tier.Eventually(t, "the client is ready", func() bool { ok, _ := client.Ready(); return ok })
	blocker := sendAsync(client, submission(0))
	one := make([]byte, 1)
	if _, err := theirs.Read(one); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan provider.Result, 1)
	go func() { done <- client.Send(ctx, submission(1)) }()
	tier.Eventually(t, "the submit is queued", func() bool { return client.queued() == 1 })
	cancel()
	if r := <-done; r.Outcome != provider.Refused || r.Code != "cancelled" {
		t.Errorf("result %+v", r)
	}
	readRest(t, theirs, one)
	third := sendAsync(client, submission(2))
	h := peer.expect(pdu.CommandSubmitSM)
	peer.write(pdu.AppendEmpty(nil, pdu.CommandSubmitSMResp, pdu.StatusInvDstAdr, h.Sequence))
	if r := <-third; r.Outcome != provider.Rejected {
		t.Errorf("the submit after the expired one is not the third: %+v", r)
	}
	_ = theirs.Close()
	if r := <-blocker; r.Outcome != provider.Unknown {
		t.Errorf("first submit %+v", r)
	}
}

func TestAPeerThatDoesNotReadIsDropped(t *testing.T) {
	t.Parallel()
	cfg := Config{
		LongMessages: MessagePayload, ResponseTimeout: bindTimeout, Window: 100,
	}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	lost := make(chan error, 1)
	cfg.OnState = func(s BindState) {
		if s.Phase == Lost {
			lost <- s.Err
		}
	}
	client, peer := startRaw(t, cfg)
	results := make(chan provider.Result, cfg.Window)
	s := submission(1)
	s.Text = longText(400)
	for range cap(results) { // 6 MB, more than the two sockets buffer
		go func() { results <- send(client, s) }()
	}
	counts := map[provider.Outcome]int{}
	for range cap(results) {
		counts[(<-results).Outcome]++
	}
	if counts[provider.Unknown] == 0 || counts[provider.Refused] == 0 || len(counts) != 2 {
		t.Errorf("outcomes %v, want some Unknown and some Refused", counts)
	}
	if err := <-lost; !errors.Is(err, errStalled) {
		t.Errorf("the bind was lost for %v", err)
	}
	// At most the unknown ones have arrived.
	arrived := 0
	for {
		h, _, err := peer.reader.Next()
		if err != nil {
			break
		}
		if h.Command == pdu.CommandSubmitSM {
			arrived++
		}
	}
	if arrived > counts[provider.Unknown] {
		t.Errorf("%d submits arrived, only %d are unknown", arrived, counts[provider.Unknown])
	}
}

func TestHalfOpenPeersAreDroppedAndDialledAgain(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]smpptest.Behaviour{
		"silent":                    {Silent: true},
		"no answer to enquire_link": {IgnoreEnquireLink: true, DropEvery: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t,
				smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{DropEvery: 1}})
			lost := make(chan error, 100)
			cfg := fastConfig(srv.Addr())
			cfg.EnquireLink, cfg.ResponseTimeout = 30*time.Millisecond, 300*time.Millisecond
			cfg.OnState = func(s BindState) {
				if s.Phase == Lost {
					lost <- s.Err
				}
			}
			c := startClient(t, cfg)
			done := sendAsync(c, submission(1))
			tier.Eventually(t, "the submit has arrived", func() bool { return len(srv.Submits()) == 1 })
			srv.SetBehaviour(behaviour)
			if err := <-lost; !errors.Is(err, errEnquireLink) {
				t.Errorf("lost for %v", err)
			}
			if r := <-done; r.Outcome != provider.Unknown {
				t.Errorf("the submit in flight: %+v", r)
			}
			srv.SetBehaviour(smpptest.Behaviour{})
			tier.Eventually(t, "a message is accepted again",
				func() bool { return send(c, submission(2)).Outcome == provider.Accepted })
		})
	}
}

func TestAfterUnbindPendingAnswersStillCount(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: holding(hold)})
	c := startClient(t, fastConfig(srv.Addr()))
	done := sendAsync(c, submission(1))
	tier.Eventually(t, "the submit has arrived", func() bool { return len(srv.Submits()) == 1 })
	srv.SetBehaviour(smpptest.Behaviour{RefuseBinds: pdu.StatusBindFail})
	srv.Unbind()
	tier.Eventually(t, "the client is unbound", func() bool { ok, _ := c.Ready(); return !ok })
	if r := send(c, submission(2)); r.Outcome != provider.Refused {
		t.Errorf("a message after unbind: %+v", r)
	}
	close(hold)
	if r := <-done; r.Outcome != provider.Accepted {
		t.Errorf("the submit in flight: %+v", r)
	}
	srv.SetBehaviour(smpptest.Behaviour{})
	tier.Eventually(t, "the client binds again", func() bool { ok, _ := c.Ready(); return ok })
}

func TestAfterUnbindMissingAnswersTimeOut(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{DropEvery: 1}})
	cfg := fastConfig(srv.Addr())
	cfg.ResponseTimeout = 200 * time.Millisecond
	c := startClient(t, cfg)
	done := sendAsync(c, submission(1))
	tier.Eventually(t, "the submit has arrived", func() bool { return len(srv.Submits()) == 1 })
	before := srv.Stats().Binds // a busy machine may need more than one bind
	srv.Unbind()
	if r := <-done; r.Outcome != provider.Unknown || r.Code != "timeout" {
		t.Errorf("result %+v", r)
	}
	tier.Eventually(t, "the client binds again", func() bool { return srv.Stats().Binds > before })
}

func TestAFloodOfRequestsEndsTheConnection(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	cfg := fastConfig("pipe:1")
	cfg.ReconnectMin, cfg.ReconnectMax = time.Hour, time.Hour
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	lost := make(chan error, 1)
	cfg.OnState = func(s BindState) {
		if s.Phase == Lost {
			lost <- s.Err
		}
	}
	startUnready(t, cfg)
	peer := newRawPeer(t, theirs)
	peer.bound()
	frame := pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 1)
	for range 2 * maxControl / len(frame) {
		if _, err := theirs.Write(frame); err != nil {
			break
		}
	}
	if err := <-lost; !errors.Is(err, errFlood) {
		t.Errorf("lost for %v", err)
	}
	_ = theirs.Close()
}

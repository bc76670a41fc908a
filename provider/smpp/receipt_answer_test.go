package smpp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// handed is a receipt that waits for its answer.
type handed struct {
	provider.Receipt
	answer func(taken bool)
}

// handing is an OnReceipt that puts receipts into a channel. The receiver of the channel answers.
func handing(to chan<- handed) func(r provider.Receipt, answer func(taken bool)) {
	return func(r provider.Receipt, answer func(taken bool)) { to <- handed{r, answer} }
}

// TestAReceiptIsAnsweredOnceItIsStored: the reader does not wait. Each response, in any order, has
// the sequence number of its request, and the first answer counts.
func TestAReceiptIsAnsweredOnceItIsStored(t *testing.T) {
	t.Parallel()
	got := make(chan handed, 3)
	client, peer := startRaw(t, Config{OnReceipt: handing(got)})
	for i, id := range []string{"7A", "7B"} {
		peer.send(0, uint32(40+i),
			&pdu.DeliverSM{Message: textReceipt("id:" + id + " stat:DELIVRD")})
	}
	peer.send(0, 50, &pdu.DataSM{
		ESMClass: pdu.ESMClassReceipt,
		TLVs:     pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("id:7C stat:DELIVRD")}},
	})
	a, b, c := next(t, got), next(t, got), next(t, got)
	if a.Reference != "7A" || b.Reference != "7B" || c.Reference != "7C" {
		t.Fatalf("handed over %q %q %q", a.Reference, b.Reference, c.Reference)
	}
	done := sendAsync(client, submission(1))
	h := peer.expect(pdu.CommandSubmitSM) // no response comes before it
	peer.send(0, h.Sequence, &pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "1"})
	if r := <-done; r.Outcome != provider.Accepted {
		t.Errorf("result %+v", r)
	}
	for _, step := range []struct {
		handed
		taken    bool
		command  pdu.Command
		status   pdu.Status
		sequence uint32
	}{
		{c, true, pdu.CommandDataSMResp, pdu.StatusOK, 50},
		{b, false, pdu.CommandDeliverSMResp, pdu.StatusReceiverTemporary, 41},
		{a, true, pdu.CommandDeliverSMResp, pdu.StatusOK, 40},
	} {
		step.answer(step.taken)
		step.answer(!step.taken)
		if h := peer.expect(step.command); h.Status != step.status || h.Sequence != step.sequence {
			t.Errorf("%s was answered %+v", step.Reference, h)
		}
	}
	peer.send(0, 60, &pdu.Empty{Command: pdu.CommandEnquireLink})
	peer.expect(pdu.CommandEnquireLinkResp) // no second response comes before it
	go answerUnbind(peer)
}

// TestWhatIsNotAnsweredComesAgainOverTheNextConnection: the connection ends while receipts wait.
// Late answers have no effect, and the SMSC repeats the receipts.
func TestWhatIsNotAnsweredComesAgainOverTheNextConnection(t *testing.T) {
	t.Parallel()
	const n = 20
	srv := startServer(t, smpptest.Config{Log: -1})
	got := make(chan handed, 2*n)
	cfg := fastConfig(srv.Addr())
	cfg.OnReceipt = handing(got)
	first, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		srv.SendReceipt(smpptest.Submit{
			SystemID: "acme", MessageID: fmt.Sprintf("id-%d", i), To: "447700900123",
			From: "ACME",
		}, "DELIVRD")
	}
	var orphans []handed
	for range n {
		orphans = append(orphans, next(t, got))
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel() // the process ends without unbind
	_ = first.Close(cut)
	for _, h := range orphans {
		h.answer(true)
	}
	if taken := srv.Stats().ReceiptsTaken; taken != 0 {
		t.Fatalf("%d receipts were acknowledged", taken)
	}
	startClient(t, cfg)
	again := map[string]bool{}
	for range n {
		h := next(t, got)
		again[h.Reference] = true
		h.answer(true)
	}
	if len(again) != n {
		t.Errorf("%d of %d receipts came again", len(again), n)
	}
	tier.Eventually(t, "all are settled", func() bool { return srv.Stats().ReceiptsTaken == n })
}

// countedConn counts writes. Each takes until the test lets it return.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
	held   *sync.Mutex
}

func (c countedConn) Write(p []byte) (int, error) {
	c.held.Lock()
	defer c.held.Unlock()
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestTheAnswersOfABatchLeaveTogether: answers that come during a write leave with the next one.
func TestTheAnswersOfABatchLeaveTogether(t *testing.T) {
	t.Parallel()
	const n, few = 500, 10
	var writes atomic.Int64
	var held sync.Mutex
	got := make(chan handed, n)
	_, peer := startRaw(t, Config{
		OnReceipt: handing(got),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return countedConn{conn, &writes, &held}, err
		},
	})
	var batch []handed
	for i := range n {
		peer.send(0, uint32(i+1),
			&pdu.DeliverSM{Message: textReceipt(fmt.Sprintf("id:%d stat:DELIVRD", i))})
		batch = append(batch, next(t, got))
	}
	before := writes.Load()
	held.Lock()
	for _, h := range batch {
		h.answer(true)
	}
	held.Unlock()
	for i := range n {
		if h := peer.expect(pdu.CommandDeliverSMResp); h.Sequence != uint32(i+1) ||
			h.Status != pdu.StatusOK {
			t.Fatalf("answer %d: %+v", i, h)
		}
	}
	if wrote := writes.Load() - before; wrote > few {
		t.Errorf("%d answers took %d writes", n, wrote)
	}
	go answerUnbind(peer)
}

// unread is a session without a writer, and the other end of its connection.
func unread(cfg Config) (*session, func()) {
	ours, theirs := net.Pipe()
	cfg = cfg.withDefaults()
	return newSession(&cfg, newPool(1), newPDUReader(ours)),
		func() { _, _ = ours.Close(), theirs.Close() }
}

// TestABindHasABoundOfReceiptsWithoutAnswer: the SMSC keeps further ones. All answers fit at once,
// and a peer that reads none is disconnected.
func TestABindHasABoundOfReceiptsWithoutAnswer(t *testing.T) {
	t.Parallel()
	var waiting []func(bool)
	s, end := unread(Config{
		OnReceipt: func(_ provider.Receipt, answer func(bool)) {
			waiting = append(waiting, answer)
		},
	})
	defer end()
	deliver := func(n int) {
		for i := range n {
			if err := s.handOver(provider.Receipt{}, pdu.CommandDeliverSMResp,
				uint32(i+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	deliver(maxUnanswered + 3)
	one := len(s.control) / 3
	if len(waiting) != maxUnanswered || one == 0 {
		t.Fatalf("%d receipts wait, %d octets of answers", len(waiting), len(s.control))
	}
	for _, answer := range waiting {
		answer(true)
	}
	if len(s.control) != one*(maxUnanswered+3) || len(s.flooded) != 0 {
		t.Errorf("%d octets of answers", len(s.control))
	}
	waiting = nil
	deliver(maxUnanswered)
	for _, answer := range waiting {
		answer(true)
	}
	if len(s.control) > maxControl || len(s.flooded) != 1 {
		t.Errorf("%d octets of unread answers", len(s.control))
	}
}

// TestAnAnswerAfterTheSessionEndedIsDropped and holds no memory.
func TestAnAnswerAfterTheSessionEndedIsDropped(t *testing.T) {
	t.Parallel()
	got := make(chan handed, 1)
	s, end := unread(Config{OnReceipt: handing(got)})
	defer end()
	if err := s.handOver(provider.Receipt{}, pdu.CommandDeliverSMResp, 1); err != nil {
		t.Fatal(err)
	}
	s.finishAll()
	next(t, got).answer(true)
	if len(s.control) != 0 || s.unanswered.Load() != 0 {
		t.Errorf("%d octets of answers, %d receipts without one", len(s.control),
			s.unanswered.Load())
	}
}

// TestAPeerThatReadsNoAnswersIsDisconnected also if the answers come later.
func TestAPeerThatReadsNoAnswersIsDisconnected(t *testing.T) {
	t.Parallel()
	lost := make(chan error, 1)
	got := make(chan handed, 1)
	cfg := Config{OnReceipt: handing(got), ResponseTimeout: time.Hour, EnquireLink: time.Hour}
	s, end := unread(cfg)
	defer end()
	go func() { lost <- s.run(t.Context(), nil, true) }()
	s.mu.Lock()
	s.control = make([]byte, maxControl)
	s.mu.Unlock()
	if err := s.handOver(provider.Receipt{}, pdu.CommandDeliverSMResp, 1); err != nil {
		t.Fatal(err)
	}
	next(t, got).answer(true)
	if err := next(t, lost); !errors.Is(err, errFlood) {
		t.Errorf("ended with %v", err)
	}
}

// TestIDsThatAreLongerThanTheStandardAllows are equal in answer and receipt. What cannot be an id
// is empty in both.
func TestIDsThatAreLongerThanTheStandardAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ id, want string }{
		"standard":    {strings.Repeat("a", 64), strings.Repeat("a", 64)},
		"longer":      {strings.Repeat("b", 100), strings.Repeat("b", 100)},
		"with blanks": {"id of a message", ""},
		"no text":     {"\x1b[31m7F", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan provider.Receipt, 1)
			srv := startServer(t,
				smpptest.Config{
					Behaviour: smpptest.Behaviour{
						Receipts: true, MessageID: func(uint64) string { return c.id },
					},
				})
			cfg := fastConfig(srv.Addr())
			cfg.RegisteredDelivery = 1
			cfg.ReceiptID.From = ParameterID
			cfg.OnReceipt = atOnce(func(r provider.Receipt) bool {
				got <- r
				return true
			})
			client := startClient(t, cfg)
			if r := send(client, submission(1)); r.Outcome != provider.Accepted ||
				r.Reference != c.want {
				t.Errorf("answered %+v", r)
			}
			select {
			case r := <-got:
				if r.Reference != c.want {
					t.Errorf("the receipt names %q", r.Reference)
				}
			case <-time.After(testTimeout):
				t.Fatal("no receipt came")
			}
		})
	}
}

func TestTheLongestIDOfAReceipt(t *testing.T) {
	t.Parallel()
	for length, known := range map[int]bool{
		64: true, 65: true, provider.MaxReference: true, provider.MaxReference + 1: false,
	} {
		m := textReceipt("stat:DELIVRD")
		m.TLVs = pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, strings.Repeat("7", length))}
		r, ok := (&Config{}).parseReceipt(&m, time.Now())
		if !ok || (r.Reference != "") != known {
			t.Errorf("an id of %d characters becomes one of %d", length, len(r.Reference))
		}
	}
}

package smpptest

import (
	"slices"
	"testing"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// takeReceipt reads and acknowledges a receipt and returns its id and state.
func (e *esme) takeReceipt() (id string, state uint16) {
	e.t.Helper()
	h, body := e.read()
	for h.Command != pdu.CommandDeliverSM {
		h, body = e.read()
	}
	if _, err := e.conn.Write(pdu.AppendEmpty(nil, pdu.CommandDeliverSMResp, 0,
		h.Sequence)); err != nil {
		e.t.Fatal(err)
	}
	m := body.(*pdu.DeliverSM)
	raw, _ := m.TLVs.Get(pdu.TagReceiptedMessageID)
	state, _ = m.TLVs.Uint(pdu.TagMessageState)
	return string(raw[:len(raw)-1]), state
}

func TestDecideSaysWhatReceiptFollows(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{
		Log: -1,
		Behaviour: Behaviour{Receipts: true, Decide: func(s Submit) Answer {
			switch s.Text {
			case "never":
				return Answer{Receipt: &Receipt{Never: true}}
			case "late":
				return Answer{Receipt: &Receipt{Delay: 50 * time.Millisecond, State: "EXPIRED"}}
			}
			return Answer{}
		}},
	})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	for _, text := range []string{"late", "never", "plain"} {
		e.send(message("447700900123", text))
	}
	got := map[string]uint16{}
	for range 2 {
		id, state := e.takeReceipt()
		got[id] = state
	}
	log := srv.Submits()
	if got[log[0].MessageID] != 3 || got[log[2].MessageID] != 2 || len(got) != 2 {
		t.Errorf("receipts %v", got)
	}
	if late := log[0].ReceiptAt.Sub(log[0].At); late < 50*time.Millisecond ||
		log[2].ReceiptAt.IsZero() || !log[1].ReceiptAt.IsZero() {
		t.Errorf("the log has %v, %v, %v", log[0].ReceiptAt, log[1].ReceiptAt, log[2].ReceiptAt)
	}
}

// TestNothingIsHeldOnceThereIsAReceiver for its account or for any. A receipt about to be held when
// the receiver binds is not held either.
func TestNothingIsHeldOnceThereIsAReceiver(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1})
	srv.SendReceipt(Submit{SystemID: "acme", MessageID: "id-1", To: "447700900123"}, "")
	srv.SendInbound(Inbound{From: "447700900123", To: "12345", Text: "hello"})
	e := dial(t, srv)
	e.bind(pdu.CommandBindReceiver, "")
	srv.receipts.keep(&receipt{
		systemID: "acme", number: -1, entry: Submit{MessageID: "id-2", To: "447700900123"},
		at: time.Now(),
	})
	for range 3 {
		if h, _ := e.read(); h.Command != pdu.CommandDeliverSM {
			t.Fatalf("%+v", h)
		}
	}
	if got := srv.Stats(); got.ReceiptsSent != 2 || got.InboundSent != 1 {
		t.Errorf("%+v", got)
	}
}

// TestAReceiptForAnEndedConnectionIsSentAgainLater, not at once while the ended connection is still
// in the list.
func TestAReceiptForAnEndedConnectionIsSentAgainLater(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1})
	dial(t, srv).bind(pdu.CommandBindReceiver, "")
	var c *conn
	// it receives once its bind is answered
	for c = srv.receipts.receiver(""); c == nil; c = srv.receipts.receiver("") {
		time.Sleep(time.Millisecond)
	}
	c.mu.Lock()
	c.unanswered = nil
	c.mu.Unlock()
	srv.receipts.send([]*receipt{{number: -1, at: time.Now()}})
	s := srv.receipts.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heap) != 1 || time.Until(s.heap[0].at) <= 0 {
		t.Errorf("%d receipts are to be sent", len(s.heap))
	}
}

func TestReceiptsAreSentByHand(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{-1, 2} {
		srv := start(t, Config{Log: keep})
		e := dial(t, srv)
		e.bind(pdu.CommandBindTransceiver, "")
		for range 3 {
			e.ask(message("447700900123", "hello"))
		}
		log := srv.Submits()
		last := log[len(log)-1]
		srv.SendReceipt(last, "REJECTD")
		if id, state := e.takeReceipt(); id != last.MessageID || state != 8 {
			t.Errorf("receipt of %q with state %d for %q", id, state, last.MessageID)
		}
		srv.SendReceipt(Submit{SystemID: "acme", MessageID: "strange"}, "")
		if id, state := e.takeReceipt(); id != "strange" || state != 2 {
			t.Errorf("receipt of %q with state %d", id, state)
		}
		for i, s := range srv.Submits() {
			if s.ReceiptAt.IsZero() != (s.MessageID != last.MessageID) {
				t.Errorf("the log of %d has %v for entry %d", keep, s.ReceiptAt, i)
			}
		}
	}
}

func TestReceiptRatioIsKeptEvenly(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64][]bool{
		0:    {true, true, true, true},
		1:    {true, true, true, true},
		0.5:  {false, true, false, true},
		0.25: {false, false, false, true},
	} {
		s := &script{Behaviour: Behaviour{Receipts: true, ReceiptRatio: ratio}}
		var got []bool
		for range want {
			got = append(got, !s.receipt(Submit{}, Answer{}).Never)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ratio %v: %v, want %v", ratio, got, want)
		}
	}
}

package smpptest

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider/smpp/pdu"
)

func TestReceiptsAreWrittenInEveryForm(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	submit := Submit{At: at, MessageID: "7f", From: "ACME", To: "447700900123", Echo: "0123"}
	full := pdu.TLVs{
		pdu.CString(pdu.TagReceiptedMessageID, "7f"), pdu.Uint8(pdu.TagMessageState, 2),
	}
	for name, c := range map[string]struct {
		form    ReceiptForm
		receipt Receipt
		class   byte
		text    string
		tlvs    pdu.TLVs
	}{
		"full": {
			class: 4,
			text: "id:7f sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:DELIVRD " +
				"err:000 text:", tlvs: full,
		},
		"text": {
			form: ReceiptForm{Style: TextReceipt}, class: 4,
			text: "id:7f sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:DELIVRD " +
				"err:000 text:",
		},
		"parameters": {form: ReceiptForm{Style: ParameterReceipt}, class: 4, tlvs: full},
		"small": {
			form:    ReceiptForm{Style: LowerCaseReceipt},
			receipt: Receipt{State: "UNDELIV", Error: "01B"}, class: 4,
			text: "id:7f sub:001 dlvrd:000 submit date:2611211200 done date:2611211201 stat:undeliv " +
				"err:01b text:",
		},
		"sparse": {
			form: ReceiptForm{Style: SparseReceipt}, receipt: Receipt{State: "EXPIRED"}, class: 4,
			text: "id:7f stat:EXPIRED",
		},
		"reordered": {
			form: ReceiptForm{Style: ReorderedReceipt}, class: 4,
			text: "STAT: DELIVRD, ERR: 000; DONE DATE: 2611211201; ID: 7f; DLVRD: 001",
		},
		"untyped": {
			form: ReceiptForm{Style: SparseReceipt, Untyped: true}, text: "id:7f stat:DELIVRD",
		},
		"on the way": {
			form:    ReceiptForm{Style: SparseReceipt},
			receipt: Receipt{State: "ENROUTE", Intermediate: true}, class: 0x20,
			text: "id:7f stat:ENROUTE",
		},
		"other base": {
			form:  ReceiptForm{Style: SparseReceipt, ID: func(string) string { return "127" }},
			class: 4, text: "id:127 stat:DELIVRD",
		},
		"echo and network": {
			form:    ReceiptForm{Style: SparseReceipt, Echo: 0x1400},
			receipt: Receipt{NetworkError: "\x03\x00\x1b"}, class: 4, text: "id:7f stat:DELIVRD",
			tlvs: pdu.TLVs{
				{Tag: pdu.TagNetworkErrorCode, Value: []byte{3, 0, 27}},
				pdu.CString(0x1400, "0123"),
			},
		},
	} {
		m := c.form.compose(&submit, &c.receipt, at.Add(time.Minute))
		if m.ESMClass != c.class || string(m.ShortMessage) != c.text ||
			m.Source.Addr != submit.To || m.Dest.Addr != submit.From {
			t.Errorf("%s: 0x%02x %q", name, m.ESMClass, m.ShortMessage)
		}
		if diff := cmp.Diff(c.tlvs, m.TLVs); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// readReceipt reads, acknowledges and returns the next request of the SMSC.
func (e *esme) readReceipt() pdu.Body {
	e.t.Helper()
	h, body := e.read()
	for h.Command.IsResponse() {
		h, body = e.read()
	}
	if _, err := e.conn.Write(pdu.AppendEmpty(nil, h.Command.Response(), 0,
		h.Sequence)); err != nil {
		e.t.Fatal(err)
	}
	return body
}

func TestPeersOfVersion33GetNoParameters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, client byte }{{pdu.Version33, pdu.Version34}, {
		pdu.Version34, pdu.Version33,
	}} {
		srv := start(t, Config{Version: c.server, Behaviour: Behaviour{Receipts: true}})
		e := dial(t, srv)
		_, body := e.ask(&pdu.Bind{
			Command: pdu.CommandBindTransceiver, SystemID: "acme", InterfaceVersion: c.client,
		})
		if answer := body.(*pdu.BindResp); len(answer.TLVs) != 0 {
			t.Errorf("bind_resp %+v", answer)
		}
		e.send(message("447700900123", "hello"))
		if m := e.readReceipt().(*pdu.DeliverSM); len(m.TLVs) != 0 || len(m.ShortMessage) == 0 {
			t.Errorf("receipt %+v", m)
		}
	}
}

func TestFurtherReceiptsFollowAndDataSMCarriesThem(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{
		Log: -1,
		Behaviour: Behaviour{ReceiptForm: ReceiptForm{DataSM: true}, Decide: func(Submit) Answer {
			return Answer{
				Receipt: &Receipt{
					State: "ENROUTE", Intermediate: true,
					Again: []Receipt{{Delay: 20 * time.Millisecond}},
				},
			}
		}},
	})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	e.send(message("447700900123", "hello"))
	for _, class := range []byte{pdu.ESMClassIntermediate, pdu.ESMClassReceipt} {
		m, ok := e.readReceipt().(*pdu.DataSM)
		if !ok || m.ESMClass != class {
			t.Fatalf("%+v, want esm_class 0x%02x", m, class)
		}
		if payload, ok := m.TLVs.Get(pdu.TagMessagePayload); !ok || len(payload) == 0 {
			t.Errorf("no text in %+v", m)
		}
	}
}

func TestAReceiptCanOvertakeItsAnswer(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1, Behaviour: Behaviour{Decide: func(Submit) Answer {
		return Answer{
			Delay: time.Minute, Receipt: &Receipt{Delay: time.Millisecond - time.Minute},
		}
	}}})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	e.send(message("447700900123", "hello"))
	if h, _ := e.read(); h.Command != pdu.CommandDeliverSM {
		t.Errorf("%v came first", h.Command)
	}
}

func TestQueriesAndCancelsAreAnsweredFromTheLog(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1, Behaviour: Behaviour{Queries: true, Cancels: true}})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	_, body := e.ask(message("447700900123", "hello"))
	id := body.(*pdu.MessageResp).MessageID
	acme, to := pdu.Address{Addr: "ACME"}, pdu.Address{Addr: "447700900123"}
	query := func(source pdu.Address) (pdu.Status, pdu.MessageState) {
		h, body := e.ask(&pdu.QuerySM{MessageID: id, Source: source})
		return h.Status, body.(*pdu.QuerySMResp).MessageState
	}
	if status, state := query(acme); status != pdu.StatusOK || state != pdu.StateEnroute {
		t.Errorf("before its receipt: %v, %d", status, state)
	}
	if status, _ := query(to); status != pdu.StatusQueryFail {
		t.Errorf("queried with another sender: %v", status)
	}
	if h, _ := e.ask(&pdu.CancelSM{
		MessageID: id, Source: acme, Dest: acme,
	}); h.Status != pdu.StatusCancelFail {
		t.Errorf("cancelled for another recipient: %v", h.Status)
	}
	if h, _ := e.ask(&pdu.CancelSM{
		MessageID: id, Source: acme, Dest: to,
	}); h.Status != pdu.StatusOK {
		t.Errorf("cancel: %v", h.Status)
	}
	if status, state := query(acme); status != pdu.StatusOK || state != pdu.StateDeleted {
		t.Errorf("after cancel_sm: %v, %d", status, state)
	}
	srv.SendReceipt(srv.Submits()[0], "DELIVRD")
	if _, state := e.takeReceipt(); state != uint16(pdu.StateDeleted) {
		t.Errorf("the receipt of a cancelled message has state %d", state)
	}
	srv.SetBehaviour(Behaviour{})
	if h, _ := e.ask(&pdu.QuerySM{
		MessageID: id, Source: acme,
	}); h.Command != pdu.CommandGenericNack {
		t.Errorf("a server without queries: %+v", h)
	}
}

func TestInboundMessagesAreCutAndSentUntilTaken(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{})
	long := ""
	for range 20 {
		long += "0123456789"
	}
	if n := srv.SendInbound(Inbound{
		SystemID: "acme", From: "447700900123", To: "60777", Text: long, Reference: 0x1234,
		Wide: true,
	}); n != 2 {
		t.Fatalf("%d parts", n)
	}
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	h, body := e.read()
	first := body.(*pdu.DeliverSM)
	if string(first.ShortMessage[:7]) != "\x06\x08\x04\x12\x34\x02\x01" ||
		first.ESMClass != pdu.ESMClassUDHI || first.Source.Addr != "447700900123" {
		t.Errorf("first part %+v", first)
	}
	if _, err := e.conn.Write(
		pdu.AppendEmpty(nil, h.Command.Response(), pdu.StatusReceiverReject,
			h.Sequence)); err != nil {
		t.Fatal(err)
	}
	e.readReceipt()
	if h, _ := e.ask(&pdu.Empty{Command: pdu.CommandEnquireLink}); h.Status != pdu.StatusOK {
		t.Error(h)
	}
	if got := srv.Stats(); got.InboundSent != 2 || got.InboundTaken != 1 || got.Refused != 1 ||
		got.ReceiptsSent != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSlowPeersWriteSlowlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{
		Version: pdu.Version50, Behaviour: Behaviour{Trickle: time.Microsecond, Congestion: 95},
	})
	e := dial(t, srv)
	if status := e.bind(pdu.CommandBindTransceiver, ""); status != pdu.StatusOK {
		t.Errorf("octet by octet: %v", status)
	}
	_, body := e.ask(message("447700900123", "hello"))
	if state, _ := body.(*pdu.MessageResp).TLVs.Uint(pdu.TagCongestionState); state != 95 {
		t.Errorf("congestion_state %d", state)
	}
	srv.SetBehaviour(Behaviour{HalfPDU: true})
	e.send(&pdu.Empty{Command: pdu.CommandEnquireLink})
	half := make([]byte, pdu.HeaderSize/2)
	if _, err := io.ReadFull(e.conn, half); err != nil {
		t.Fatal(err)
	}
	if err := e.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := e.conn.Read(half); n > 0 || err == nil {
		t.Errorf("%d octets follow half a PDU, %v", n, err)
	}
}

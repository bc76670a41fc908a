package smpp

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

func TestReceiptsRepeatUntilTheHandlerTakesThem(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Receipts: true}})
	var calls atomic.Int64
	taken := make(chan pdu.DeliverSM, 10)
	cfg := fastConfig(srv.Addr())
	cfg.RegisteredDelivery = pdu.ReceiptFinal
	cfg.OnDeliver = func(_ context.Context, d pdu.DeliverSM) pdu.Status {
		if calls.Add(1) == 1 {
			return pdu.StatusReceiverTemporary
		}
		taken <- d
		return pdu.StatusOK
	}
	c := startClient(t, cfg)
	r := send(c, submission(1))
	d := <-taken
	id, _ := d.TLVs.Get(pdu.TagReceiptedMessageID)
	if d.ESMClass != pdu.ESMClassReceipt || string(id) != r.Reference+"\x00" ||
		!strings.HasPrefix(string(d.ShortMessage), "id:"+r.Reference+" ") {
		t.Errorf("receipt %+v for %q", d, r.Reference)
	}
	tier.Eventually(t, "the receipt is settled", func() bool { return srv.Stats().ReceiptsTaken == 1 })
	if n := srv.Stats().ReceiptsSent; n != 2 {
		t.Errorf("%d receipts were sent, want one and its repetition", n)
	}
}

func TestDataSMArrivesLikeDeliverSM(t *testing.T) {
	t.Parallel()
	got := make(chan pdu.DeliverSM, 1)
	_, peer := startRaw(t, Config{OnDeliver: func(_ context.Context, d pdu.DeliverSM) pdu.Status {
		got <- d
		return pdu.StatusReceiverReject
	}})
	peer.send(0, 8, &pdu.DataSM{
		Source: pdu.Address{Addr: "447700900123"}, DataCoding: 8, ESMClass: pdu.ESMClassReceipt,
		RegisteredDelivery: 1,
		TLVs:               pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("hello")}},
	})
	d := <-got
	if string(d.Payload()) != "hello" || d.Source.Addr != "447700900123" || d.DataCoding != 8 ||
		d.ESMClass != pdu.ESMClassReceipt {
		t.Errorf("received %+v", d)
	}
	if h := peer.expect(pdu.CommandDataSMResp); h.Status != pdu.StatusReceiverReject ||
		h.Sequence != 8 {
		t.Errorf("answer %+v", h)
	}
	go answerUnbind(peer)
}

// TestASlowHandlerDelaysNoAnswers: while the handler blocks and its queue is full, a message is
// still sent and answered.
func TestASlowHandlerDelaysNoAnswers(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan string, deliveryQueue+1), make(chan struct{})
	client, peer := startRaw(t,
		Config{OnDeliver: func(ctx context.Context, d pdu.DeliverSM) pdu.Status {
			entered <- string(d.ShortMessage)
			select {
			case <-leave:
			case <-ctx.Done():
			}
			return pdu.StatusOK
		}})
	deliver := func(i int) {
		peer.send(0, uint32(i+1),
			&pdu.DeliverSM{Message: pdu.Message{ShortMessage: fmt.Appendf(nil, "text %03d", i)}})
	}
	deliver(0)
	if text := <-entered; text != "text 000" {
		t.Errorf("first text %q", text)
	}
	for i := range deliveryQueue {
		deliver(i + 1)
	}
	peer.send(0, 1000, &pdu.DeliverSM{})
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusReceiverTemporary ||
		h.Sequence != 1000 {
		t.Errorf("one more than the queue holds: %+v", h)
	}
	done := sendAsync(client, submission(1))
	h := peer.expect(pdu.CommandSubmitSM)
	peer.send(0, h.Sequence, &pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "1"})
	if r := <-done; r.Outcome != provider.Accepted {
		t.Errorf("result %+v", r)
	}
	close(leave)
	for i := range deliveryQueue + 1 {
		if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK ||
			h.Sequence != uint32(i+1) {
			t.Fatalf("answer %d: %+v", i, h)
		}
		if i == 0 {
			continue
		}
		if text := <-entered; text != fmt.Sprintf("text %03d", i) {
			t.Fatalf("delivery %d came as %q", i, text)
		}
	}
	go answerUnbind(peer)
}

// longer returns a PDU with extra octets after its end.
func longer(t *testing.T, sequence uint32, body pdu.Body, tail string) []byte {
	t.Helper()
	frame, err := pdu.Append(nil, 0, sequence, body)
	if err != nil {
		t.Fatal(err)
	}
	frame = append(frame, tail...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)))
	return frame
}

// TestWhatIsReadBeforeADamagedEndCounts: some SMSCs append a stray octet to short_message or
// truncate the last parameter. The receipt or message before it is complete.
func TestWhatIsReadBeforeADamagedEndCounts(t *testing.T) {
	t.Parallel()
	receipts, inbound := make(chan provider.Receipt, 10), make(chan provider.Inbound, 10)
	_, peer := startRaw(t, Config{
		OnReceipt: atOnce(func(r provider.Receipt) bool { receipts <- r; return true }),
		OnInbound: func(in provider.Inbound) bool { inbound <- in; return true },
	})
	text := &pdu.DeliverSM{Message: textReceipt("id:7F stat:DELIVRD err:000")}
	inData := &pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: pdu.TLVs{
		{Tag: pdu.TagReceiptedMessageID, Value: []byte("7F\x00")},
		pdu.Uint8(pdu.TagMessageState, 2),
		{Tag: pdu.TagMessagePayload, Value: []byte("stat:DELIVRD")},
	}}
	// no text, parameters alone
	bare := &pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: inData.TLVs[:2]}
	for name, c := range map[string]struct {
		body pdu.Body
		tail string
	}{
		"one octet": {text, "\x00"}, "three": {text, "\x04\x27\x00"},
		"a parameter that is cut off": {text, "\x04\x27\x00\x01"},
		"a length beyond the end":     {text, "\x14\x00\xff\xff?"}, "data_sm": {inData, "\x00"},
		"parameters alone": {bare, "\x00"},
	} {
		peer.write(longer(t, 77, c.body, c.tail))
		if h := peer.expect(c.body.CommandID().Response()); h.Status != pdu.StatusOK ||
			h.Sequence != 77 {
			t.Errorf("%s: answered %v", name, h.Status)
			continue
		}
		if r := next(t, receipts); r.Reference != "7F" || r.State != provider.Delivered {
			t.Errorf("%s: %+v", name, r)
		}
	}
	stop := &pdu.DeliverSM{
		Message: pdu.Message{
			Source: pdu.Address{TON: 1, NPI: 1, Addr: "447700900123"}, ShortMessage: []byte("STOP"),
		},
	}
	peer.write(longer(t, 78, stop, "\x00"))
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK {
		t.Errorf("a subscriber's message: answered %v", h.Status)
	}
	if in := next(t, inbound); in.Text != "STOP" {
		t.Errorf("%+v", in)
	}
	go answerUnbind(peer)
}

// TestADamagedPDUWithoutContentIsRefused: the content itself is damaged. A receipt without a state
// has no content, and acknowledging it would leave the message pending.
func TestADamagedPDUWithoutContentIsRefused(t *testing.T) {
	t.Parallel()
	taken := make(chan provider.Receipt, 10)
	_, peer := startRaw(
		t, Config{OnReceipt: atOnce(func(r provider.Receipt) bool { taken <- r; return true })})
	id := pdu.TLVs{{Tag: pdu.TagReceiptedMessageID, Value: []byte("7F\x00")}}
	state := pdu.TLVs{pdu.Uint8(pdu.TagMessageState, 2)}
	empty := append(id[:1:1], pdu.TLV{Tag: pdu.TagMessageState})
	for name, c := range map[string]struct {
		body pdu.Body
		tail string
	}{
		"deliver_sm": {
			&pdu.DeliverSM{Message: pdu.Message{ESMClass: pdu.ESMClassReceipt}},
			"\x04\x24\x00\x1aid:7F stat:",
		},
		"data_sm": {
			&pdu.DataSM{ESMClass: pdu.ESMClassReceipt}, "\x04\x24\x00\x1aid:7F stat:",
		},
		"the state is cut off": {
			&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: id}, "\x04\x27\x00\x01",
		},
		"it is in deliver_sm": {
			&pdu.DeliverSM{Message: pdu.Message{ESMClass: pdu.ESMClassReceipt, TLVs: id}},
			"\x04\x27\x00\x01",
		},
		"the state cannot be read": {
			&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: empty}, "\x00",
		},
		"the id is cut off": {
			&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: state}, "\x00\x1e\x00\x037F",
		},
		"no type, the state is off": {&pdu.DataSM{TLVs: id}, "\x04\x27\x00\x01"},
	} {
		peer.write(longer(t, 77, c.body, c.tail))
		if h := peer.expect(c.body.CommandID().Response()); h.Status != pdu.StatusReceiverPermanent {
			t.Errorf("%s: answered %v", name, h.Status)
		}
	}
	if len(taken) != 0 {
		t.Errorf("content %+v", <-taken)
	}
	go answerUnbind(peer)
}

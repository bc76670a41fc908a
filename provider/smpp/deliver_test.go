package smpp

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

func TestReceiptsComeUntilTheHandlerTakesThem(t *testing.T) {
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
	if d.ESMClass != pdu.ESMClassReceipt || string(id) != r.Reference+"\x00" || !strings.HasPrefix(string(d.ShortMessage), "id:"+r.Reference+" ") {
		t.Errorf("receipt %+v for %q", d, r.Reference)
	}
	eventually(t, "the receipt is settled", func() bool { return srv.Stats().ReceiptsTaken == 1 })
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
		Source: pdu.Address{Addr: "447700900123"}, DataCoding: 8, ESMClass: pdu.ESMClassReceipt, RegisteredDelivery: 1,
		TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("hello")}},
	})
	d := <-got
	if string(d.Payload()) != "hello" || d.Source.Addr != "447700900123" || d.DataCoding != 8 || d.ESMClass != pdu.ESMClassReceipt {
		t.Errorf("received %+v", d)
	}
	if h := peer.expect(pdu.CommandDataSMResp); h.Status != pdu.StatusReceiverReject || h.Sequence != 8 {
		t.Errorf("answer %+v", h)
	}
	go leavePolitely(peer)
}

// TestASlowHandlerHoldsUpNoAnswers blocks the handler, fills its queue, and sends a
// message through all the same.
func TestASlowHandlerHoldsUpNoAnswers(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan string, deliveryQueue+1), make(chan struct{})
	client, peer := startRaw(t, Config{OnDeliver: func(ctx context.Context, d pdu.DeliverSM) pdu.Status {
		entered <- string(d.ShortMessage)
		select {
		case <-leave:
		case <-ctx.Done():
		}
		return pdu.StatusOK
	}})
	deliver := func(i int) {
		peer.send(0, uint32(i+1), &pdu.DeliverSM{Message: pdu.Message{ShortMessage: fmt.Appendf(nil, "text %03d", i)}})
	}
	deliver(0)
	if text := <-entered; text != "text 000" {
		t.Errorf("first text %q", text)
	}
	for i := range deliveryQueue {
		deliver(i + 1)
	}
	peer.send(0, 1000, &pdu.DeliverSM{})
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusReceiverTemporary || h.Sequence != 1000 {
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
		if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK || h.Sequence != uint32(i+1) {
			t.Fatalf("answer %d: %+v", i, h)
		}
		if i == 0 {
			continue
		}
		if text := <-entered; text != fmt.Sprintf("text %03d", i) {
			t.Fatalf("delivery %d came as %q", i, text)
		}
	}
	go leavePolitely(peer)
}

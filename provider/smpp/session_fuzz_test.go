package smpp

import (
	"bytes"
	"context"
	"testing"
	"testing/iotest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// FuzzSession holds that no stream of a peer makes a session panic or hold more answers than it may, however it is
// split, and that what is under way keeps a fate that an answer can have.
func FuzzSession(f *testing.F) {
	var all []byte
	for i, body := range []pdu.Body{
		&pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "7F", TLVs: pdu.TLVs{pdu.Uint8(pdu.TagCongestionState, 95)}},
		&pdu.DeliverSM{Message: textReceipt("id:7F stat:DELIVRD err:000")}, &pdu.QuerySMResp{MessageID: "7F", MessageState: 2},
		&pdu.DataSM{TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("STOP")}}}, &pdu.Empty{Command: pdu.CommandUnbind},
		&pdu.Outbind{SystemID: "smsc"}, &pdu.AlertNotification{}, &pdu.Empty{Command: pdu.CommandGenericNack},
	} {
		frame, err := pdu.Append(nil, 0, uint32(i+1), body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
		all = append(all, frame...)
	}
	f.Add(all)
	f.Add(all[7:])
	f.Fuzz(func(t *testing.T, stream []byte) {
		cfg := Config{
			OnReceipt: atOnce(func(provider.Receipt) bool { return true }), OnInbound: func(provider.Inbound) bool { return false },
			OnDeliver:       func(context.Context, pdu.DeliverSM) pdu.Status { return 0 },
			HonorCongestion: true, UntypedReceipts: true, ReceiptKeyTLV: 0x1400,
		}.withDefaults()
		s := newSession(&cfg, newPool(8), newPDUReader(nil), bindSequence)
		s.in.reader = pdu.NewReader(iotest.HalfReader(bytes.NewReader(stream)))
		s.pool.add(s)
		frame := pdu.AppendEmpty(nil, pdu.CommandSubmitSM, 0, 0)
		calls := []*call{{frame: frame, done: make(chan struct{}, 1)}, {frame: frame, done: make(chan struct{}, 1)}}
		s.slots.used = len(calls)
		s.submit(time.Time{}, calls...)
		s.take(nil, nil)
		for s.readLoop() == nil {
			t.Fatal("the stream has no end")
		}
		if len(s.control) > maxControl {
			t.Fatalf("%d octets of answers", len(s.control))
		}
		s.finishAll()
		for i, c := range calls {
			select {
			case <-c.done:
			default:
				t.Fatalf("submit %d has no fate", i)
			}
		}
		if s.slots.used != 0 {
			t.Fatalf("%d slots are still in use", s.slots.used)
		}
	})
}

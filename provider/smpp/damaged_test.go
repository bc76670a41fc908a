package smpp

import (
	"encoding/binary"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// longer is a PDU with octets behind its end that belong to nothing.
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

// TestWhatIsReadBeforeADamagedEndCounts: SMSCs put a stray octet behind short_message, or cut the last parameter off. The
// receipt, or the message of the subscriber, is whole all the same.
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
	bare := &pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: inData.TLVs[:2]} // nothing but parameters
	for name, c := range map[string]struct {
		body pdu.Body
		tail string
	}{
		"one octet": {text, "\x00"}, "three": {text, "\x04\x27\x00"}, "a parameter that is cut off": {text, "\x04\x27\x00\x01"},
		"a length beyond the end": {text, "\x14\x00\xff\xff?"}, "data_sm": {inData, "\x00"}, "parameters alone": {bare, "\x00"},
	} {
		peer.write(longer(t, 77, c.body, c.tail))
		if h := peer.expect(c.body.CommandID().Response()); h.Status != pdu.StatusOK || h.Sequence != 77 {
			t.Errorf("%s: answered %v", name, h.Status)
			continue
		}
		if r := next(t, receipts); r.Reference != "7F" || r.State != provider.Delivered {
			t.Errorf("%s: %+v", name, r)
		}
	}
	stop := &pdu.DeliverSM{Message: pdu.Message{Source: pdu.Address{TON: 1, NPI: 1, Addr: "447700900123"}, ShortMessage: []byte("STOP")}}
	peer.write(longer(t, 78, stop, "\x00"))
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK {
		t.Errorf("a subscriber's message: answered %v", h.Status)
	}
	if in := next(t, inbound); in.Text != "STOP" {
		t.Errorf("%+v", in)
	}
	go leavePolitely(peer)
}

// TestADamagedPDUWithoutContentIsRefused: its content is what was damaged. A receipt has none without its state, whose id alone
// would leave the message as if it were still under way.
func TestADamagedPDUWithoutContentIsRefused(t *testing.T) {
	t.Parallel()
	taken := make(chan provider.Receipt, 10)
	_, peer := startRaw(t, Config{OnReceipt: atOnce(func(r provider.Receipt) bool { taken <- r; return true })})
	id := pdu.TLVs{{Tag: pdu.TagReceiptedMessageID, Value: []byte("7F\x00")}}
	state := pdu.TLVs{pdu.Uint8(pdu.TagMessageState, 2)}
	empty := append(id[:1:1], pdu.TLV{Tag: pdu.TagMessageState})
	for name, c := range map[string]struct {
		body pdu.Body
		tail string
	}{
		"deliver_sm":                {&pdu.DeliverSM{Message: pdu.Message{ESMClass: pdu.ESMClassReceipt}}, "\x04\x24\x00\x1aid:7F stat:"},
		"data_sm":                   {&pdu.DataSM{ESMClass: pdu.ESMClassReceipt}, "\x04\x24\x00\x1aid:7F stat:"},
		"the state is cut off":      {&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: id}, "\x04\x27\x00\x01"},
		"it is in deliver_sm":       {&pdu.DeliverSM{Message: pdu.Message{ESMClass: pdu.ESMClassReceipt, TLVs: id}}, "\x04\x27\x00\x01"},
		"the state cannot be read":  {&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: empty}, "\x00"},
		"the id is cut off":         {&pdu.DataSM{ESMClass: pdu.ESMClassReceipt, TLVs: state}, "\x00\x1e\x00\x037F"},
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
	go leavePolitely(peer)
}

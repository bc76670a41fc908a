package smpp

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// textReceipt is a deliver_sm with a receipt in the format of appendix B.
func textReceipt(text string) pdu.Message {
	return pdu.Message{ESMClass: pdu.ESMClassReceipt, ShortMessage: []byte(text)}
}

func TestReceiptsAreReadInTheirRealLifeVariants(t *testing.T) {
	t.Parallel()
	const full = "id:0123456789 sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 " +
		"stat:DELIVRD err:000 text:Your code is"
	named := func(m pdu.Message, tlvs ...pdu.TLV) pdu.Message { m.TLVs = tlvs; return m }
	id := pdu.TLV{Tag: pdu.TagReceiptedMessageID, Value: []byte("abc-7\x00")}
	state := func(v uint8) pdu.TLV { return pdu.Uint8(pdu.TagMessageState, v) }
	causes := map[string]provider.Cause{
		"spaces": provider.Expired, "only the state": provider.Expired,
		"an id with a colon": provider.Deleted,
		"network error":      provider.Absent,
	}
	for name, c := range map[string]struct {
		m         pdu.Message
		reference string
		state     provider.ReceiptState
		code      string
	}{
		"appendix B": {
			textReceipt(full), "0123456789", provider.Delivered, "DELIVRD/000",
		},
		"lower case": {
			textReceipt(strings.ToLower(full)), "0123456789", provider.Delivered, "DELIVRD/000",
		},
		"capitals": {
			textReceipt("ID:7F STAT:UNDELIV ERR:01A TEXT:"), "7F", provider.Undelivered,
			"UNDELIV/01A",
		},
		"spaces": {
			textReceipt("  id: 7F   sub:001  stat :  EXPIRED\terr: 12 "), "7F",
			provider.Undelivered, "EXPIRED/12",
		},
		"other separators": {
			textReceipt("id:7F,stat:REJECTD;err:8"), "7F", provider.Undelivered, "REJECTD/8",
		},
		"another order": {
			textReceipt("stat:DELIVERED id:7F"), "7F", provider.Delivered, "DELIVERED",
		},
		"no state":     {textReceipt("id:7F err:000"), "7F", provider.Pending, "/000"},
		"empty fields": {textReceipt("id:7F stat: err: text:"), "7F", provider.Pending, ""},
		"an id with a colon": {
			textReceipt("id:node:7F stat:DELETED"), "node:7F", provider.Undelivered, "DELETED",
		},
		"strange state": {
			textReceipt("id:7F stat:BUFFRED"), "7F", provider.Pending, "BUFFRED",
		},
		"accepted is not an end": {
			textReceipt("id:7F stat:ACCEPTD"), "7F", provider.Pending, "ACCEPTD",
		},
		"unknown is not an end": {
			textReceipt("id:7F stat:UNKNOWN"), "7F", provider.Pending, "UNKNOWN",
		},
		"a number as error": {
			textReceipt("id:7F stat:UNDELIV err:447700900123"), "7F", provider.Undelivered,
			"UNDELIV",
		},
		"the text says stat": {
			textReceipt("id:7F text:stat:DELIVRD err:1"), "7F", provider.Pending, "",
		},
		"sub is not stat": {textReceipt("id:7F substat:DELIVRD"), "7F", provider.Pending, ""},
		"parameters": {
			named(textReceipt(""), id, state(2)), "abc-7", provider.Delivered, "DELIVRD",
		},
		"parameters win": {
			named(textReceipt(full), id, state(5)), "abc-7", provider.Undelivered, "UNDELIV/000",
		},
		"only the state": {
			named(textReceipt("id:7F stat:DELIVRD"), state(3)), "7F", provider.Undelivered,
			"EXPIRED",
		},
		"only the id": {
			named(textReceipt("id:7F stat:DELIVRD"), id), "abc-7", provider.Delivered, "DELIVRD",
		},
		"state without word": {
			named(textReceipt("id:7F stat:DELIVRD"), state(77)), "7F", provider.Delivered,
			"DELIVRD",
		},
		"state on its way": {
			named(textReceipt("id:7F"), state(1)), "7F", provider.Pending, "ENROUTE",
		},
		"network error": {
			named(textReceipt("id:7F"), state(5),
				pdu.TLV{Tag: pdu.TagNetworkErrorCode, Value: []byte{3, 0, 27}}), "7F",
			provider.Undelivered, "UNDELIV/027",
		},
		"payload": {
			named(textReceipt(""), pdu.TLV{Tag: pdu.TagMessagePayload, Value: []byte(full)}),
			"0123456789", provider.Delivered, "DELIVRD/000",
		},
		"no esm_class": {
			named(pdu.Message{}, id, state(2)), "abc-7", provider.Delivered, "DELIVRD",
		},
		"of the handset": {
			named(pdu.Message{ESMClass: pdu.ESMClassHandsetAck}, id, state(2)), "abc-7", provider.Delivered,
			"DELIVRD",
		},
		"of the handset, in text": {
			named(pdu.Message{ESMClass: pdu.ESMClassHandsetAck, ShortMessage: []byte(full)}, id), "abc-7",
			provider.Delivered, "DELIVRD/000",
		},
		"other bits": {
			pdu.Message{
				ESMClass: pdu.ESMClassReceipt | pdu.ESMClassUDHI | 3, ShortMessage: []byte(full),
			}, "0123456789", provider.Delivered, "DELIVRD/000",
		},
		"intermediate": {
			pdu.Message{ESMClass: pdu.ESMClassIntermediate, ShortMessage: []byte(full)},
			"0123456789", provider.Pending, "DELIVRD/000",
		},
		"empty parameter": {
			named(textReceipt(full), pdu.TLV{Tag: pdu.TagReceiptedMessageID}, state(2)),
			"0123456789", provider.Delivered, "DELIVRD/000",
		},
		"an id without end": {
			named(textReceipt(""), pdu.TLV{Tag: pdu.TagReceiptedMessageID, Value: []byte("abc-7")}),
			"abc-7", provider.Pending, "",
		},
		"an id of two numbers": {
			textReceipt("id:7F id:80 stat:DELIVRD"), "7F", provider.Delivered, "DELIVRD",
		},
	} {
		now := time.Unix(1_800_000_000, 0)
		got, ok := (&Config{}).parseReceipt(&c.m, now)
		want := provider.Receipt{
			Reference: c.reference, State: c.state, Cause: causes[name], Code: c.code, At: now,
		}
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %t\n%s", name, ok, diff)
		}
	}
}

func TestWhatNamesNoMessageIsNoReceipt(t *testing.T) {
	t.Parallel()
	id := pdu.TLV{Tag: pdu.TagReceiptedMessageID, Value: []byte("7F\x00")}
	for name, m := range map[string]pdu.Message{
		"a subscriber's message": {ShortMessage: []byte("id:7F stat:DELIVRD")},
		"a manual answer":        {ESMClass: 0x10, TLVs: pdu.TLVs{id}},
	} {
		if r, ok := (&Config{}).parseReceipt(&m, time.Now()); ok {
			t.Errorf("%s was read as %+v", name, r)
		}
	}
}

// TestAReceiptWithoutMessageIDHasNoReference: the empty reference lets it be counted.
func TestAReceiptWithoutMessageIDHasNoReference(t *testing.T) {
	t.Parallel()
	inText := textReceipt("id:7F stat:DELIVRD err:000")
	for name, m := range map[string]pdu.Message{
		"no id":             textReceipt("sub:001 stat:DELIVRD err:000 text:"),
		"an empty id":       textReceipt("id: stat:DELIVRD"),
		"nothing":           textReceipt(""),
		"a binary id":       textReceipt("id:\x01\xff stat:DELIVRD"),
		"an endless id":     textReceipt("id:" + strings.Repeat("7", maxReference+1)),
		"an id in the text": textReceipt("stat:DELIVRD text:id:7F"),
		"of the handset, without parameters": {
			ESMClass: pdu.ESMClassHandsetAck, ShortMessage: []byte("id:7F stat:DELIVRD err:000"),
		},
		"UCS-2": {
			ESMClass: pdu.ESMClassReceipt, DataCoding: pdu.CodingUCS2,
			ShortMessage: []byte("\x00i\x00d\x00:\x007\x00F"),
		},
	} {
		if r, ok := (&Config{}).parseReceipt(&m, time.Now()); !ok || r.Reference != "" ||
			r.Key != "" {
			t.Errorf("%s was read as %+v, %t", name, r, ok)
		}
	}
	elsewhere := Config{ReceiptID: ReceiptID{From: ParameterID}}
	if r, ok := elsewhere.parseReceipt(&inText, time.Now()); !ok || r.Reference != "" {
		t.Errorf("an id outside the configured place: %+v, %t", r, ok)
	}
}

// FuzzParseReceipt checks that no receipt makes the parser panic under any settings, and that the
// result is bounded, printable and free of longer numbers.
func FuzzParseReceipt(f *testing.F) {
	f.Add(
		byte(4), []byte(
			"id:0123456789 sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:DELIVRD "+
				"err:000 text:Hi"), []byte(nil), byte(0), byte(0))
	f.Add(byte(0), []byte("ID :7F,Stat: undeliv;ERR:012"), []byte("7F\x00"), byte(5), byte(0xFF))
	f.Add(byte(0x20), []byte("id:id:stat:err:"), []byte{0}, byte(200), byte(3))
	f.Fuzz(func(t *testing.T, esmClass byte, text, id []byte, state, set byte) {
		m := pdu.Message{ESMClass: esmClass, ShortMessage: text, TLVs: pdu.TLVs{
			pdu.Uint8(pdu.TagMessageState, state),
			{Tag: pdu.TagReceiptedMessageID, Value: id},
			{Tag: pdu.TagNetworkErrorCode, Value: id},
			{Tag: 0x1400, Value: id},
		}}
		cfg := Config{
			GSMErrors: set&1 != 0, UntypedReceipts: set&2 != 0,
			ReceiptKeyTLV: 0x1400 * pdu.Tag(set>>2&1),
			ReceiptID: ReceiptID{
				Form: IDForm(set >> 3 % 3), Case: IDCase(set >> 5 % 3), From: IDSource(state % 3),
				Width: int(set) % (maxReference + 1),
			},
		}
		r, ok := cfg.parseReceipt(&m, time.Time{})
		if !ok && (r != provider.Receipt{}) || len(r.Reference) > maxReference ||
			!printableASCII(r.Reference) {
			t.Fatalf("reference %q, key %q, %t", r.Reference, r.Key, ok)
		}
		if len(r.Key) != 0 && len(r.Key) != keyDigits {
			t.Fatalf("key %q", r.Key)
		}
		if len(r.Code) > 2*maxReceiptWord+1 || !printableASCII(r.Code) ||
			strings.ContainsAny(r.Code, " +:") {
			t.Fatalf("code %q", r.Code)
		}
		if r.Cause != provider.Unspecified && r.State != provider.Undelivered {
			t.Fatalf("%v because of %q", r.State, r.Cause)
		}
	})
}

// next receives from a channel, with a timeout.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(testTimeout):
		t.Fatal("nothing was received in time")
		panic("unreachable")
	}
}

// TestReceiptsThatCannotBeTakenComeAgain refuses the first receipt, like a process whose receivers
// are full.
func TestReceiptsThatCannotBeTakenComeAgain(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Receipts: true}})
	var calls atomic.Int64
	taken := make(chan provider.Receipt, 1)
	cfg := fastConfig(srv.Addr())
	cfg.OnReceipt = atOnce(func(r provider.Receipt) bool {
		if calls.Add(1) == 1 {
			return false
		}
		taken <- r
		return true
	})
	c := startClient(t, cfg)
	result := send(c, submission(1))
	r := next(t, taken)
	if r.Reference != result.Reference || r.State != provider.Delivered ||
		r.Code != "DELIVRD/000" || r.At.IsZero() {
		t.Errorf("receipt %+v for %q", r, result.Reference)
	}
	tier.Eventually(t, "the receipt is settled", func() bool { return srv.Stats().ReceiptsTaken == 1 })
	if n := srv.Stats().ReceiptsSent; n != 2 {
		t.Errorf("%d receipts were sent, want one and its repetition", n)
	}
}

// TestEveryPartAsksForItsFinalReceipt even if the settings ask for another kind.
func TestEveryPartAsksForItsFinalReceipt(t *testing.T) {
	t.Parallel()
	for _, asked := range []byte{pdu.ReceiptNone, pdu.ReceiptFinal, pdu.ReceiptFailure} {
		srv := startServer(
			t, smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Receipts: true}})
		taken := make(chan provider.Receipt, 10)
		cfg := fastConfig(srv.Addr())
		cfg.RegisteredDelivery = asked
		cfg.OnReceipt = atOnce(func(r provider.Receipt) bool { taken <- r; return true })
		c := startClient(t, cfg)
		long := submission(1)
		long.Text = strings.Repeat("Your code is 123456. ", 20)
		result := send(c, long)
		if len(result.Parts) < 2 || result.Outcome != provider.Accepted {
			t.Fatalf("result %+v", result)
		}
		references := map[string]bool{}
		for _, p := range result.Parts {
			references[p.Reference] = true
		}
		for range result.Parts {
			r := next(t, taken)
			if !references[r.Reference] {
				t.Errorf("receipt %+v matches none of %v", r, references)
			}
			delete(references, r.Reference)
		}
	}
}

// TestMessagesOfSubscribersAreNoReceipts: they are answered and passed to OnDeliver alone. A
// receipt without an id is still a receipt.
func TestMessagesOfSubscribersAreNoReceipts(t *testing.T) {
	t.Parallel()
	receipts, messages := make(chan provider.Receipt, 3), make(chan pdu.DeliverSM, 3)
	_, peer := startRaw(t, Config{
		OnReceipt: atOnce(func(r provider.Receipt) bool { receipts <- r; return true }),
		OnDeliver: func(_ context.Context, d pdu.DeliverSM) pdu.Status {
			messages <- d
			return pdu.StatusOK
		},
	})
	inbound, receipt, unnamed := pdu.Message{ShortMessage: []byte("STOP")},
		textReceipt("id:7F stat:DELIVRD"), textReceipt("stat:DELIVRD")
	peer.send(0, 1, &pdu.DeliverSM{Message: inbound})
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK || h.Sequence != 1 {
		t.Errorf("answer %+v", h)
	}
	peer.send(0, 2, &pdu.DeliverSM{Message: receipt})
	peer.expect(pdu.CommandDeliverSMResp)
	peer.send(0, 3, &pdu.DataSM{
		ESMClass: pdu.ESMClassReceipt,
		TLVs:     pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: receipt.ShortMessage}},
	})
	peer.expect(pdu.CommandDataSMResp)
	peer.send(0, 4, &pdu.DeliverSM{Message: unnamed})
	peer.expect(pdu.CommandDeliverSMResp)
	if d := next(t, messages); string(d.ShortMessage) != "STOP" {
		t.Errorf("delivery %+v", d)
	}
	for _, want := range []string{"7F", "7F", ""} {
		if r := next(t, receipts); r.Reference != want || r.State != provider.Delivered {
			t.Errorf("receipt %+v, want of %q", r, want)
		}
	}
	if len(receipts) != 0 || len(messages) != 0 {
		t.Errorf("%d receipts and %d more deliveries", len(receipts), len(messages))
	}
	go answerUnbind(peer)
}

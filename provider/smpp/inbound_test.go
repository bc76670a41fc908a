package smpp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/provider/sms"
)

func TestMessagesOfSubscribersAreReadInTheirAlphabet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		coding byte
		zero   Alphabet
		octets string
		want   string
	}{
		"GSM":                       {0, GSM7, "\x00\x1b\x65 STOP", "@€ STOP"},
		"GSM that is none":          {0, GSM7, "caf\xe9", "café"},
		"Latin-1 behind zero":       {0, Latin1, "caf\xe9", "café"},
		"ASCII":                     {1, GSM7, "@STOP", "@STOP"},
		"Latin-1":                   {3, GSM7, "caf\xe9", "café"},
		"UCS-2":                     {8, GSM7, "\x04\x1f\xd8\x3d\xde\x00", "П😀"},
		"UCS-2, cut":                {8, GSM7, "\x04\x1f\x04", "П"},
		"Cyrillic":                  {6, GSM7, "\xbf\xe0\xd8\xf0\xfd\xa1", "При№§Ё"},
		"Hebrew":                    {7, GSM7, "\xe0\xfa\xaa!\xdf", "את×!‗"},
		"a class":                   {0xF1, GSM7, "hi", "hi"},
		"UCS-2 with a class":        {0x19, GSM7, "\x00h", "h"},
		"message waiting":           {0xC8, GSM7, "hi", "hi"},
		"message waiting in UCS-2":  {0xE0, GSM7, "\x00h", "h"},
		"general, default alphabet": {0x10, Latin1, "\x00", "@"},
	} {
		if got, ok := decodeText(c.coding, c.zero, sms.Shift{}, []byte(c.octets)); !ok ||
			got != c.want {
			t.Errorf("%s: %q, %t; want %q", name, got, ok, c.want)
		}
	}
	for _, coding := range []byte{2, 4, 5, 9, 10, 13, 14, 0x14, 0x24, 0x38, 0x1C, 0x80, 0xF4} {
		if got, ok := decodeText(coding, GSM7, sms.Shift{}, []byte("hi")); ok {
			t.Errorf("data_coding 0x%02x was read as %q", coding, got)
		}
	}
}

func TestAddressesGetTheirPlusWhereTheyAreInternational(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]pdu.Address{
		"+447700900123": {TON: 1, NPI: 1, Addr: "447700900123"},
		"+447700900124": {TON: 0, Addr: "447700900124"},
		"+447700900125": {TON: 2, Addr: "+447700900125"},
		"+447700900126": {TON: 1, Addr: "00447700900126"},
		"07700900123":   {TON: 2, NPI: 1, Addr: "07700900123"},
		"07700900124":   {TON: 0, Addr: "07700900124"},
		"60777":         {TON: 1, NPI: 1, Addr: "60777"},
		"60778":         {TON: 3, Addr: "60778"},
		"12345678":      {TON: 0, Addr: "12345678"},
		"ACME":          {TON: 5, Addr: "ACME"},
		"":              {},
	} {
		if got := (&Config{}).e164(a); got != want {
			t.Errorf("%+v is %q, want %q", a, got, want)
		}
	}
	for want, a := range map[string]pdu.Address{
		"9123456780":    {TON: 0, Addr: "9123456780"},
		"+447700900127": {TON: 0, Addr: "+447700900127"},
		"+447700900128": {TON: 0, Addr: "00447700900128"},
		"+447700900129": {TON: 1, Addr: "447700900129"},
	} {
		if got := (&Config{NationalUnknown: true}).e164(a); got != want {
			t.Errorf("%+v with national numbers is %q, want %q", a, got, want)
		}
	}
}

func TestPartsOfInboundMessagesSayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	udh := func(octets string) pdu.Message {
		return pdu.Message{ESMClass: pdu.ESMClassUDHI, ShortMessage: []byte(octets)}
	}
	sar := func(number, total byte) pdu.Message {
		return pdu.Message{ShortMessage: []byte("hi"), TLVs: pdu.TLVs{
			pdu.Uint16(pdu.TagSARMsgRefNum, 0xABCD), pdu.Uint8(pdu.TagSARTotalSegments, total),
			pdu.Uint8(pdu.TagSARSegmentSeqnum, number),
		}}
	}
	for name, c := range map[string]struct {
		m    pdu.Message
		want provider.Inbound
	}{
		"whole": {
			pdu.Message{ShortMessage: []byte("hi")}, provider.Inbound{Text: "hi"},
		},
		"8 bit": {
			udh("\x05\x00\x03\x07\x03\x02hi"),
			provider.Inbound{Text: "hi", Group: 7, Part: 1, Parts: 3},
		},
		"16 bit": {
			udh("\x06\x08\x04\x12\x34\x03\x01hi"),
			provider.Inbound{Text: "hi", Group: 0x1234, Parts: 3},
		},
		"Turkish": {
			udh("\x08\x24\x01\x01\x00\x03\x07\x02\x02\x1bs"),
			provider.Inbound{Text: "ş", Group: 7, Part: 1, Parts: 2},
		},
		"whole, with half of an emoji": {
			pdu.Message{DataCoding: 8, ShortMessage: []byte("\xd8\x3d")},
			provider.Inbound{Text: "\uFFFD"},
		},
		"part with half of an emoji": {
			pdu.Message{
				ESMClass: pdu.ESMClassUDHI, DataCoding: 8,
				ShortMessage: []byte("\x05\x00\x03\x07\x02\x01\xd8\x3d"),
			},
			provider.Inbound{Text: "\U0010D83D", Group: 7, Parts: 2},
		},
		"part of none":         {udh("\x05\x00\x03\x07\x00\x00hi"), provider.Inbound{Text: "hi"}},
		"part beyond the last": {udh("\x05\x00\x03\x07\x02\x03hi"), provider.Inbound{Text: "hi"}},
		"a port":               {udh("\x04\x04\x02\x00\x00hi"), provider.Inbound{Text: "hi"}},
		"header out of bounds": {udh("\x20hi"), provider.Inbound{Text: " hi"}},
		"sar": {
			sar(2, 3), provider.Inbound{Text: "hi", Group: 0xABCD, Part: 1, Parts: 3},
		},
		"sar beyond the last": {sar(4, 3), provider.Inbound{Text: "hi"}},
	} {
		got, ok := (&Config{}).parseInbound(&c.m, time.Time{})
		if diff := cmp.Diff(c.want, got); diff != "" || !ok {
			t.Errorf("%s: %t %s", name, ok, diff)
		}
	}
}

func TestReceiptsAndAcknowledgementsAreNoInboundMessages(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]pdu.Message{
		"receipt":        textReceipt("id:7F stat:DELIVRD"),
		"unnamed":        textReceipt("stat:DELIVRD"),
		"intermediate":   {ESMClass: pdu.ESMClassIntermediate},
		"of the handset": {ESMClass: pdu.ESMClassHandsetAck, ShortMessage: []byte("received")},
		"no esm_class": {
			TLVs: pdu.TLVs{
				pdu.CString(pdu.TagReceiptedMessageID, "7F"), pdu.Uint8(pdu.TagMessageState, 2),
			},
		},
		"receipt with an id and no esm_class": {
			TLVs:         pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, "7F")},
			ShortMessage: []byte("id:7F stat:DELIVRD"),
		},
		"binary":          {DataCoding: 4, ShortMessage: []byte{1, 2}},
		"an odd alphabet": {DataCoding: 5, ShortMessage: []byte("hi")},
	} {
		if in, ok := (&Config{}).parseInbound(&m, time.Time{}); ok {
			t.Errorf("%s was read as %+v", name, in)
		}
	}
	byHand := pdu.Message{
		ESMClass: pdu.ESMClassUserAck, ShortMessage: []byte("yes"),
		Source: pdu.Address{TON: 1, Addr: "447700900123"},
		TLVs:   pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, "7F")}, // of our message
	}
	if in, ok := (&Config{}).parseInbound(&byHand, time.Time{}); !ok || in.Text != "yes" ||
		in.From != "+447700900123" || in.Reference != "" {
		t.Errorf("a manual acknowledgement: %+v", in)
	}
}

// TestInboundMessagesComeWholeInEveryForm lets the SMSC split texts and joins what arrives.
func TestInboundMessagesComeWholeInEveryForm(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	got := make(chan provider.Inbound, 100)
	cfg := fastConfig(srv.Addr())
	cfg.OnInbound = func(in provider.Inbound) bool { got <- in; return true }
	cfg.OnReceipt = atOnce(func(provider.Receipt) bool { t.Error("a receipt"); return true })
	startClient(t, cfg)
	tier.Check(t, func(r *rapid.T) {
		m := smpptest.Inbound{
			From: "447700900123", To: "60777", Reference: 0x1234,
			Text: rapid.StringOfN(rapid.RuneFrom([]rune("aZ@€[ж😀\n ")), 1, 300, -1).Draw(r, "text"),
			ID:   rapid.SampledFrom([]string{"", "in-7"}).Draw(r, "id"),
			SAR:  rapid.Bool().Draw(r, "sar"), Wide: rapid.Bool().Draw(r, "wide"),
			DataSM: rapid.Bool().Draw(r, "data_sm"),
		}
		parts := make([]string, srv.SendInbound(m))
		for range parts {
			in := next(t, got)
			if in.From != "+447700900123" || in.To != "60777" || in.Reference != m.ID ||
				in.At.IsZero() || max(in.Parts, 1) != len(parts) {
				r.Fatalf("part %+v of %d", in, len(parts))
			}
			parts[in.Part] = in.Text
		}
		if text := strings.Join(parts, ""); text != m.Text {
			r.Fatalf("read %q, want %q", text, m.Text)
		}
	})
}

// TestInboundMessagesThatCannotBeTakenComeAgain refuses the first one.
func TestInboundMessagesThatCannotBeTakenComeAgain(t *testing.T) {
	t.Parallel()
	takes := make(chan bool, 2)
	takes <- false
	takes <- true
	_, peer := startRaw(t, Config{
		OnInbound: func(in provider.Inbound) bool { return in.Text == "STOP" && <-takes },
	})
	for _, want := range []pdu.Status{pdu.StatusReceiverTemporary, pdu.StatusOK} {
		peer.send(0, 7, &pdu.DeliverSM{Message: pdu.Message{ShortMessage: []byte("STOP")}})
		if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != want {
			t.Errorf("answer %v, want %v", h.Status, want)
		}
	}
	peer.send(0, 8, &pdu.DeliverSM{Message: pdu.Message{DataCoding: 4, ShortMessage: []byte{1}}})
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusReceiverReject {
		t.Errorf("a message that is not text was answered %v", h.Status)
	}
	peer.send(0, 9, &pdu.DeliverSM{Message: textReceipt("id:7F stat:DELIVRD")})
	if h := peer.expect(pdu.CommandDeliverSMResp); h.Status != pdu.StatusOK {
		t.Errorf("a receipt without a handler was answered %v", h.Status)
	}
	go answerUnbind(peer)
}

// FuzzParseInbound checks that no deliver_sm makes the parser panic, and that the result is valid
// UTF-8 and names an existing part.
func FuzzParseInbound(f *testing.F) {
	f.Add(byte(0x40), byte(0), byte(1), []byte("\x05\x00\x03\x07\x03\x02hi"), uint16(1), byte(2),
		byte(2))
	f.Add(byte(0), byte(8), byte(0), []byte("\x04\x1f\xd8\x3d\xde"), uint16(0), byte(0), byte(0))
	f.Add(byte(0x40), byte(0), byte(0), []byte("\x08\x24\x01\x01\x25\x01\x0d\x00\x03\x1b\x1b"),
		uint16(0), byte(0), byte(0))
	f.Fuzz(func(t *testing.T, esmClass, coding, zero byte, octets []byte, group uint16, number,
		total byte,
	) {
		m := pdu.Message{
			ESMClass: esmClass, DataCoding: coding, ShortMessage: octets,
			Source: pdu.Address{Addr: string(octets)}, TLVs: pdu.TLVs{
				pdu.Uint16(pdu.TagSARMsgRefNum, group), pdu.Uint8(pdu.TagSARTotalSegments, total),
				pdu.Uint8(pdu.TagSARSegmentSeqnum, number),
			},
		}
		in, ok := (&Config{Alphabet: Alphabet(zero % 3)}).parseInbound(&m, time.Time{})
		if in.Part < 0 || in.Parts < 0 || in.Part > 0 && in.Part >= in.Parts {
			t.Fatalf("part %d of %d", in.Part, in.Parts)
		}
		if ok && !utf8.ValidString(in.Text) {
			t.Fatalf("%q", in.Text)
		}
	})
}

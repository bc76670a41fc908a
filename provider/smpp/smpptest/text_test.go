package smpptest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

func TestContentFindsThePlaceOfAPart(t *testing.T) {
	t.Parallel()
	udh := func(octets string) *pdu.Message {
		return &pdu.Message{ESMClass: pdu.ESMClassUDHI, ShortMessage: []byte(octets)}
	}
	sar := &pdu.Message{ShortMessage: []byte("text"), TLVs: pdu.TLVs{
		pdu.Uint16(pdu.TagSARMsgRefNum, 0xABCD), pdu.Uint8(pdu.TagSARTotalSegments, 4),
		pdu.Uint8(pdu.TagSARSegmentSeqnum, 3),
	}}
	whole := concatenation{part: 1, parts: 1}
	turkish := concatenation{part: 1, parts: 1, shift: sms.Shift{Single: sms.Turkish}}
	for name, c := range map[string]struct {
		m     *pdu.Message
		place concatenation
		text  string
	}{
		"8 bit": {
			udh("\x05\x00\x03\x07\x03\x02text"),
			concatenation{reference: 7, part: 2, parts: 3},
			"text",
		},
		"16 bit": {
			udh("\x06\x08\x04\x01\x07\x03\x02text"),
			concatenation{reference: 0x107, part: 2, parts: 3},
			"text",
		},
		"behind another": {
			udh("\x09\x24\x02\x01\x01\x00\x03\x07\x03\x02text"),
			concatenation{reference: 7, part: 2, parts: 3},
			"text",
		},
		"no concatenation":     {udh("\x03\x24\x01\x01text"), turkish, "text"},
		"header out of bounds": {udh("\x20ab"), whole, "\x20ab"},
		"element out of it":    {udh("\x02\x00\x09text"), whole, "text"},
		"empty":                {udh(""), whole, ""},
		"sar":                  {sar, concatenation{reference: 0xABCD, part: 3, parts: 4}, "text"},
		"plain":                {&pdu.Message{ShortMessage: []byte("text")}, whole, "text"},
	} {
		place, octets := content(c.m)
		if place != c.place || string(octets) != c.text {
			t.Errorf("%s: %+v %q", name, place, octets)
		}
	}
}

func TestTextIsReadInItsAlphabet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		coding byte
		zero   Alphabet
		octets string
		want   string
	}{
		{pdu.CodingDefault, GSM7, "\x00\x1b\x65", "@€"},
		{pdu.CodingDefault, Latin1, "\xe9", "é"},
		{pdu.CodingLatin1, GSM7, "@\xe9", "@é"},
		{pdu.CodingUCS2, GSM7, "\xd8\x3d\xde\x00", "😀"},
		{pdu.CodingUCS2, GSM7, "odd", "odd"},
		{pdu.CodingDefault, GSM7, "\x80", "\u0080"},
	} {
		if got := decodeText(c.coding, c.zero, sms.Shift{}, []byte(c.octets)); got != c.want {
			t.Errorf("coding %d %q: %q, want %q", c.coding, c.octets, got, c.want)
		}
	}
}

func TestJoinPutsPartsTogetherAsAHandsetDoes(t *testing.T) {
	t.Parallel()
	part := func(to string, reference uint16, n, of int, text string) Submit {
		return Submit{From: "A", To: to, Reference: reference, Part: n, Parts: of, Text: text}
	}
	refused := part("1", 7, 2, 2, "no")
	refused.Status = pdu.StatusThrottled
	got := Join([]Submit{
		part("1", 7, 2, 2, "world"), part("2", 0, 1, 1, "one"), part("2", 0, 1, 1, "two"), refused,
		part("3", 9, 1, 2, "half"), part("1", 7, 1, 2, "hello "), part("3", 9, 1, 2, "half"),
		part("4", 1, 3, 2, "?"),
	})
	want := []Message{
		{From: "A", To: "1", Text: "hello world", Parts: 2, Complete: true},
		{From: "A", To: "2", Text: "one", Parts: 1, Complete: true},
		{From: "A", To: "2", Text: "two", Parts: 1, Complete: true},
		{From: "A", To: "3", Text: "half", Parts: 2, Repeated: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFatesHaveTheirWords(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]AnswerState{
		"answered": Answered, "dropped": Dropped, "cut": Cut, "AnswerState(9)": 9,
	} {
		if state.String() != want {
			t.Errorf("the word of %v is not %s", state, want)
		}
	}
}

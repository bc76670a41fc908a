package smpp

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/provider/smpp/pdu"
)

func TestIDsOfReceiptsBecomeThoseOfTheAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", maxReference)
	for name, c := range map[string]struct {
		form     ReceiptID
		id, want string
	}{
		"as it is":               {ReceiptID{}, "00aB", "00aB"},
		"hexadecimal":            {ReceiptID{Form: HexToDecimal}, "39F99DD5", "972660181"},
		"decimal":                {ReceiptID{Form: DecimalToHex}, "972660181", "39f99dd5"},
		"decimal with zeros":     {ReceiptID{Form: DecimalToHex}, "0972660181", "39f99dd5"},
		"capitals":               {ReceiptID{Form: DecimalToHex, Case: UpperCase}, "972660181", "39F99DD5"},
		"filled up":              {ReceiptID{Form: DecimalToHex, Width: 10}, "972660181", "0039f99dd5"},
		"decimal filled up":      {ReceiptID{Form: HexToDecimal, Width: 10}, "0x39f99dd5", "0972660181"},
		"zeros dropped":          {ReceiptID{Width: 1}, "000123", "123"},
		"nothing but zeros":      {ReceiptID{Width: 1}, "000", "0"},
		"small":                  {ReceiptID{Case: LowerCase}, "ABC-7F", "abc-7f"},
		"wider than 64 bits":     {ReceiptID{Form: HexToDecimal}, "ffffffffffffffffff", "4722366482869645213695"},
		"no number":              {ReceiptID{Form: DecimalToHex}, "node-7", "node-7"},
		"no number of that base": {ReceiptID{Form: DecimalToHex}, "7f", "7f"},
		"a sign":                 {ReceiptID{Form: DecimalToHex}, "-7", "-7"},
		"too long when turned":   {ReceiptID{Form: HexToDecimal}, long, long},
	} {
		if got := c.form.convert(c.id); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", name, c.id, got, c.want)
		}
	}
}

func TestTheIDIsTakenFromWhereTheSettingSays(t *testing.T) {
	t.Parallel()
	m := textReceipt("id:127 stat:DELIVRD")
	m.TLVs = pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, "7f")}
	for from, want := range map[IDSource]string{AnyID: "7f", TextID: "127", ParameterID: "7f"} {
		if got := (ReceiptID{From: from}).reference(&m, m.ShortMessage); got != want {
			t.Errorf("from %d: %q, want %q", from, got, want)
		}
	}
	m.TLVs = nil
	for from, want := range map[IDSource]string{AnyID: "127", TextID: "127", ParameterID: ""} {
		if got := (ReceiptID{From: from}).reference(&m, m.ShortMessage); got != want {
			t.Errorf("without the parameter, from %d: %q, want %q", from, got, want)
		}
	}
}

// TestEveryNumberSurvivesTheWayToReceiptAndBack writes an id as an answer does and as a receipt does.
func TestEveryNumberSurvivesTheWayToReceiptAndBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "id")
		width := rapid.SampledFrom([]int{0, 1, 10, 16, 20}).Draw(t, "width")
		answer, receipt, form := fmt.Sprintf("%0*x", width, n), fmt.Sprintf("%010d", n), ReceiptID{Form: DecimalToHex, Width: width}
		if rapid.Bool().Draw(t, "other way") {
			answer, receipt, form.Form = fmt.Sprintf("%0*d", width, n), fmt.Sprintf("%X", n), HexToDecimal
		}
		if got := form.convert(receipt); got != answer {
			t.Fatalf("%q becomes %q, want %q", receipt, got, answer)
		}
	})
}

package telnyx

import (
	"strings"
	"testing"

	"dispatcher/provider/sms"
)

// documented are the characters that Telnyx documents for its GSM-7, beside letters and digits; the
// escaped ones take two.
const documented = "\n\r !\"#$%&'()*+,-./:;<=>?@_£¥èéùìòØøÅåÆæßÉ¡ÄÖÑÜ¿äöñüà" + "~^|\\{}[]"

func TestTextsAreMeasuredInTheGSM7ThatTelnyxHas(t *testing.T) {
	t.Parallel()
	letter := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	for r := range rune(0x2100) {
		want := sms.UCS2
		if letter(r) || strings.ContainsRune(documented, r) {
			want = sms.GSM7
		}
		if got := measure(string(r)).Alphabet; got != want {
			t.Errorf("%q (%U) is sent in %v, want %v", r, r, got, want)
		}
	}
}

func TestSegmentsAreThoseThatTelnyxBills(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		strings.Repeat("x", 160):       1,
		strings.Repeat("x", 161):       2,
		strings.Repeat("[", 81):        2,
		strings.Repeat("x", 69) + "€":  1,
		strings.Repeat("x", 70) + "€":  2,
		strings.Repeat("x", 133) + "€": 2,
		strings.Repeat("x", 134) + "€": 3,
		strings.Repeat("🙂", 35):        1,
		strings.Repeat("🙂", 35) + "€":  2,
		"":                             1,
	} {
		if got := Segments(text); got != want {
			t.Errorf("%.5q of %d bytes has %d segments, want %d", text, len(text), got, want)
		}
	}
}

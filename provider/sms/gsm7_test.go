package sms_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

// The codes are copied by position from the tables of 3GPP TS 23.038, independently of the
// package's own table, so that the test finds errors in it.
var codes = []struct {
	char  string
	octet []byte
}{
	{"@", []byte{0x00}},
	{"£", []byte{0x01}},
	{"$", []byte{0x02}},
	{"¥", []byte{0x03}},
	{"è", []byte{0x04}},
	{"é", []byte{0x05}},
	{"ù", []byte{0x06}},
	{"ì", []byte{0x07}},
	{"ò", []byte{0x08}},
	{"Ç", []byte{0x09}},
	{"\n", []byte{0x0A}},
	{"Ø", []byte{0x0B}},
	{"ø", []byte{0x0C}},
	{"\r", []byte{0x0D}},
	{"Å", []byte{0x0E}},
	{"å", []byte{0x0F}},
	{"Δ", []byte{0x10}},
	{"_", []byte{0x11}},
	{"Φ", []byte{0x12}},
	{"Γ", []byte{0x13}},
	{"Λ", []byte{0x14}},
	{"Ω", []byte{0x15}},
	{"Π", []byte{0x16}},
	{"Ψ", []byte{0x17}},
	{"Σ", []byte{0x18}},
	{"Θ", []byte{0x19}},
	{"Ξ", []byte{0x1A}},
	{"Æ", []byte{0x1C}},
	{"æ", []byte{0x1D}},
	{"ß", []byte{0x1E}},
	{"É", []byte{0x1F}},
	{" ", []byte{0x20}},
	{"#", []byte{0x23}},
	{"¤", []byte{0x24}},
	{"%", []byte{0x25}},
	{"0", []byte{0x30}},
	{"?", []byte{0x3F}},
	{"¡", []byte{0x40}},
	{"A", []byte{0x41}},
	{"Z", []byte{0x5A}},
	{"Ä", []byte{0x5B}},
	{"Ö", []byte{0x5C}},
	{"Ñ", []byte{0x5D}},
	{"Ü", []byte{0x5E}},
	{"§", []byte{0x5F}},
	{"¿", []byte{0x60}},
	{"a", []byte{0x61}},
	{"z", []byte{0x7A}},
	{"ä", []byte{0x7B}},
	{"ö", []byte{0x7C}},
	{"ñ", []byte{0x7D}},
	{"ü", []byte{0x7E}},
	{"à", []byte{0x7F}},
	{"\f", []byte{0x1B, 0x0A}},
	{"^", []byte{0x1B, 0x14}},
	{"{", []byte{0x1B, 0x28}},
	{"}", []byte{0x1B, 0x29}},
	{"\\", []byte{0x1B, 0x2F}},
	{"[", []byte{0x1B, 0x3C}},
	{"~", []byte{0x1B, 0x3D}},
	{"]", []byte{0x1B, 0x3E}},
	{"|", []byte{0x1B, 0x40}},
	{"€", []byte{0x1B, 0x65}},
}

func TestGSM7CodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	for _, c := range codes {
		got, err := sms.AppendGSM7(nil, c.char)
		if err != nil || !cmp.Equal(got, c.octet) {
			t.Errorf("AppendGSM7(%q) = % x, %v; want % x", c.char, got, err, c.octet)
		}
		back, err := (sms.Shift{}).Decode(c.octet)
		if err != nil || back != c.char {
			t.Errorf("Decode(% x) = %q, %v; want %q", c.octet, back, err, c.char)
		}
	}
}

// fitsGSM7 reports whether the text needs no UCS-2, without national tables.
func fitsGSM7(text string) bool { return sms.Count(text, sms.Reference8).Alphabet == sms.GSM7 }

func TestGSM7HoldsExactly137Characters(t *testing.T) {
	t.Parallel()
	n := 0
	for r := rune(0); r <= 0x10FFFF; r++ {
		if (r < 0xD800 || r > 0xDFFF) && fitsGSM7(string(r)) {
			n++
		}
	}
	if n != 127+10 {
		t.Errorf("%d characters fit GSM-7, want 127 of the default table and 10 of the extension",
			n)
	}
}

func TestAppendGSM7RefusesWhatItLacksAndLeavesDstAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ok ç", "ok \x1b", "ok ‘", "ok \xff", "ok 😀", "ok α", "ok `"} {
		got, err := sms.AppendGSM7([]byte("kept"), text)
		if !errors.Is(err, sms.ErrAlphabet) || string(got) != "kept" {
			t.Errorf("AppendGSM7(%q) = %q, %v; want kept, ErrAlphabet", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "ok ") {
			t.Errorf("the error shows the text: %v", err)
		}
	}
}

func TestDecodingShowsUnknownEscapesAsTheStandardAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		octets []byte
		want   string
	}{
		{[]byte{0x1B, 0x41}, "A"},        // 0x41 is undefined in the extension table
		{[]byte{'a', 0x1B}, "a "},        // an escape without a next septet
		{[]byte{0x1B, 0x1B, 0x65}, " €"}, // reserved for another table
		{nil, ""},
	} {
		got, err := (sms.Shift{}).Decode(c.octets)
		if err != nil || got != c.want {
			t.Errorf("Decode(% x) = %q, %v; want %q", c.octets, got, err, c.want)
		}
	}
	for _, octets := range [][]byte{{0x80}, {0x1B, 0x80}, {'a', 0xFF}} {
		if _, err := (sms.Shift{}).Decode(octets); !errors.Is(err, sms.ErrEncoding) {
			t.Errorf("Decode(% x) error = %v, want ErrEncoding", octets, err)
		}
	}
}

func TestUCS2IsBigEndianUTF16(t *testing.T) {
	t.Parallel()
	want := []byte{0x04, 0x1F, 0xD8, 0x3D, 0xDE, 0x00, 0xFF, 0xFD}
	if got := sms.AppendUCS2(nil, "П😀\xff"); !cmp.Equal(got, want) {
		t.Errorf("AppendUCS2 = % x, want % x", got, want)
	}
	if got, err := sms.DecodeUCS2(want); err != nil || got != "П😀\uFFFD" {
		t.Errorf("DecodeUCS2 = %q, %v", got, err)
	}
	if got, err := sms.DecodeUCS2([]byte{0xD8, 0x3D, 0x00, 'a'}); err != nil || got != "\uFFFDa" {
		t.Errorf("DecodeUCS2 of a lone surrogate = %q, %v", got, err)
	}
	for _, cut := range []int{2, 4, 6} {
		first, _ := sms.DecodeUCS2Part(want[:cut])
		rest, err := sms.DecodeUCS2Part(want[cut:])
		if got := sms.JoinParts(first + rest); err != nil || got != "П😀\uFFFD" ||
			!utf8.ValidString(first+rest) {
			t.Errorf("cut at %d: %q and %q are %q, %v", cut, first, rest, got, err)
		}
	}
	if _, err := sms.DecodeUCS2([]byte{0}); !errors.Is(err, sms.ErrEncoding) {
		t.Errorf("DecodeUCS2 of an odd length: %v, want ErrEncoding", err)
	}
}

func TestEncodedTextsReadBackAsThemselves(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		valid := strings.ToValidUTF8(text, "\uFFFD")
		if got, err := sms.DecodeUCS2(sms.AppendUCS2(nil, valid)); err != nil || got != valid {
			t.Fatalf("UCS-2 read back as %q, %v", got, err)
		}
		if !fitsGSM7(text) {
			return
		}
		octets, err := sms.AppendGSM7(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (sms.Shift{}).Decode(octets); err != nil || got != text {
			t.Fatalf("GSM-7 read back as %q, %v", got, err)
		}
	})
}

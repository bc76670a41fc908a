package sms_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

func TestCountAtTheBoundaries(t *testing.T) {
	t.Parallel()
	const g, u = sms.GSM7, sms.UCS2
	rep := strings.Repeat
	for _, c := range []struct {
		name string
		text string
		ref  sms.Reference
		want sms.Size
	}{
		{"empty", "", sms.Reference8, sms.Size{Alphabet: g, Units: 0, Segments: 1}},
		{
			"one full segment", rep("a", 160), sms.Reference8,
			sms.Size{Alphabet: g, Units: 160, Segments: 1},
		},
		{
			"one septet more", rep("a", 161), sms.Reference8,
			sms.Size{Alphabet: g, Units: 161, Segments: 2},
		},
		{
			"two full segments", rep("a", 306), sms.Reference8,
			sms.Size{Alphabet: g, Units: 306, Segments: 2},
		},
		{"a third", rep("a", 307), sms.Reference8, sms.Size{Alphabet: g, Units: 307, Segments: 3}},
		{
			"two full, wide reference", rep("a", 304), sms.Reference16,
			sms.Size{Alphabet: g, Units: 304, Segments: 2},
		},
		{
			"a third, wide reference", rep("a", 305), sms.Reference16,
			sms.Size{Alphabet: g, Units: 305, Segments: 3},
		},
		{
			"euro takes two", rep("€", 80), sms.Reference8,
			sms.Size{Alphabet: g, Units: 160, Segments: 1},
		},
		{
			"pair on the boundary moves on", rep("a", 152) + "€" + rep("a", 152), sms.Reference8,
			sms.Size{Alphabet: g, Units: 306, Segments: 3},
		},
		{
			"pair before the boundary stays", rep("a", 151) + "€" + rep("a", 153), sms.Reference8,
			sms.Size{Alphabet: g, Units: 306, Segments: 2},
		},
		{
			"pairs waste one septet each", rep("€", 153), sms.Reference8,
			sms.Size{Alphabet: g, Units: 306, Segments: 3},
		},
		{
			"one full UCS-2 segment", rep("я", 70), sms.Reference8,
			sms.Size{Alphabet: u, Units: 70, Segments: 1},
		},
		{
			"one unit more", rep("я", 71), sms.Reference8,
			sms.Size{Alphabet: u, Units: 71, Segments: 2},
		},
		{
			"two full UCS-2 segments", rep("я", 134), sms.Reference8,
			sms.Size{Alphabet: u, Units: 134, Segments: 2},
		},
		{
			"a third UCS-2", rep("я", 135), sms.Reference8,
			sms.Size{Alphabet: u, Units: 135, Segments: 3},
		},
		{
			"two full UCS-2, wide reference", rep("я", 132), sms.Reference16,
			sms.Size{Alphabet: u, Units: 132, Segments: 2},
		},
		{
			"surrogate pair on the boundary", rep("я", 66) + "😀" + rep("я", 66), sms.Reference8,
			sms.Size{Alphabet: u, Units: 134, Segments: 3},
		},
		{
			"one odd character moves all", rep("a", 70) + "ç", sms.Reference8,
			sms.Size{Alphabet: u, Units: 71, Segments: 2},
		},
		{
			"invalid byte is U+FFFD", "a\xff", sms.Reference8,
			sms.Size{Alphabet: u, Units: 2, Segments: 1},
		},
		{
			"escape character is not GSM-7", "\x1b", sms.Reference8,
			sms.Size{Alphabet: u, Units: 1, Segments: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, sms.Count(c.text, c.ref)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// texts draws strings with many difficult cases: surrogate pairs, boundaries, look-alikes and bytes
// that are not UTF-8.
func texts() *rapid.Generator[string] {
	gsm := rapid.SampledFrom([]string{"a", "Z", " ", "\n", "@", "é", "Ω", "€", "{", "~", "\f"})
	mixed := rapid.SampledFrom(
		[]string{"a", "€", "ç", "я", "😀", "👨‍👩‍👧", "\xff", "\xf0\x9f", "’", "\u00A0", "\x1b"})
	pieces := rapid.OneOf(rapid.SliceOfN(gsm, 0, 700), rapid.SliceOfN(mixed, 0, 300))
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(pieces, func(p []string) string { return strings.Join(p, "") }),
	)
}

// failer receives the failures of a property: a test, a fuzz target or rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSplit checks every property of Split and Count for one text.
func checkSplit(t failer, text string, ref sms.Reference) {
	t.Helper()
	m, size := sms.Split(text, ref), sms.Count(text, ref)
	if want := (sms.Size{
		Alphabet: m.Alphabet, Units: m.Units, Segments: len(m.Segments),
	}); size != want {
		t.Fatalf("Count = %+v, Split = %+v", size, want)
	}
	if strings.Join(m.Segments, "") != text {
		t.Fatalf("the joined segments are not the text")
	}
	single, each := sms.Capacity(m.Alphabet, ref)
	if len(m.Segments) == 1 {
		each = single
	}
	sum := 0
	for i, s := range m.Segments {
		n := encodedUnits(t, m.Alphabet, s)
		sum += n
		if n > each || (n == 0 && text != "") {
			t.Fatalf("segment %d holds %d units, may hold 1 to %d", i, n, each)
		}
		if i+1 < len(m.Segments) && n < each-1 {
			t.Fatalf("segment %d holds %d units of %d: only a pair may leave one empty", i, n, each)
		}
	}
	if sum != m.Units {
		t.Fatalf("the segments hold %d units, the text %d", sum, m.Units)
	}
}

// encodedUnits encodes one segment alone, so that it finds split pairs and characters, and returns
// its length in units.
func encodedUnits(t failer, a sms.Alphabet, segment string) int {
	t.Helper()
	if a == sms.GSM7 {
		octets, err := sms.AppendGSM7(nil, segment)
		if err != nil {
			t.Fatalf("a GSM-7 segment does not encode: %v", err)
		}
		if len(octets) > 0 && octets[len(octets)-1] == sms.Escape {
			t.Fatalf("a segment ends in an escape")
		}
		return len(octets)
	}
	octets := sms.AppendUCS2(nil, segment)
	for i := 0; i < len(octets); i += 2 {
		unit := rune(octets[i])<<8 | rune(octets[i+1])
		low := i+3 < len(octets) && utf16.IsSurrogate(rune(octets[i+2])<<8|rune(octets[i+3]))
		if utf16.IsSurrogate(unit) {
			if !low {
				t.Fatalf("a segment splits a surrogate pair")
			}
			i += 2
		}
	}
	return len(octets) / 2
}

func TestSplitKeepsEveryProperty(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		ref := rapid.SampledFrom([]sms.Reference{sms.Reference8, sms.Reference16}).Draw(t, "ref")
		checkSplit(t, texts().Draw(t, "text"), ref)
	})
}

func TestSplitNeverTearsACharacter(t *testing.T) {
	t.Parallel()
	m := sms.Split(strings.Repeat("😀", 200), sms.Reference8)
	for i, s := range m.Segments {
		if !utf8.ValidString(s) {
			t.Errorf("segment %d is not valid UTF-8", i)
		}
	}
	if want := []int{33, 33, 33, 33, 33, 33, 2}; !slices.EqualFunc(m.Segments, want,
		func(s string, n int) bool {
			return utf8.RuneCountInString(s) == n
		}) {
		t.Errorf("segments do not hold %v characters", want)
	}
}

// AllocsPerRun must not run in parallel with other tests.
func TestCountAndUnchangedSubstituteDoNotAllocate(t *testing.T) {
	text := strings.Repeat("Your code is 123456 €. ", 20)
	cyrillic := strings.Repeat("Ваш код 123456. ", 20)
	if n := testing.AllocsPerRun(100, func() {
		sms.Count(text, sms.Reference8)
		sms.Count(cyrillic, sms.Reference16)
		sms.Substitute(text)
		sms.Substitute(cyrillic)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzSplit(f *testing.F) {
	for _, text := range []string{"", "a", "\xff", "€", strings.Repeat("€", 81), strings.Repeat("😀",
		40), strings.Repeat("a", 161)} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, wide bool) {
		ref := sms.Reference8
		if wide {
			ref = sms.Reference16
		}
		checkSplit(t, text, ref)
		checkSubstitute(t, text)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x1B, 0x65, 'a'})
	f.Add([]byte{0xD8, 0x3D, 0xDE, 0x00})
	f.Fuzz(func(t *testing.T, octets []byte) {
		if text, err := (sms.Shift{}).Decode(octets); err == nil {
			if _, err := sms.AppendGSM7(nil, text); err != nil {
				t.Errorf("decoded GSM-7 does not encode: %v", err)
			}
		}
		if text, err := sms.DecodeUCS2(octets); err == nil && !utf8.ValidString(text) {
			t.Error("decoded UCS-2 is not valid UTF-8")
		}
	})
}

var benchmarkTexts = map[string]string{
	"otp":       "Your ACME code is 123456. It is valid for 10 minutes.",
	"gsm7x3":    strings.Repeat("Order 7731 ships today, total €12. ", 12),
	"ucs2x3":    strings.Repeat("Ваш заказ отправлен. ", 8),
	"one emoji": strings.Repeat("Order 7731 ships today. ", 6) + "😀",
}

func BenchmarkCount(b *testing.B) {
	for name, text := range benchmarkTexts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sms.Count(text, sms.Reference8)
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, text := range benchmarkTexts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sms.Split(text, sms.Reference8)
			}
		})
	}
}

func BenchmarkAppendGSM7(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sms.AppendGSM7(buf, benchmarkTexts["otp"]); err != nil {
			b.Fatal(err)
		}
	}
}

package sms_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

// everyLanguage lists the languages that have tables.
func everyLanguage() []sms.Language {
	var list []sms.Language
	for _, word := range sms.LanguageWords() {
		l, err := sms.ParseLanguage(word)
		if err != nil {
			panic(err)
		}
		list = append(list, l)
	}
	return list
}

// all allows every table.
func all() sms.Tables {
	t := sms.Tables{Single: sms.LanguagesOf(everyLanguage()...)}
	for _, l := range everyLanguage() {
		if l.HasLocking() {
			t.Locking |= sms.LanguagesOf(l)
		}
	}
	return t
}

func TestLanguagesHaveTheIdentifiersOfTheStandard(t *testing.T) {
	t.Parallel()
	want := []string{
		"turkish", "spanish", "portuguese", "bengali", "gujarati", "hindi", "kannada", "malayalam",
		"oriya", "punjabi", "tamil", "telugu", "urdu",
	}
	if diff := cmp.Diff(want, sms.LanguageWords()); diff != "" {
		t.Error(diff)
	}
	for i, l := range everyLanguage() {
		if int(l) != i+1 || l.String() != want[i] {
			t.Errorf("%s is language %d, want %d", l, uint8(l), i+1)
		}
		if l.HasLocking() != (l != sms.Spanish) {
			t.Errorf("%s: HasLocking = %v", l, l.HasLocking())
		}
	}
	for _, word := range []string{"", "default", "Turkish", "klingon"} {
		if _, err := sms.ParseLanguage(word); err == nil {
			t.Errorf("ParseLanguage(%q) gave no error", word)
		}
	}
	if got := sms.Language(99).String(); got != "Language(99)" {
		t.Errorf("String = %q", got)
	}
}

// The codes are copied by position from the tables of 3GPP TS 23.038 annex A, independently of the
// package's own tables, so that the test finds errors in them. They are the corners of each table
// and the characters that differ between tables.
func TestNationalCodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shift sms.Shift
		text  string
		octet []byte
	}{
		{
			sms.Shift{Locking: sms.Turkish},
			"€ıĞğŞşİçà",
			[]byte{0x04, 0x07, 0x0B, 0x0C, 0x1C, 0x1D, 0x40, 0x60, 0x7F},
		},
		{
			sms.Shift{Single: sms.Turkish},
			"ĞİŞç€ğış",
			[]byte{
				0x1B, 0x47, 0x1B, 0x49, 0x1B, 0x53, 0x1B, 0x63, 0x1B, 0x65, 0x1B, 0x67, 0x1B, 0x69,
				0x1B, 0x73,
			},
		},
		{
			sms.Shift{Single: sms.Spanish},
			"çÁÍÓÚáíóú",
			[]byte{
				0x1B, 0x09, 0x1B, 0x41, 0x1B, 0x49, 0x1B, 0x4F, 0x1B, 0x55, 0x1B, 0x61, 0x1B, 0x69,
				0x1B, 0x6F, 0x1B, 0x75,
			},
		},
		{sms.Shift{Locking: sms.Portuguese}, "êúíóçÔôÁáªÇÀ∞^\\€Ó|ÂâÊºÍÃÕÚ~ãõ`", []byte{
			0x04, 0x06, 0x07, 0x08, 0x09, 0x0B, 0x0C, 0x0E, 0x0F, 0x12, 0x13, 0x14, 0x15, 0x16,
			0x17, 0x18, 0x19, 0x1A, 0x1C, 0x1D, 0x1E,
			0x24, 0x40, 0x5B, 0x5C, 0x5D, 0x60, 0x7B, 0x7C, 0x7D,
		}},
		{
			sms.Shift{Locking: sms.Portuguese, Single: sms.Portuguese},
			"ΦΓΩΠΨΣΘ",
			[]byte{
				0x1B, 0x12, 0x1B, 0x13, 0x1B, 0x15, 0x1B, 0x16, 0x1B, 0x17, 0x1B, 0x18, 0x1B, 0x19,
			},
		},
		{sms.Shift{Single: sms.Portuguese}, "êçÔôÁáÊÀÍÓÚÃÕÂíóúãõâ", []byte{
			0x1B, 0x05, 0x1B, 0x09, 0x1B, 0x0B, 0x1B, 0x0C, 0x1B, 0x0E, 0x1B, 0x0F, 0x1B, 0x1F,
			0x1B, 0x41, 0x1B, 0x49, 0x1B, 0x4F,
			0x1B, 0x55, 0x1B, 0x5B, 0x1B, 0x5C, 0x1B, 0x61, 0x1B, 0x69, 0x1B, 0x6F, 0x1B, 0x75,
			0x1B, 0x7B, 0x1B, 0x7C, 0x1B, 0x7F,
		}},
		{
			sms.Shift{Locking: sms.Bengali},
			"\u0981\u098C\u098F\u0990\u0993\u09A5\u09AC\u09B2\u09B6\u09BE\u09C4\u09CD\u09CE\u09D7\u09F1,)(",
			[]byte{
				0x00, 0x0B, 0x0F, 0x10, 0x13, 0x2A, 0x40, 0x46, 0x4A, 0x50, 0x56, 0x5F, 0x60, 0x7B,
				0x7F, 0x2C, 0x28, 0x29,
			},
		},
		{
			sms.Shift{Locking: sms.Gujarati},
			"\u0A81\u0A8D\u0A90\u0A91\u0A9F\u0AAC\u0AB5\u0AC5\u0AC9\u0AD0\u0AE0\u0AF1",
			[]byte{
				0x00, 0x0C, 0x10, 0x11, 0x22, 0x40, 0x49, 0x57, 0x5B, 0x60, 0x7B, 0x7F,
			},
		},
		{
			sms.Shift{Locking: sms.Hindi},
			"\u0901\u0905\u090E\u0910\u0915\u0929\u092C\u0939\u093C\u094D\u0950\u0972\u097F",
			[]byte{
				0x00, 0x03, 0x0E, 0x10, 0x15, 0x3C, 0x40, 0x4D, 0x4E, 0x5F, 0x60, 0x7B, 0x7F,
			},
		},
		{
			sms.Shift{Locking: sms.Hindi, Single: sms.Hindi},
			"\u0964\u0966\u096F\u0951\u0958\u095B\u0971A@",
			[]byte{
				0x1B, 0x19, 0x1B, 0x1C, 0x1B, 0x25, 0x1B, 0x26, 0x1B, 0x2C, 0x1B, 0x30, 0x1B, 0x3A,
				0x1B, 0x41, 0x1B, 0x00,
			},
		},
		{
			sms.Shift{Locking: sms.Kannada},
			"\u0C82\u0CA1\u0CAA\u0CAC\u0CBE\u0CD5\u0CE3",
			[]byte{0x01, 0x24, 0x3D, 0x40, 0x50, 0x60, 0x7F},
		},
		{
			sms.Shift{Locking: sms.Malayalam},
			"\u0D02\u0D21\u0D34\u0D3D\u0D57\u0D79",
			[]byte{0x01, 0x24, 0x48, 0x4F, 0x60, 0x7F},
		},
		{
			sms.Shift{Locking: sms.Oriya},
			"\u0B01\u0B2C\u0B33\u0B56\u0B63",
			[]byte{0x00, 0x40, 0x47, 0x60, 0x7F},
		},
		{
			sms.Shift{Locking: sms.Oriya, Single: sms.Oriya},
			"\u0B66\u0B6A\u0B5C\u0B71",
			[]byte{0x1B, 0x1C, 0x1B, 0x20, 0x1B, 0x26, 0x1B, 0x2C},
		},
		{
			sms.Shift{Locking: sms.Punjabi},
			"\u0A01\u0A0F\u0A3C\u0A42\u0A51\u0A74",
			[]byte{0x00, 0x0F, 0x4E, 0x54, 0x60, 0x7F},
		},
		{
			sms.Shift{Locking: sms.Tamil},
			"\u0B82\u0B9A\u0B9C\u0BA9\u0BAE\u0BB6\u0BD0\u0BF9",
			[]byte{0x01, 0x1A, 0x1D, 0x3C, 0x42, 0x4A, 0x60, 0x7F},
		},
		{
			sms.Shift{Single: sms.Tamil},
			"\u0BE6\u0BEE\u0BEF\u0BFA",
			[]byte{0x1B, 0x1C, 0x1B, 0x24, 0x1B, 0x25, 0x1B, 0x2E},
		},
		{
			sms.Shift{Locking: sms.Telugu},
			"\u0C01\u0C21\u0C3D\u0C55\u0C63",
			[]byte{0x00, 0x24, 0x4F, 0x60, 0x7F},
		},
		{
			sms.Shift{Single: sms.Telugu},
			"\u0C66\u0C6C\u0C6D\u0C58\u0C7F€",
			[]byte{0x1B, 0x1C, 0x1B, 0x22, 0x1B, 0x23, 0x1B, 0x26, 0x1B, 0x32, 0x1B, 0x65},
		},
		{
			sms.Shift{Locking: sms.Urdu},
			"\u0627\u067C\u062B\u06BA\u0654\u0670",
			[]byte{0x00, 0x0F, 0x10, 0x50, 0x60, 0x7F},
		},
		{
			sms.Shift{Single: sms.Urdu},
			"\u0600\u06F0\u060C\u06D4",
			[]byte{0x1B, 0x19, 0x1B, 0x1C, 0x1B, 0x26, 0x1B, 0x3F},
		},
	} {
		got, err := c.shift.Append(nil, c.text)
		if err != nil || !cmp.Equal(got, c.octet) {
			t.Errorf("%v: Append(%+q) = % x, %v; want % x", c.shift, c.text, got, err, c.octet)
		}
		if back, err := c.shift.Decode(c.octet); err != nil || back != c.text {
			t.Errorf("%v: Decode = %+q, %v; want %+q", c.shift, back, err, c.text)
		}
	}
}

// written lists every character that the tables can write.
func written(s sms.Shift) []string {
	var list []string
	for r := rune(0); r <= 0x2300; r++ {
		if _, err := s.Append(nil, string(r)); err == nil {
			list = append(list, string(r))
		}
	}
	return list
}

func TestTablesHoldAsManyCharactersAsTheStandard(t *testing.T) {
	t.Parallel()
	locking := map[sms.Language]int{
		sms.Spanish: 127, // those of the default alphabet, which Spanish uses
		sms.Turkish: 127, sms.Portuguese: 127, sms.Bengali: 114, sms.Gujarati: 120, sms.Hindi: 127,
		sms.Kannada:   120,
		sms.Malayalam: 120, sms.Oriya: 116, sms.Punjabi: 110, sms.Tamil: 102, sms.Telugu: 120,
		sms.Urdu: 127,
	}
	for _, l := range everyLanguage() {
		s, plain := sms.Shift{Single: l}, 0
		if l.HasLocking() {
			s.Locking = l
		}
		for _, c := range written(s) {
			if octets, _ := s.Append(nil, c); len(octets) == 1 {
				plain++
			}
		}
		if want := locking[l]; plain != want {
			t.Errorf("%s: %d characters without the escape, want %d", l, plain, want)
		}
	}
}

func TestEveryCharacterOfEveryPairOfTablesReadsBackAsItself(t *testing.T) {
	t.Parallel()
	for locking := range all().Locking.Each {
		for single := range all().Single.Each {
			s := sms.Shift{Locking: locking, Single: single}
			text := strings.Join(written(s), "")
			octets, err := s.Append(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := s.Decode(octets); err != nil || back != text {
				t.Errorf("%v: read back as %+q, %v", s, back, err)
			}
			if s == (sms.Shift{}) && len([]rune(text)) != 137 {
				t.Errorf("the default tables write %d characters, want 137", len([]rune(text)))
			}
		}
	}
}

func TestHeadersTakeSeptetsFromEverySegment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shift        sms.Shift
		ref          sms.Reference
		single, each int
		elements     []byte
	}{
		{sms.Shift{}, sms.Reference8, 160, 153, nil},
		{sms.Shift{}, sms.Reference16, 160, 152, nil},
		{sms.Shift{Single: sms.Spanish}, sms.Reference8, 155, 149, []byte{0x24, 1, 2}},
		{sms.Shift{Locking: sms.Turkish}, sms.Reference8, 155, 149, []byte{0x25, 1, 1}},
		{sms.Shift{Locking: sms.Turkish}, sms.Reference16, 155, 148, []byte{0x25, 1, 1}},
		{
			sms.Shift{Locking: sms.Hindi, Single: sms.Hindi},
			sms.Reference8, 152, 146,
			[]byte{0x24, 1, 6, 0x25, 1, 6},
		},
		{
			sms.Shift{Locking: sms.Hindi, Single: sms.Urdu},
			sms.Reference16, 152, 145,
			[]byte{0x24, 1, 13, 0x25, 1, 6},
		},
	} {
		single, each := c.shift.Capacity(c.ref)
		if single != c.single || each != c.each {
			t.Errorf("%v, reference of %v bits: %d and %d septets, want %d and %d", c.shift, c.ref,
				single, each, c.single, c.each)
		}
		elements := c.shift.AppendElements(nil)
		if !slices.Equal(elements, c.elements) {
			t.Errorf("%v: elements % x, want % x", c.shift, elements, c.elements)
		}
		header := append([]byte{0, 3, 7, 2, 1}, elements...)
		if got := sms.ShiftIn(header); got != c.shift {
			t.Errorf("ShiftIn = %v, want %v", got, c.shift)
		}
		// The septets must fit beside the header: 3GPP TS 23.040 section 9.2.3.16.
		if septets := (1 + len(elements)) * 8; c.elements != nil && (septets+6)/7+single > 160 {
			t.Errorf("%v: %d septets do not fit behind the header", c.shift, single)
		}
	}
}

func TestShiftInIgnoresWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, header := range map[string][]byte{
		"a language to come":            {0x24, 1, 14, 0x25, 1, 200},
		"no such locking table":         {0x25, 1, byte(sms.Spanish)},
		"cut off":                       {0x24, 1},
		"an element longer than it is":  {0x24, 200, 1},
		"another length":                {0x24, 2, 1, 1},
		"an octet that begins no other": {0x24},
		"empty":                         nil,
	} {
		if got := sms.ShiftIn(header); got != (sms.Shift{}) {
			t.Errorf("%s: %v, want the default tables", name, got)
		}
	}
}

func TestNationalTablesAreTakenOnlyWhenTheyMakeFewerSegments(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	turkish := sms.Tables{
		Locking: sms.LanguagesOf(sms.Turkish), Single: sms.LanguagesOf(sms.Turkish),
	}
	single := sms.Tables{Single: sms.LanguagesOf(sms.Turkish, sms.Spanish, sms.Portuguese)}
	portuguese := sms.Tables{Locking: sms.LanguagesOf(sms.Portuguese)}
	for _, c := range []struct {
		name   string
		text   string
		tables sms.Tables
		want   sms.Size
	}{
		{
			"one segment of UCS-2 stays", rep("ş", 70), turkish,
			sms.Size{Alphabet: sms.UCS2, Units: 70, Segments: 1},
		},
		{
			"locking is denser", rep("ş", 71), turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 71, Segments: 1,
			},
		},
		{
			"full with one header", rep("ş", 155), turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 155, Segments: 1,
			},
		},
		{
			"over it", rep("ş", 156), turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 156, Segments: 2,
			},
		},
		{
			"two full", rep("ş", 298), turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 298, Segments: 2,
			},
		},
		{
			"a third", rep("ş", 299), turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 299, Segments: 3,
			},
		},
		{
			"the fewer septets decide among equals", rep("a", 70) + "ş", turkish,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish}, Units: 71, Segments: 1,
			},
		},
		{
			"single shift alone", rep("a", 70) + "ş", single,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Single: sms.Turkish}, Units: 72, Segments: 1,
			},
		},
		{
			"a pair does not straddle segments", rep("a", 148) + "ş" + rep("a", 148), single,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Single: sms.Turkish}, Units: 298, Segments: 3,
			},
		},
		{
			"the language that has the letters", rep("a", 70) + "Á", single,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Single: sms.Spanish}, Units: 72, Segments: 1,
			},
		},
		{
			"not allowed", rep("ş", 71), portuguese,
			sms.Size{Alphabet: sms.UCS2, Units: 71, Segments: 2},
		},
		{
			"the default alphabet stays", rep("a", 161), turkish,
			sms.Size{Alphabet: sms.GSM7, Units: 161, Segments: 2},
		},
		{
			"unless it takes more segments", rep("€", 81), portuguese,
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Portuguese}, Units: 81,
				Segments: 1,
			},
		},
		{
			"one foreign letter, and no table helps", rep("ş", 80) + "я", turkish,
			sms.Size{Alphabet: sms.UCS2, Units: 81, Segments: 2},
		},
		{
			"a mixture of two tables", rep("ş", 71) + "Á",
			sms.Tables{Locking: turkish.Locking, Single: single.Single},
			sms.Size{
				Alphabet: sms.GSM7, Shift: sms.Shift{Locking: sms.Turkish, Single: sms.Spanish},
				Units: 73, Segments: 1,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rules := sms.Rules{Tables: c.tables}
			if diff := cmp.Diff(c.want, rules.Count(c.text)); diff != "" {
				t.Error(diff)
			}
			checkRules(t, c.text, rules)
		})
	}
}

// checkRules checks every property of Split and Count under rules with national tables.
func checkRules(t failer, text string, rules sms.Rules) {
	t.Helper()
	m, size, plain := rules.Split(text), rules.Count(text), sms.Count(text, rules.Reference)
	if want := (sms.Size{
		Alphabet: m.Alphabet, Shift: m.Shift, Units: m.Units, Segments: len(m.Segments),
	}); size != want {
		t.Fatalf("Count = %+v, Split = %+v", size, want)
	}
	if strings.Join(m.Segments, "") != text {
		t.Fatalf("the joined segments are not the text")
	}
	if m.Shift == (sms.Shift{}) {
		if size != plain {
			t.Fatalf("%+v without national tables, want %+v", size, plain)
		}
		return
	}
	if m.Alphabet != sms.GSM7 || size.Segments >= plain.Segments {
		t.Fatalf("tables %v save no segment: %+v, without them %+v", m.Shift, size, plain)
	}
	if !slices.Contains(slices.Collect(rules.Tables.Locking.Each), m.Shift.Locking) ||
		!slices.Contains(slices.Collect(rules.Tables.Single.Each), m.Shift.Single) {
		t.Fatalf("tables %v are not allowed", m.Shift)
	}
	single, each := m.Shift.Capacity(rules.Reference)
	septets := 0
	for _, segment := range m.Segments {
		octets, err := m.Shift.Append(nil, segment)
		if err != nil {
			t.Fatalf("a segment cannot be written: %v", err)
		}
		septets += len(octets)
		if len(m.Segments) == 1 && len(octets) > single ||
			len(m.Segments) > 1 && len(octets) > each {
			t.Fatalf("a segment has %d septets, %d and %d fit", len(octets), single, each)
		}
		if n := len(octets); n > 0 && octets[n-1] == sms.Escape {
			t.Fatalf("a segment ends inside an escape pair")
		}
		if back, err := m.Shift.Decode(octets); err != nil || back != segment {
			t.Fatalf("a segment does not read back as itself: %v", err)
		}
	}
	if septets != size.Units {
		t.Fatalf("%d septets on the wire, %d counted", septets, size.Units)
	}
}

// nationalTexts draws texts of a few languages, some with one other character.
func nationalTexts() *rapid.Generator[string] {
	letters := []string{
		"a", "B", " ", "€", "ş", "ğ", "İ", "Á", "ó", "ã", "Ê", "{", "\u0915", "\u094D", "\u0967",
		"\u0985", "\u0BB6", "\u0627", "\u06F4",
	}
	return rapid.Custom(func(t *rapid.T) string {
		few := rapid.SliceOfNDistinct(rapid.SampledFrom(letters), 1, 4, rapid.ID[string]).Draw(t,
			"letters")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(few), 0, 400).Draw(t, "text"), "")
		if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
			text += "я"
		}
		return text
	})
}

func tables() *rapid.Generator[sms.Tables] {
	return rapid.Custom(func(t *rapid.T) sms.Tables {
		some := rapid.SliceOf(rapid.SampledFrom(everyLanguage()))
		allowed := sms.Tables{Single: sms.LanguagesOf(some.Draw(t, "single")...)}
		for _, l := range some.Draw(t, "locking") {
			if l.HasLocking() {
				allowed.Locking |= sms.LanguagesOf(l)
			}
		}
		return allowed
	})
}

func TestRulesKeepEveryProperty(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		ref := rapid.SampledFrom([]sms.Reference{sms.Reference8, sms.Reference16}).Draw(t, "ref")
		text := rapid.OneOf(nationalTexts(), texts()).Draw(t, "text")
		checkRules(t, text, sms.Rules{Reference: ref, Tables: tables().Draw(t, "tables")})
	})
}

func TestMoreTablesNeverMakeMoreSegments(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		text, few := nationalTexts().Draw(t, "text"), tables().Draw(t, "tables")
		some, every := sms.Rules{Tables: few}.Count(text), sms.Rules{Tables: all()}.Count(text)
		if every.Segments > some.Segments {
			t.Fatalf("%d segments with all tables, %d with some", every.Segments, some.Segments)
		}
	})
}

func TestSubstituteWorksForNationalTablesToo(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	turkish := sms.Rules{
		Tables: sms.Tables{
			Locking: sms.LanguagesOf(sms.Turkish), Single: sms.LanguagesOf(sms.Turkish),
		},
	}
	for _, c := range []struct{ name, text, want string }{
		{
			"an apostrophe among national letters", "İstanbul’da " + rep("ş", 70),
			"İstanbul'da " + rep("ş", 70),
		},
		{"nothing gained in one segment", "İstanbul’da", "İstanbul’da"},
		{"nothing gained: a letter that no table has", "’я" + rep("ş", 80), "’я" + rep("ş", 80)},
		{"the default alphabet is enough", "It’s", "It's"},
		{"nothing to replace", rep("ş", 80), rep("ş", 80)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := turkish.Substitute(c.text); got != c.want {
				t.Errorf("Substitute = %q, want %q", got, c.want)
			}
		})
	}
}

func TestSubstituteWithTablesNeverMakesMoreSegments(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		rules := sms.Rules{Tables: tables().Draw(t, "tables")}
		text := rapid.OneOf(nationalTexts(), texts()).Draw(t, "text") +
			rapid.SampledFrom([]string{"", "’", "…–"}).Draw(t, "look-alike")
		got := rules.Substitute(text)
		if got == text {
			return
		}
		if !fitsGSM7(got) && rules.Count(got).Segments >= rules.Count(text).Segments {
			t.Fatalf("a text was changed, but saves no segment")
		}
		if again := rules.Substitute(got); again != got {
			t.Fatalf("a second pass changes the text again")
		}
	})
}

func TestShiftAppendRefusesWhatItLacksAndLeavesDstAlone(t *testing.T) {
	t.Parallel()
	for _, s := range []sms.Shift{
		{Locking: sms.Turkish}, {Single: sms.Turkish}, {Locking: sms.Hindi, Single: sms.Hindi},
	} {
		got, err := s.Append([]byte("kept"), "1я")
		if !errors.Is(err, sms.ErrAlphabet) || string(got) != "kept" {
			t.Errorf("%v: Append = %q, %v; want kept, ErrAlphabet", s, got, err)
		}
	}
	if _, err := (sms.Shift{Locking: sms.Turkish}).Append(nil, "è"); !errors.Is(err,
		sms.ErrAlphabet) {
		t.Errorf("the Turkish alphabet has no è: %v", err)
	}
	if _, err := (sms.Shift{Single: sms.Hindi}).Append(nil, "€{"); err != nil {
		t.Errorf("a single shift table replaces the extension table: %v", err)
	}
}

func TestDecodeShowsASpaceForACodeWithoutACharacter(t *testing.T) {
	t.Parallel()
	s := sms.Shift{Locking: sms.Tamil, Single: sms.Tamil}
	for _, c := range []struct {
		octets []byte
		want   string
	}{
		{[]byte{0x00}, " "},
		{[]byte{0x1B, 0x15}, "¡"},
		{[]byte{0x1B, 0x7A}, "z"},
		{[]byte{0x1B}, " "},
	} {
		if got, err := s.Decode(c.octets); err != nil || got != c.want {
			t.Errorf("Decode(% x) = %q, %v; want %q", c.octets, got, err, c.want)
		}
	}
}

func TestCountWithTablesDoesNotAllocate(t *testing.T) { // AllocsPerRun must not run in parallel with other tests
	rules := sms.Rules{Tables: all()}
	text := strings.Repeat("Siparişiniz yola çıktı. ", 10)
	if n := testing.AllocsPerRun(100, func() { rules.Count(text) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzRules(f *testing.F) {
	for _, text := range []string{
		"", "ş", strings.Repeat("ş", 156), strings.Repeat("aÁ", 90),
		strings.Repeat("\u0915\u094D", 100) + "€", "\xffş",
	} {
		f.Add(text, uint16(0xFFFF), uint16(0xFFFF), false)
		f.Add(text, uint16(0), uint16(2), true)
	}
	f.Fuzz(func(t *testing.T, text string, locking, single uint16, wide bool) {
		every := all()
		rules := sms.Rules{
			Tables: sms.Tables{
				Locking: every.Locking & sms.Languages(locking),
				Single:  every.Single & sms.Languages(single),
			},
		}
		if wide {
			rules.Reference = sms.Reference16
		}
		checkRules(t, text, rules)
	})
}

func FuzzShiftIn(f *testing.F) {
	f.Add([]byte{0, 3, 7, 2, 1, 0x24, 1, 6, 0x25, 1, 6}, []byte{0x1B, 0x19, 0x00})
	f.Fuzz(func(t *testing.T, header, octets []byte) {
		s := sms.ShiftIn(header)
		text, err := s.Decode(octets)
		if err != nil {
			return
		}
		if _, err := s.Append(nil, text); err != nil && !strings.Contains(text, " ") {
			t.Errorf("the decoded text cannot be encoded: %v", err)
		}
	})
}

func BenchmarkCountWithTables(b *testing.B) {
	rules := sms.Rules{
		Tables: sms.Tables{
			Locking: sms.LanguagesOf(sms.Turkish), Single: sms.LanguagesOf(sms.Turkish),
		},
	}
	for name, text := range map[string]string{
		"otp": benchmarkTexts["otp"], "gsm7x3": benchmarkTexts["gsm7x3"],
		"turkish":  strings.Repeat("Siparişiniz yola çıktı. ", 10),
		"cyrillic": benchmarkTexts["ucs2x3"],
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Count(text)
			}
		})
	}
}

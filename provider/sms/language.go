package sms

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Language names the national tables of a language by its identifier in the header, 3GPP TS 23.038
// section 6.2.1.2.4. The zero value stands for the default alphabet and its extension table.
type Language uint8

// Languages with national tables.
const (
	DefaultTables Language = iota
	Turkish
	Spanish
	Portuguese
	Bengali // and Assamese
	Gujarati
	Hindi
	Kannada
	Malayalam
	Oriya
	Punjabi
	Tamil
	Telugu
	Urdu

	languages // their number, including DefaultTables
)

var languageWords = [languages]string{
	"default", "turkish", "spanish", "portuguese", "bengali", "gujarati", "hindi", "kannada",
	"malayalam", "oriya", "punjabi",
	"tamil", "telugu", "urdu",
}

// String returns the word that the routing document and the segments command use.
func (l Language) String() string {
	if l < languages {
		return languageWords[l]
	}
	return fmt.Sprintf("Language(%d)", uint8(l))
}

// LanguageWords are the words that ParseLanguage accepts, in the order of their identifiers. The
// caller may change the slice.
func LanguageWords() []string { return slices.Clone(languageWords[1:]) }

// ParseLanguage reads one of LanguageWords.
func ParseLanguage(word string) (Language, error) {
	if at := slices.Index(languageWords[:], word); at > 0 {
		return Language(at), nil //nolint:gosec // One of fourteen.
	}
	return 0, fmt.Errorf("language %q has no tables; use %s", word,
		strings.Join(languageWords[1:], ", "))
}

// HasLocking reports whether the language has a locking shift table. Spanish has none: it uses the
// default alphabet.
func (l Language) HasLocking() bool { return l < languages && lockingTables[l] != "" }

// Languages is a set of languages; the zero value is empty.
type Languages uint16

// LanguagesOf is the set of some languages. DefaultTables adds nothing: they may always be used.
func LanguagesOf(list ...Language) Languages {
	var set Languages
	for _, l := range list {
		set |= 1 << l
	}
	return set &^ 1
}

// Each calls yield for DefaultTables and for every language of the set, in the order of their
// identifiers.
func (ls Languages) Each(yield func(Language) bool) {
	for rest := uint16(ls) | 1; rest != 0; rest &= rest - 1 {
		if !yield(Language(bits.TrailingZeros16(rest))) { //nolint:gosec // Below 16.
			return
		}
	}
}

// Tables are the national tables that a carrier accepts, besides the default ones. Locking tables
// replace the default alphabet, single shift tables the extension table. The zero value allows
// none.
type Tables struct {
	Locking Languages
	Single  Languages
}

// None reports whether only the default tables may be used.
func (t Tables) None() bool { return t == Tables{} }

// void marks a code without a character in the tables below. No table contains it as a character.
const void = '·'

// codes finds the code of a character in one table: by pages of 128 characters, because each table
// has its characters in two or three places of Unicode. A page that has none is nil.
type codes struct{ pages [maxPage + 1]*[128]byte }

const (
	maxPage = 0x221E >> 7 // of the infinity sign, the last character of any table
	noCode  = 0xFF
)

// code returns the code of a character, or noCode.
func (c *codes) code(r rune) byte {
	if r < 0 || r>>7 > maxPage {
		return noCode
	}
	page := c.pages[r>>7]
	if page == nil {
		return noCode
	}
	return page[r&0x7F]
}

// put gives a character its code, unless it has a lower one.
func (c *codes) put(r rune, code byte) {
	page := c.pages[r>>7]
	if page == nil {
		page = new([128]byte)
		for i := range page {
			page[i] = noCode
		}
		c.pages[r>>7] = page
	}
	if page[r&0x7F] == noCode {
		page[r&0x7F] = code
	}
}

// characters has a table's character for each code; 0 where there is none.
type characters [0x80]rune

// The tables by language. Those of DefaultTables are the default alphabet and its extension table.
// A language without a locking table has an empty one.
var (
	lockingCodes, lockingCharacters = newTables(lockingTables[:])
	singleCodes, singleCharacters   = newTables(singleTables[:])
)

func newTables(tables []string) ([languages]codes, [languages]characters) {
	var find [languages]codes
	var shown [languages]characters
	for language, table := range tables {
		code := byte(0)
		for _, r := range table {
			if r != void && r != Escape {
				find[language].put(r, code)
				shown[language][code] = r
			}
			code++
		}
	}
	return find, shown
}

// plainOf are the characters without an escape.
func plainOf(l Language) *characters {
	if l == DefaultTables {
		return &decode.plain
	}
	return &lockingCharacters[l]
}

// escapedOf are the characters after an escape.
func escapedOf(l Language) *characters {
	if l == DefaultTables {
		return &decode.extended
	}
	return &singleCharacters[l]
}

// septet returns how r is written with these tables, or none.
func (s Shift) septet(r rune) septet {
	if s == (Shift{}) {
		return encode.septet(r)
	}
	if s.Locking == DefaultTables {
		if c := encode.septet(r); c&extended == 0 {
			return c
		}
	} else if c := lockingCodes[s.Locking].code(r); c != noCode {
		return septet(c)
	}
	if s.Single == DefaultTables {
		if c := encode.septet(r); c&extended != 0 {
			return c
		}
	} else if c := singleCodes[s.Single].code(r); c != noCode {
		return septet(c) | extended
	}
	return none
}

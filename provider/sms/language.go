package sms

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Language names the national tables of a language by its identifier on the wire, 3GPP TS 23.038
// section 6.2.1.2.4. The zero value stands for the default alphabet and its extension table.
type Language uint8

// Languages with tables of their own.
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

	languages // how many there are, DefaultTables included
)

var languageWords = [languages]string{
	"default", "turkish", "spanish", "portuguese", "bengali", "gujarati", "hindi", "kannada", "malayalam", "oriya", "punjabi",
	"tamil", "telugu", "urdu",
}

// String returns the word that the routing document and the segments command use.
func (l Language) String() string {
	if l < languages {
		return languageWords[l]
	}
	return fmt.Sprintf("Language(%d)", uint8(l))
}

// LanguageWords are the words that ParseLanguage takes, in the order of their identifiers. The slice
// is the caller's.
func LanguageWords() []string { return slices.Clone(languageWords[1:]) }

// ParseLanguage reads one of LanguageWords.
func ParseLanguage(word string) (Language, error) {
	if at := slices.Index(languageWords[:], word); at > 0 {
		return Language(at), nil //nolint:gosec // One of fourteen.
	}
	return 0, fmt.Errorf("language %q has no tables; use %s", word, strings.Join(languageWords[1:], ", "))
}

// HasLocking reports whether the language has a locking shift table. Spanish has none: the default
// alphabet does for it.
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

// Has reports whether the language is in the set; DefaultTables always is.
func (s Languages) Has(l Language) bool { return l == DefaultTables || s&(1<<l) != 0 }

// Each calls yield for DefaultTables and for every language of the set, in the order of their identifiers.
func (s Languages) Each(yield func(Language) bool) {
	for rest := uint16(s) | 1; rest != 0; rest &= rest - 1 {
		if !yield(Language(bits.TrailingZeros16(rest))) { //nolint:gosec // Below 16.
			return
		}
	}
}

// Tables are the national tables that a carrier takes, besides the default ones. Locking tables stand in
// for the default alphabet, single shift tables for the extension table behind the escape. The zero value
// allows none.
type Tables struct {
	Locking Languages
	Single  Languages
}

// None reports whether only the default tables may be used.
func (t Tables) None() bool { return t == Tables{} }

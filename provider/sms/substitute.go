package sms

import "strings"

// Substitute replaces characters that GSM-7 lacks by look-alikes that it has: curly quotes, dashes,
// unusual spaces, ellipsis, Greek capitals that look like a Latin letter. One curly apostrophe
// would otherwise more than double the price of a text, because all of it would need UCS-2.
// Letters are never changed into other letters, since that would change words. If the text would
// still not fit GSM-7, it is returned unchanged: nothing would be gained. A text that needs no
// change is returned without allocation.
func Substitute(text string) string {
	n, ok := replaceable(text)
	if n == 0 || !ok {
		return text
	}
	var out strings.Builder
	out.Grow(len(text)) // no look-alike is longer than the original
	for _, r := range text {
		if encode.septet(r) != none {
			out.WriteRune(r)
			continue
		}
		with, _ := lookAlike(r)
		out.WriteString(with)
	}
	return out.String()
}

// Substitute does the same for a carrier that accepts national tables. If the function Substitute
// changes nothing, because the text has letters that only those tables have, look-alikes replace
// the characters that even the tables lack, but only if the text then has fewer segments.
func (r Rules) Substitute(text string) string {
	plain := Substitute(text)
	if r.Tables.None() || plain != text {
		return plain
	}
	before := r.Count(text)
	if before.Alphabet == GSM7 || before.Segments == 1 {
		return text
	}
	if other, ok := r.Tables.substitute(text); ok && r.Count(other).Segments < before.Segments {
		return other
	}
	return text
}

// substitute replaces characters that none of the tables has; false if one of them has no
// look-alike.
func (t Tables) substitute(text string) (string, bool) {
	var out strings.Builder
	out.Grow(len(text))
	for _, r := range text {
		if t.have(r) {
			out.WriteRune(r)
			continue
		}
		with, ok := lookAlike(r)
		if !ok {
			return "", false
		}
		out.WriteString(with)
	}
	return out.String(), true
}

// have reports whether one of the tables, or of the default ones, has the character.
func (t Tables) have(r rune) bool {
	if encode.septet(r) != none {
		return true
	}
	for l := range t.Locking.Each {
		if lockingCodes[l].code(r) != noCode {
			return true
		}
	}
	for l := range t.Single.Each {
		if singleCodes[l].code(r) != noCode {
			return true
		}
	}
	return false
}

// replaceable counts the characters that GSM-7 lacks and reports whether each of them has a
// look-alike.
func replaceable(text string) (n int, ok bool) {
	for _, r := range text {
		if encode.septet(r) != none {
			continue
		}
		if _, ok := lookAlike(r); !ok {
			return n, false
		}
		n++
	}
	return n, true
}

// lookAlike returns the replacement of a character that GSM-7 lacks; invisible characters become
// nothing.
func lookAlike(r rune) (with string, ok bool) {
	switch r {
	case '‘', '’', '‚', '‛', '′', 'ʹ', 'ʻ', 'ʼ', 'ʽ', '´', '`', '‹', '›', '＇':
		return "'", true
	case '“', '”', '„', '‟', '″', '«', '»', '〝', '〞', '＂':
		return `"`, true
	case '‐', '‑', '‒', '–', '—', '―', '−', '⁃', '﹘', '﹣', '－':
		return "-", true
	case '…':
		return "...", true
	case '‥':
		return "..", true
	case '․':
		return ".", true
	case '•', '∙', '●', '▪', '∗':
		return "*", true
	case '⁄', '∕':
		return "/", true
	case '˜', '∼', '～':
		return "~", true
	case 'ˆ':
		return "^", true
	case '¦':
		return "|", true
	case '\u2126': // ohm sign
		return "Ω", true
	case '\u2206': // increment
		return "Δ", true
	case '\u212B': // angstrom sign
		return "Å", true
	}
	if with, ok := blank(r); ok {
		return with, true
	}
	return greekTwin(r)
}

// blank replaces spaces, line ends and invisible characters.
func blank(r rune) (with string, ok bool) {
	switch {
	case r == '\t', r == '\u00A0', r >= '\u2000' && r <= '\u200A', r == '\u202F', r == '\u205F',
		r == '\u3000':
		return " ", true
	case r == '\u0085', r == '\u2028', r == '\u2029', r == '\v':
		return "\n", true
	case r == '\u00AD', r >= '\u200B' && r <= '\u200F', r == '\u2060', r == '\uFEFF', r == '\uFE0E',
		r == '\uFE0F':
		return "", true
	}
	return "", false
}

// greekTwin returns the Latin letter that looks like a Greek capital. The default alphabet has only
// the ten Greek capitals without such a twin, because it was designed to be used this way.
func greekTwin(r rune) (with string, ok bool) {
	const greek, latin = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"
	if r < 'Α' || r > 'Χ' {
		return "", false
	}
	if i := strings.IndexRune(greek, r); i >= 0 {
		return latin[i/2 : i/2+1], true // two bytes each in UTF-8
	}
	return "", false
}

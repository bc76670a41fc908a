// Package sms knows what fits into one short message: the two alphabets that every network carries,
// the national language tables that some do, how a longer text is split into segments, and how a
// character is encoded.
// It is pure and knows no channel and no protocol. Adapters encode with it, package decide counts
// billed segments with it, and the segments command shows both. All segments of a message use the
// same tables, although the standard would allow different ones: so one choice describes a text,
// which can be counted, explained and repeated.
package sms

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Rules say how texts are split for a carrier.
type Rules struct {
	Reference Reference
	// Tables are the national tables that the carrier takes.
	Tables Tables
}

// Count returns the size of a text. The default alphabet is used if it has all the characters, else
// UCS-2. National tables are used only if the text then has fewer segments. Of the tables with the
// fewest segments, those with the smallest header win, then those with the fewest septets, then
// those with the lower identifier, so the same text is always written in the same way.
// It agrees with Split and does not allocate.
func (r Rules) Count(text string) Size {
	best := Count(text, r.Reference)
	if best.Segments == 1 || r.Tables.None() ||
		utf8.RuneCountInString(text) > r.room(best.Segments-1) {
		return best
	}
	for locking := range r.Tables.Locking.Each {
		for single := range r.Tables.Single.Each {
			s := Shift{Locking: locking, Single: single}
			if s == (Shift{}) {
				continue // it is the best so far, or cannot write the text
			}
			if size, ok := s.count(text, r.Reference, best.Segments); ok && size.isBetter(&best) {
				best = size
			}
		}
	}
	return best
}

// room is how many septets that many segments hold at most with a table in the header.
func (r Rules) room(segments int) int {
	single, each := Shift{Single: Turkish}.Capacity(r.Reference)
	if segments == 1 {
		return single
	}
	return segments * each
}

// isBetter compares two ways to write one text; s uses national tables.
func (s *Size) isBetter(o *Size) bool {
	switch {
	case s.Segments != o.Segments:
		return s.Segments < o.Segments
	case o.Shift == (Shift{}):
		return false
	case s.Shift.elements() != o.Shift.elements():
		return s.Shift.elements() < o.Shift.elements()
	}
	return s.Units < o.Units
}

// count counts septets, and stops at the first character that the tables lack, or once the text
// needs more segments than the bound most.
func (s Shift) count(text string, ref Reference, most int) (Size, bool) {
	single, each := s.Capacity(ref)
	p := packer{each: each}
	for _, r := range text {
		c := s.septet(r)
		if c == none || p.add(c.units()) && p.full >= most {
			return Size{}, false
		}
	}
	size := p.size(GSM7, single)
	size.Shift = s
	return size, true
}

// Split splits a text as Count counts it: into one piece if it fits without a concatenation header,
// else greedily from the front. The pieces share the text's memory.
func (r Rules) Split(text string) Message {
	size := r.Count(text)
	m := Message{
		Alphabet: size.Alphabet, Shift: size.Shift, Units: size.Units,
		Segments: make([]string, 0, size.Segments),
	}
	if size.Segments == 1 {
		m.Segments = append(m.Segments, text)
		return m
	}
	_, each := Capacity(size.Alphabet, r.Reference)
	if size.Alphabet == GSM7 {
		_, each = size.Shift.Capacity(r.Reference)
	}
	p := packer{each: each}
	start := 0
	for i, c := range text {
		if p.add(size.unitsOf(c)) {
			m.Segments = append(m.Segments, text[start:i])
			start = i
		}
	}
	m.Segments = append(m.Segments, text[start:])
	return m
}

// unitsOf is how many units a character takes that the alphabet and tables contain.
func (s *Size) unitsOf(r rune) int {
	if s.Alphabet == UCS2 {
		return ucs2Units(r)
	}
	return s.Shift.septet(r).units()
}

// Message is a text cut into the segments that are sent and billed.
type Message struct {
	Alphabet Alphabet
	// Shift are the national tables of all segments; see Size.
	Shift Shift
	// Units is the length of the whole text, as in Size.
	Units int
	// Segments are the pieces of the text in order; joined they are the text. No piece begins or
	// ends inside an escape pair or a surrogate pair. There is always at least one.
	Segments []string
}

// Split cuts the text for references of the given width, without national tables; see Rules.Split.
func Split(text string, ref Reference) Message {
	return Rules{Reference: ref}.Split(text)
}

// Size is the size of a text in units and billed segments.
type Size struct {
	Alphabet Alphabet
	// Shift are the national tables of a GSM-7 text; the zero value stands for the default ones.
	Shift Shift
	// Units is the length of the text itself, in septets or in 16-bit units. It
	// leaves out headers and the unit that stays empty when a pair moves on to the
	// next segment.
	Units int
	// Segments is the number of billed parts, at least 1.
	Segments int
}

// Count returns the size of the text with references of the given width and without national
// tables. It agrees with Split and does not allocate. An empty text is one segment of no units.
// Each byte that is not valid UTF-8 counts as one U+FFFD, which only UCS-2 has.
func Count(text string, ref Reference) Size {
	if size, ok := countGSM7(text, ref); ok {
		return size
	}
	return CountUCS2(text, ref)
}

// CountUCS2 returns the size of the text in UCS-2 even if GSM-7 has all its characters: not every
// carrier's GSM-7 has them.
func CountUCS2(text string, ref Reference) Size {
	single, each := Capacity(UCS2, ref)
	p := packer{each: each}
	for _, r := range text {
		p.add(ucs2Units(r))
	}
	return p.size(UCS2, single)
}

// countGSM7 counts septets and stops at the first character outside the alphabet.
func countGSM7(text string, ref Reference) (Size, bool) {
	single, each := Capacity(GSM7, ref)
	p := packer{each: each}
	for _, r := range text {
		s := encode.septet(r)
		if s == none {
			return Size{}, false
		}
		p.add(s.units())
	}
	return p.size(GSM7, single), true
}

// ucs2Units is how many 16-bit units a character takes.
func ucs2Units(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// packer fills segments of a multi-segment message greedily. A character of two units that would
// cross a boundary moves to the next segment, because a handset shows split halves as garbage (3GPP
// TS 23.040 section 9.2.3.24.1 forbids it for the escape).
type packer struct {
	each  int // units that a segment holds
	used  int // units in the current segment
	full  int // segments before the current one
	units int // units altogether
}

// add adds one character and reports whether it started a new segment.
func (p *packer) add(units int) bool {
	p.units += units
	p.used += units
	if p.used <= p.each {
		return false
	}
	p.full++
	p.used = units
	return true
}

// size is the final count; a text that fits a message without headers is one segment.
func (p *packer) size(a Alphabet, single int) Size {
	if p.units <= single {
		return Size{Alphabet: a, Units: p.units, Segments: 1}
	}
	return Size{Alphabet: a, Units: p.units, Segments: p.full + 1}
}

// Fingerprint identifies how one text was split, in a few dozen characters: "smpp gsm7 udh8 3
// 9f2c11ab03de". how names the encoding and the concatenation; the number of pieces and a hash of
// them follow. Parts of a text may be sent in different attempts only if both have the same
// fingerprint: otherwise part 2 may hold other words. It is for the ledger and for comparison, not
// for display: the hash confirms a correct guess of the text.
func Fingerprint(how string, segments []string) string {
	h := sha256.New()
	var length [8]byte
	for _, segment := range segments {
		// The lengths distinguish "ab", "c" from "a", "bc".
		binary.BigEndian.PutUint64(length[:], uint64(len(segment)))
		h.Write(length[:])
		h.Write([]byte(segment))
	}
	return fmt.Sprintf("%s %d %x", how, len(segments), h.Sum(nil)[:6])
}

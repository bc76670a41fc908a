package sms

import "unicode/utf8"

// Rules say how texts are cut for a carrier.
type Rules struct {
	Reference Reference
	// Tables are the national tables that the carrier takes.
	Tables Tables
}

// Count returns the size of a text. The default alphabet is taken when it has all the characters, and
// UCS-2 when it has not; national tables only when they make it fewer segments than that. Of the tables that
// make it as few, those with the smallest header are taken, then those that take the fewest
// septets, then those of the lower identifier: the same text is always written in the same way.
//
// It is exactly what Split makes of the text. It does not allocate.
func (r Rules) Count(text string) Size {
	best := Count(text, r.Reference)
	if best.Segments == 1 || r.Tables.None() || utf8.RuneCountInString(text) > r.room(best.Segments-1) {
		return best
	}
	for locking := range r.Tables.Locking.Each {
		for single := range r.Tables.Single.Each {
			s := Shift{Locking: locking, Single: single}
			if s == (Shift{}) {
				continue // it is among the best already, or cannot write the text
			}
			if size, ok := s.count(text, r.Reference, best.Segments); ok && size.betters(&best) {
				best = size
			}
		}
	}
	return best
}

// room is how many septets some segments hold at most when they announce a table.
func (r Rules) room(segments int) int {
	single, each := Shift{Single: Turkish}.Capacity(r.Reference)
	if segments == 1 {
		return single
	}
	return segments * each
}

// betters compares two ways to write one text; s is with national tables.
func (s *Size) betters(o *Size) bool {
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

// count counts septets, and gives up at the first character that the tables lack or when there are more
// segments than most.
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

// Split cuts a text as Count counts it: into one piece when it fits a message without a header that joins
// segments, else greedily from the front. The pieces share the text's memory.
func (r Rules) Split(text string) Message {
	size := r.Count(text)
	m := Message{Alphabet: size.Alphabet, Shift: size.Shift, Units: size.Units, Segments: make([]string, 0, size.Segments)}
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

// unitsOf is how many units a character takes that the alphabet and tables are known to have.
func (s *Size) unitsOf(r rune) int {
	if s.Alphabet == UCS2 {
		return ucs2Units(r)
	}
	return s.Shift.septet(r).units()
}

// Append appends the text to dst in UTF-16 or, one septet per octet, in GSM-7 with the tables of the message. It is
// for the message's own segments: then it never fails.
func (m *Message) Append(dst []byte, segment string) ([]byte, error) {
	if m.Alphabet == UCS2 {
		return AppendUCS2(dst, segment), nil
	}
	return m.Shift.Append(dst, segment)
}

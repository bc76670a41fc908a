package sms

// Size is what a text needs on the wire and on the bill.
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

// Count returns the size of the text with references of the given width and without national tables. It is
// exactly what Split makes of it, without allocating. An empty text is one segment
// of no units. Each byte that is not valid UTF-8 counts as one U+FFFD, which only
// UCS-2 has.
func Count(text string, ref Reference) Size {
	if size, ok := countGSM7(text, ref); ok {
		return size
	}
	return CountUCS2(text, ref)
}

// CountUCS2 returns the size of the text in UCS-2 although GSM-7 may have all its characters: not every carrier's GSM-7
// has them.
func CountUCS2(text string, ref Reference) Size {
	single, each := Capacity(UCS2, ref)
	p := packer{each: each}
	for _, r := range text {
		p.add(ucs2Units(r))
	}
	return p.size(UCS2, single)
}

// countGSM7 counts septets and gives up at the first character outside the alphabet.
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

// packer fills segments of a multi-segment message greedily. A character of two
// units that would straddle a boundary moves whole into the next segment, because
// a handset shows each half of a torn pair as rubbish (3GPP TS 23.040 section
// 9.2.3.24.1 forbids it for the escape).
type packer struct {
	each  int // units that a segment holds
	used  int // units in the current segment
	full  int // segments before the current one
	units int // units altogether
}

// add packs one character and reports whether it opened a new segment.
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

package sms

// Message is a text cut into the segments that are sent and billed.
type Message struct {
	Alphabet Alphabet
	// Units is the length of the whole text, as in Size.
	Units int
	// Segments are the pieces of the text in order; joined they are the text. No
	// piece begins or ends inside an escape pair or a surrogate pair. There is
	// always at least one.
	Segments []string
}

// Split cuts the text for references of the given width: into one piece when it
// fits a message without headers, else greedily from the front. The pieces share
// the text's memory.
func Split(text string, ref Reference) Message {
	size := Count(text, ref)
	m := Message{Alphabet: size.Alphabet, Units: size.Units, Segments: make([]string, 0, size.Segments)}
	if size.Segments == 1 {
		m.Segments = append(m.Segments, text)
		return m
	}
	_, each := Capacity(size.Alphabet, ref)
	p := packer{each: each}
	start := 0
	for i, r := range text {
		if p.add(size.Alphabet.unitsOf(r)) {
			m.Segments = append(m.Segments, text[start:i])
			start = i
		}
	}
	m.Segments = append(m.Segments, text[start:])
	return m
}

// unitsOf is how many units a character takes that the alphabet is known to have.
func (a Alphabet) unitsOf(r rune) int {
	if a == UCS2 {
		return ucs2Units(r)
	}
	return encode.septet(r).units()
}

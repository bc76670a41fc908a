package sms

// Message is a text cut into the segments that are sent and billed.
type Message struct {
	Alphabet Alphabet
	// Shift are the national tables that all segments are written with, and announce; see Size.
	Shift Shift
	// Units is the length of the whole text, as in Size.
	Units int
	// Segments are the pieces of the text in order; joined they are the text. No
	// piece begins or ends inside an escape pair or a surrogate pair. There is
	// always at least one.
	Segments []string
}

// Split cuts the text for references of the given width, without national tables; see Rules.Split.
func Split(text string, ref Reference) Message {
	return Rules{Reference: ref}.Split(text)
}

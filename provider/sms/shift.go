package sms

import (
	"fmt"
	"strings"
)

// Shift is the pair of tables of a GSM-7 text. The zero value is the default alphabet with its
// extension table, which need no announcement. An element in the user data header of each segment
// announces every other table.
type Shift struct {
	Locking Language
	Single  Language
}

// Information elements of the user data header, 3GPP TS 23.040 sections 9.2.3.24.15 and
// 9.2.3.24.16.
const (
	elementSingle  = 0x24
	elementLocking = 0x25
	elementOctets  = 3 // identifier, length and language
)

// userData is what one segment holds, in octets (3GPP TS 23.040 section 9.2.3.16).
const userData = 140

// elements is how many elements announce the tables.
func (s Shift) elements() int {
	n := 0
	if s.Locking != DefaultTables {
		n++
	}
	if s.Single != DefaultTables {
		n++
	}
	return n
}

// Capacity returns how many septets a message of one segment holds and how many each segment of a
// longer message holds: Capacity(GSM7, ref) minus the header. The text begins at a septet boundary
// after the header, so each octet of the header costs a little more than a septet: with one table
// 155 and 149 remain, with two 152 and 146.
func (s Shift) Capacity(ref Reference) (single, each int) {
	single, each = Capacity(GSM7, ref)
	n := s.elements()
	if n == 0 {
		return single, each
	}
	concatenation := 5
	if ref == Reference16 {
		concatenation = 6
	}
	const length = 1 // of the header, in its first octet
	return (userData - length - n*elementOctets) * 8 / 7,
		(userData - length - concatenation - n*elementOctets) * 8 / 7
}

// AppendElements appends the elements that announce the tables to a user data header: nothing for
// the default tables, three octets for each other one. The caller adds the header's length and the
// concatenation element.
func (s Shift) AppendElements(dst []byte) []byte {
	if s.Single != DefaultTables {
		dst = append(dst, elementSingle, 1, byte(s.Single))
	}
	if s.Locking != DefaultTables {
		dst = append(dst, elementLocking, 1, byte(s.Locking))
	}
	return dst
}

// ShiftIn finds the tables that a user data header announces. header begins after its length octet.
// An unknown language counts as the default, as the standard requires of receivers (3GPP TS 23.038
// section 6.2.1.2.4). A truncated element is ignored.
func ShiftIn(header []byte) Shift {
	var s Shift
	for len(header) >= 2 {
		identifier, length := header[0], int(header[1])
		if len(header) < 2+length {
			return s
		}
		if value := header[2 : 2+length]; length == 1 {
			s.announce(identifier, Language(value[0]))
		}
		header = header[2+length:]
	}
	return s
}

func (s *Shift) announce(identifier byte, l Language) {
	switch {
	case l >= languages:
	case identifier == elementSingle:
		s.Single = l
	case identifier == elementLocking && (l == DefaultTables || l.HasLocking()):
		s.Locking = l
	}
}

// Append appends the text to dst like AppendGSM7, with these tables. The caller announces them with
// AppendElements.
func (s Shift) Append(dst []byte, text string) ([]byte, error) {
	start := len(dst)
	for i, r := range text {
		c := s.septet(r)
		switch {
		case c == none:
			return dst[:start], fmt.Errorf("encode byte %d: %w", i, ErrAlphabet)
		case c&extended != 0:
			dst = append(dst, Escape, byte(c&^extended))
		default:
			dst = append(dst, byte(c))
		}
	}
	return dst, nil
}

// Decode reads one septet per octet with these tables. It follows the rules of the standard for
// receivers (3GPP TS 23.038 sections 6.2.1 and 6.2.1.1): an escaped code without a character is
// read from the locking table, an escape without a next septet is a space, and so is a code without
// any character. An octet above 0x7F is an error.
func (s Shift) Decode(octets []byte) (string, error) {
	plain, escaped := plainOf(s.Locking), escapedOf(s.Single)
	var text strings.Builder
	text.Grow(len(octets))
	for i := 0; i < len(octets); i++ {
		c := octets[i]
		if c > 0x7F {
			return "", fmt.Errorf("decode octet %d: %w", i, ErrEncoding)
		}
		r := plain[c]
		if c == Escape {
			r = 0
			if i+1 < len(octets) && octets[i+1] != Escape && octets[i+1] <= 0x7F {
				i++
				if r = escaped[octets[i]]; r == 0 {
					r = plain[octets[i]]
				}
			}
		}
		if r == 0 {
			r = ' '
		}
		text.WriteRune(r)
	}
	return text.String(), nil
}

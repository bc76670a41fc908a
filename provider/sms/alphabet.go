package sms

import "fmt"

// Alphabet is the character set a message is sent in. It decides how many
// characters a segment holds.
type Alphabet uint8

const (
	// GSM7 is the GSM 7-bit default alphabet with its extension table, 3GPP TS
	// 23.038 sections 6.2.1 and 6.2.1.1. Its unit is the septet.
	GSM7 Alphabet = iota
	// UCS2 is 16-bit Unicode, 3GPP TS 23.038 section 6.2.3. Its unit is the 16-bit
	// code unit. Characters beyond the basic plane take a surrogate pair, that is
	// two units, as every current handset reads them (UTF-16).
	UCS2
)

// String returns the word used in the records and by the segments command.
func (a Alphabet) String() string {
	switch a {
	case GSM7:
		return "gsm7"
	case UCS2:
		return "ucs2"
	}
	return fmt.Sprintf("Alphabet(%d)", uint8(a))
}

// Reference is the width of the number that ties the segments of one message
// together in the user data header, 3GPP TS 23.040 sections 9.2.3.24.1 and
// 9.2.3.24.8. The wider one costs an octet in each segment.
type Reference uint8

const (
	// Reference8 has a header of 6 octets: 153 septets or 67 UCS-2 units remain.
	Reference8 Reference = iota
	// Reference16 has a header of 7 octets: 152 septets or 66 UCS-2 units remain.
	Reference16
)

// String returns the width in bits as the routing document writes it.
func (r Reference) String() string {
	switch r {
	case Reference8:
		return "8"
	case Reference16:
		return "16"
	}
	return fmt.Sprintf("Reference(%d)", uint8(r))
}

// Capacity returns how many units of the alphabet a message of one segment holds
// and how many each segment of a longer message holds. The user data is 140
// octets (3GPP TS 23.040 section 9.2.3.16): 160 septets or 70 units of 16 bits.
func Capacity(a Alphabet, ref Reference) (single, each int) {
	switch {
	case a == UCS2 && ref == Reference16:
		return 70, 66
	case a == UCS2:
		return 70, 67
	case ref == Reference16:
		return 160, 152
	default:
		return 160, 153
	}
}

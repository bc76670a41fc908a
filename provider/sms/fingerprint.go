package sms

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Fingerprint stands for the way in which one text was cut, in a few dozen characters: "smpp gsm7 udh8 3 9f2c11ab03de". how
// names what the segments are written in and what joins them; the digits behind their number stand for the pieces
// themselves. Parts of a text may be sent in different attempts only when both cut it under the same fingerprint: part 2 of
// one cut says other words than part 2 of another. It is for the ledger and for comparison, not for people: whoever guesses the text
// can tell by the digits that he was right.
func Fingerprint(how string, segments []string) string {
	h := sha256.New()
	var length [8]byte
	for _, segment := range segments {
		binary.BigEndian.PutUint64(length[:], uint64(len(segment))) // tells "ab", "c" from "a", "bc"
		h.Write(length[:])
		h.Write([]byte(segment))
	}
	return fmt.Sprintf("%s %d %x", how, len(segments), h.Sum(nil)[:6])
}

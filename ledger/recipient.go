package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Recipient stands for a number among those that a tenant writes to: the first 64 bits of SHA-256
// over tenant, a zero byte and number, as a signed integer, big-endian. A leading plus makes no
// difference, because some providers leave it out. It is never 0, which stands for no recipient.
//
// It spares tables and claims the number. It does not hide it from somebody who has the table and
// tries all numbers: there are too few of them. Function dispatcher.recipient of the schema is the
// same.
func Recipient(tenant, number string) int64 {
	var space [96]byte
	text := append(append(append(space[:0], tenant...), 0), strings.TrimLeft(number, "+")...)
	sum := sha256.Sum256(text)
	if n := int64(binary.BigEndian.Uint64(sum[:8])); n != 0 {
		return n
	}
	return 1
}

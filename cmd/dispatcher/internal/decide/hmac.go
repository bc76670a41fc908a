package decide

import (
	"crypto/sha256"
	"encoding/binary"

	"dispatcher/ledger"
	"dispatcher/selector"
)

// Part of the hashed input, so that a number and an envelope with the same bytes have different
// hashes.
const (
	useNumber = "number"
	// useEnvelope is in hashes of envelopes that an earlier release stored without a salt.
	useEnvelope = "envelope"
)

// ofNumber is the keyed hash of a number under the key at a position.
func (d *drawers) ofNumber(at int, number string) int64 {
	d.buf = append(d.buf[:0], number...)
	return d.at(at).HMAC(useNumber, d.buf)
}

// ofEnvelope is the hash of a stored envelope, with a salt derived from the id of its message by
// the key at a position. The salt is stored beside the envelope, so that the hash can be checked
// without the key as long as the envelope exists.
func (d *drawers) ofEnvelope(
	at int, id string, stored []byte,
) (salt [selector.SaltSize]byte, hash int64) {
	salt = d.at(at).Salt(id)
	return salt, d.salted(salt, stored)
}

// salted is the first eight bytes, big-endian and signed, of the SHA-256 of salt and envelope. View
// facts.payload_evidence computes the same.
func (d *drawers) salted(salt [selector.SaltSize]byte, stored []byte) int64 {
	if d.plain == nil {
		d.plain = sha256.New()
	}
	d.plain.Reset()
	d.buf = append(d.buf[:0], salt[:]...)
	d.plain.Write(d.buf)
	d.plain.Write(stored)
	d.buf = d.plain.Sum(d.buf[:0])
	return int64(binary.BigEndian.Uint64(d.buf)) //nolint:gosec // All 64 bits are kept.
}

// KeyedHashes checks the keyed hashes on the row of a message against a number and an envelope. It
// has scratch space: use it from one goroutine at a time.
type KeyedHashes struct {
	keys *drawers
}

// NewKeyedHashes returns a KeyedHashes with the keys of the key file, in any order.
func NewKeyedHashes(keys []selector.Key) *KeyedHashes { return &KeyedHashes{newDrawers(keys)} }

// Matched says which hashes of a row are those of its number and its envelope under one of the
// keys.
type Matched struct {
	Number, Envelope bool
	// Salt is set when the salt is derived from the message's id, or when an earlier release stored
	// the envelope without one.
	Salt bool
}

// Match compares the keyed hashes of a row with its envelope and its number.
func (k *KeyedHashes) Match(row *ledger.Message, number string) (m Matched) {
	none := row.Salt == [selector.SaltSize]byte{}
	earlier, removed := false, false
	for i := range k.keys.keys {
		m.Number = m.Number || k.keys.ofNumber(i, number) == row.NumberHMAC
		salt, hash := k.keys.ofEnvelope(i, row.ID, row.Envelope)
		m.Salt = m.Salt || salt == row.Salt
		removed = removed || none && hash == row.EnvelopeHMAC
		earlier = earlier ||
			none && k.keys.at(i).HMAC(useEnvelope, row.Envelope) == row.EnvelopeHMAC
	}
	if none {
		m.Envelope, m.Salt = earlier || removed, !removed
		return m
	}
	m.Envelope = k.keys.salted(row.Salt, row.Envelope) == row.EnvelopeHMAC
	return m
}

// OfNumber appends the keyed hash that a message to a number has under each key.
func (k *KeyedHashes) OfNumber(dst []int64, number string) []int64 {
	for i := range k.keys.keys {
		dst = append(dst, k.keys.ofNumber(i, number))
	}
	return dst
}

// NumberHMAC is the keyed hash of a number, as it is stored with messages under that key.
func NumberHMAC(key selector.Key, number string) int64 {
	return selector.NewDrawer(key).HMAC(useNumber, []byte(number))
}

package decide

import (
	"dispatcher/ledger"
	"dispatcher/selector"
)

// What is hashed, as part of the input, so that the hash of a number and of an envelope differ.
const (
	useNumber   = "number"
	useEnvelope = "envelope"
)

// hmacs are the keyed hashes of a message's number and of its stored envelope, under the key at a
// position.
func (d *drawers) hmacs(at int, number string, stored []byte) (ofNumber, ofEnvelope int64) {
	drawer := d.at(at)
	d.buf = append(d.buf[:0], number...)
	return drawer.HMAC(useNumber, d.buf), drawer.HMAC(useEnvelope, stored)
}

// KeyedHashes checks the keyed hashes on the row of a message against a number and an envelope. It
// has scratch space: use it from one goroutine at a time.
type KeyedHashes struct {
	keys *drawers
}

// NewKeyedHashes returns a KeyedHashes with the keys of the key file, in any order.
func NewKeyedHashes(keys []selector.Key) *KeyedHashes { return &KeyedHashes{newDrawers(keys)} }

// Match reports whether the keyed hashes of a row are those of its envelope and of its number under
// one of the keys.
func (k *KeyedHashes) Match(row *ledger.Message, number string) (ofNumber, ofEnvelope bool) {
	for i := range k.keys.keys {
		n, e := k.keys.hmacs(i, number, row.Envelope)
		ofNumber, ofEnvelope = ofNumber || n == row.NumberHMAC, ofEnvelope || e == row.EnvelopeHMAC
	}
	return ofNumber, ofEnvelope
}

// OfNumber appends the keyed hash that a message to a number has under each key.
func (k *KeyedHashes) OfNumber(dst []int64, number string) []int64 {
	for i := range k.keys.keys {
		k.keys.buf = append(k.keys.buf[:0], number...)
		dst = append(dst, k.keys.at(i).HMAC(useNumber, k.keys.buf))
	}
	return dst
}

// NumberHMAC is the keyed hash of a number, as it is stored with messages under that key.
func NumberHMAC(key selector.Key, number string) int64 {
	return selector.NewDrawer(key).HMAC(useNumber, []byte(number))
}

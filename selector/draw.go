package selector

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/bits"
)

// KeySize is the length of a draw key in bytes.
const KeySize = 32

// Key is the secret under which draws are made. Without it draws cannot be predicted; with it every
// draw can be repeated.
type Key [KeySize]byte

// ParseKey reads 64 hexadecimal digits.
func ParseKey(s string) (Key, error) {
	var k Key
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != KeySize {
		return Key{}, fmt.Errorf("a draw key is %d hexadecimal digits", 2*KeySize)
	}
	copy(k[:], raw)
	if k == (Key{}) {
		return Key{}, errors.New("a draw key of zeros is not a secret")
	}
	return k, nil
}

// ID identifies the key in records without revealing it: the first eight hexadecimal digits of its
// SHA-256.
func (k Key) ID() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:4])
}

// String does not reveal the key.
func (k Key) String() string { return "draw key " + k.ID() }

// Drawer makes draws under one key. It keeps scratch space, so each goroutine needs
// its own.
type Drawer struct {
	id  string
	mac hash.Hash
	buf []byte
}

// NewDrawer returns a Drawer for key.
func NewDrawer(key Key) *Drawer {
	return &Drawer{id: key.ID(), mac: hmac.New(sha256.New, key[:]), buf: make([]byte, 0, 128)}
}

// KeyID is the id of the drawer's key.
func (d *Drawer) KeyID() string { return d.id }

// Draw is the number in [0, size) that belongs to a message id and an attempt number
// (from 1): the first eight bytes, big-endian, of
//
//	HMAC-SHA-256(key, id || 0x00 || attempt as four bytes, big-endian)
//
// multiplied by size, of which the upper 64 bits are the draw (Lemire, "Fast random
// integer generation in an interval", 2019, without the rejection step: the bias is below
// size/2^64). The same id and attempt always draw the same number, so a redelivered
// record picks the same channel. Size must not be 0.
func (d *Drawer) Draw(id string, attempt int, size uint64) uint64 {
	d.mac.Reset()
	d.buf = append(d.buf[:0], id...)
	d.buf = append(d.buf, 0)
	d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(attempt))
	d.mac.Write(d.buf)
	d.buf = d.mac.Sum(d.buf[:0])
	draw, _ := bits.Mul64(binary.BigEndian.Uint64(d.buf), size)
	return draw
}

// StickyDraw is the number in [0, size) that belongs to a keyed hash, such as the HMAC of a phone
// number: the upper 64 bits of the hash, as an unsigned number, times size. All messages with the
// same hash draw the same number. When size changes, the draw changes in proportion, so it picks
// another entry only if a boundary between entries has moved past it. Size must not be 0.
func StickyDraw(hash int64, size uint64) uint64 {
	draw, _ := bits.Mul64(uint64(hash), size) //nolint:gosec // All 64 bits are kept.
	return draw
}

// SaltSize is the length of a salt in bytes.
const SaltSize = 16

// Salt is a secret that belongs to a message id: the first 16 bytes of
//
//	HMAC-SHA-256(key, 0x00 || "salt" || 0x00 || id)
//
// Whoever is given the salt can check a plain hash of the salt and other data; to anybody else the
// hash reveals nothing about the data. As with HMAC, the input never equals that of a draw.
func (d *Drawer) Salt(id string) (salt [SaltSize]byte) {
	d.mac.Reset()
	d.buf = append(d.buf[:0], "\x00salt\x00"...)
	d.buf = append(d.buf, id...)
	d.mac.Write(d.buf)
	d.buf = d.mac.Sum(d.buf[:0])
	copy(salt[:], d.buf)
	return salt
}

// HMAC is a keyed hash of data for one use: the first eight bytes, big-endian and signed, of
//
//	HMAC-SHA-256(key, 0x00 || use || 0x00 || data)
//
// The input never equals that of a draw, because message ids do not begin with a zero byte. use
// must not contain a zero byte.
func (d *Drawer) HMAC(use string, data []byte) int64 {
	d.mac.Reset()
	d.buf = append(d.buf[:0], 0)
	d.buf = append(d.buf, use...)
	d.buf = append(d.buf, 0)
	d.mac.Write(d.buf)
	d.mac.Write(data)
	d.buf = d.mac.Sum(d.buf[:0])
	return int64(binary.BigEndian.Uint64(d.buf)) //nolint:gosec // All 64 bits are kept.
}

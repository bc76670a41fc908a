package pipeline

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"dispatcher/selector"
)

// References makes and opens the keys under which submissions are known to providers, see
// provider.Submission.Key.
//
// A key is one AES-128 block over the message's row, the attempt and six zero bytes, in hexadecimal
// digits. So it reveals nothing, a receipt that carries it identifies its attempt without a stored
// mapping, and it cannot be forged without the draw keys: a random text opens with a probability of
// 2^-48. The AES key is derived from the draw key (HKDF with SHA-256, RFC 5869); the first draw key
// makes new ones. It is safe for concurrent use.
type References struct {
	blocks []cipher.Block // by position of the draw key
	ids    []string       // of the draw keys
}

// referenceUse separates the derived keys from any other use of the draw keys.
const referenceUse = "dispatcher submission reference v1"

// NewReferences derives the keys. There must be at least one draw key.
func NewReferences(keys []selector.Key) (*References, error) {
	r := &References{}
	for _, key := range keys {
		derived, err := hkdf.Key(sha256.New, key[:], nil, referenceUse, aes.BlockSize)
		if err != nil {
			return nil, fmt.Errorf("derive the key of references: %w", err)
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, fmt.Errorf("derive the key of references: %w", err)
		}
		r.blocks, r.ids = append(r.blocks, block), append(r.ids, key.ID())
	}
	return r, nil
}

// Key is the key under which an attempt is submitted.
func (r *References) Key(seq int64, attempt int) string { return r.key(0, seq, attempt) }

// KeyUnder is the key under which an instance with another first draw key submitted an attempt. If
// there is no draw key with that id, known is false, and the key is that of Key.
func (r *References) KeyUnder(id string, seq int64, attempt int) (key string, known bool) {
	at := slices.Index(r.ids, id)
	return r.key(max(at, 0), seq, attempt), at >= 0
}

func (r *References) key(at int, seq int64, attempt int) string {
	var block [aes.BlockSize]byte
	binary.BigEndian.PutUint64(block[:], uint64(seq))        //nolint:gosec // Rows count from 1.
	binary.BigEndian.PutUint16(block[8:10], uint16(attempt)) //nolint:gosec // A smallint.
	r.blocks[at].Encrypt(block[:], block[:])
	var digits [2 * aes.BlockSize]byte
	hex.Encode(digits[:], block[:])
	return string(digits[:])
}

// Open is the inverse of Key, under any of the keys; ok is false when Key did not make the text.
func (r *References) Open(key string) (seq int64, attempt int, ok bool) {
	if len(key) != 2*aes.BlockSize {
		return 0, 0, false
	}
	var sealed, plain [aes.BlockSize]byte
	if _, err := hex.Decode(sealed[:], []byte(key)); err != nil {
		return 0, 0, false
	}
	for _, block := range r.blocks {
		block.Decrypt(plain[:], sealed[:])
		row, number := binary.BigEndian.Uint64(plain[:]), binary.BigEndian.Uint16(plain[8:10])
		if [6]byte(plain[10:]) == [6]byte{} && row-1 < math.MaxInt64 && number-1 < math.MaxInt16 {
			return int64(row), int(number), true
		}
	}
	return 0, 0, false
}

// Package seal shows whether stored rows were changed by anything but the dispatcher. Hashes of
// messages and of their outcomes are leaves of an append-only log, whose head is signed. The log is
// a transparency log (RFC 6962), so that others can check it with their own tools. The package is
// pure: its callers read and write. A seal (ledger.Seal) adds new leaves to the log and signs its
// head.
package seal

import (
	"encoding/binary"
	"errors"
	"slices"

	"dispatcher/ledger"
)

// LeafSize is the size of a leaf in bytes.
const LeafSize = 8 + 1 + 1 + len(ledger.Evidence{}.Parts)*ledger.HashSize

// Leaf is the state of a row at the time of a seal. The rows are messages, routing versions,
// closings and all others that ledger.Evidence describes.
type Leaf struct {
	Seq   int64
	State ledger.State
	// Open says that the parts before ledger.PartLater are not final, except ledger.PartIntake.
	Open  bool
	Parts ledger.Parts
}

// NewLeaf is the leaf of a message in its present state.
func NewLeaf(e *ledger.Evidence) Leaf {
	return Leaf{Seq: e.Seq, State: e.State, Open: e.Open, Parts: e.Parts}
}

// states are numbered from 1, in this order.
var states = [...]ledger.State{
	ledger.NotSent, ledger.Accepted, ledger.Delivered, ledger.Undelivered, ledger.NoReceipt,
	ledger.Rejected, ledger.Failed, ledger.Unknown, ledger.Dead,
}

func numberOf(s ledger.State) byte {
	return byte(slices.Index(states[:], s) + 1)
}

// Append appends the leaf: Seq as eight bytes, big-endian; the number of the state, 0 for all but
// messages; 1 if it is open, else 0; the hashes of the parts.
func (l *Leaf) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.Seq)) //nolint:gosec // All 64 bits are kept.
	dst = append(dst, numberOf(l.State), 0)
	if l.Open {
		dst[len(dst)-1] = 1
	}
	for i := range l.Parts {
		dst = append(dst, l.Parts[i][:]...)
	}
	return dst
}

// ReadLeaves is the inverse of Append, for any number of leaves.
func ReadLeaves(data []byte) ([]Leaf, error) {
	if len(data)%LeafSize != 0 {
		return nil, errors.New("the leaves are cut off")
	}
	leaves := make([]Leaf, len(data)/LeafSize)
	for i := range leaves {
		raw, l := data[i*LeafSize:(i+1)*LeafSize], &leaves[i]
		l.Seq = int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // All 64 bits are kept.
		if n := int(raw[8]); n >= 1 && n <= len(states) {
			l.State = states[n-1]
		}
		l.Open = raw[9] == 1
		for p := range l.Parts {
			copy(l.Parts[p][:], raw[10+p*ledger.HashSize:])
		}
	}
	return leaves, nil
}

package seal

import (
	"errors"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"dispatcher/ledger"
)

// Proof is an inclusion proof of RFC 6962, section 2.1.1: with the checkpoint, it shows that the
// log has a leaf. In JSON, bytes are in base64.
type Proof struct {
	Leaf       []byte   `json:"leaf"`
	Index      uint64   `json:"index"` // of the leaf in the log, from 0
	Size       uint64   `json:"size"`  // of the log at the checkpoint
	Hashes     [][]byte `json:"hashes"`
	Checkpoint string   `json:"checkpoint"`
	// Texts are the JSON texts of the parts of a message as they are now, by the names of
	// ledger.PartNames. The leaf has their hashes, unless they changed since. A part that the login
	// may not read is left out.
	Texts map[string]string `json:"texts,omitempty"`
}

// Growth is a consistency proof of RFC 6962, section 2.1.2: with two checkpoints, it shows that the
// later log is the earlier one with leaves added.
type Growth struct {
	From       uint64   `json:"from"` // the size of the log at the earlier checkpoint
	Size       uint64   `json:"size"`
	Hashes     [][]byte `json:"hashes"`
	Checkpoint string   `json:"checkpoint"` // the later one
}

// Prove makes the proof of leaf i of a seal. before is the seal before it, nil for the first.
func Prove(before, s *ledger.Seal, i int) (*Proof, error) {
	size := uint64(s.Size) //nolint:gosec // The table refuses less than 0.
	p := &Proof{
		Leaf:  s.Leaves[i*LeafSize : (i+1)*LeafSize],
		Index: size - uint64(len(s.Leaves)/LeafSize-i), //nolint:gosec // i is one of them.
		Size:  size, Checkpoint: s.Checkpoint,
	}
	needed, err := proof.Inclusion(p.Index, p.Size)
	if err != nil {
		return nil, err
	}
	r, err := replayAfter(before, needed)
	if err == nil {
		err = r.add(s.Leaves)
	}
	if err == nil {
		p.Hashes, err = r.hashes(p.Size)
	}
	return p, err
}

// ProveGrowth makes the proof that the log at a checkpoint continues the log at seal from. after
// must call its argument with the seals after from, in order.
func ProveGrowth(
	from *ledger.Seal, checkpoint string, after func(func(*ledger.Seal) error) error,
) (*Growth, error) {
	size, err := Size(checkpoint)
	if err != nil {
		return nil, err
	}
	g := &Growth{
		From: uint64(from.Size), //nolint:gosec // The table refuses less than 0.
		Size: size, Checkpoint: checkpoint,
	}
	needed, err := proof.Consistency(g.From, g.Size)
	if err != nil {
		return nil, err
	}
	r, err := replayAfter(from, needed)
	if err == nil {
		err = after(func(s *ledger.Seal) error {
			if r.log.Size() >= size { // A newer seal is not in the checkpoint.
				return nil
			}
			return r.add(s.Leaves)
		})
	}
	if err == nil {
		g.Hashes, err = r.hashes(size)
	}
	return g, err
}

// replayer adds the leaves again and keeps the hashes that a proof needs.
type replayer struct {
	log    *Log
	needed proof.Nodes
	met    map[compact.NodeID][]byte // hashes of the needed nodes; nil while not computed
}

// replayAfter begins after a seal; nil for the beginning of the log.
func replayAfter(before *ledger.Seal, needed proof.Nodes) (*replayer, error) {
	log, err := after(before)
	if err != nil {
		return nil, err
	}
	r := &replayer{log: log, needed: needed, met: map[compact.NodeID][]byte{}}
	for _, id := range needed.IDs {
		r.met[id] = nil
	}
	for i, id := range compact.RangeNodes(0, log.Size(), nil) {
		r.meet(id, log.tree.Hashes()[i])
	}
	return r, nil
}

func (r *replayer) meet(id compact.NodeID, hash []byte) {
	if _, needed := r.met[id]; needed {
		r.met[id] = hash
	}
}

func (r *replayer) add(leaves []byte) error { return r.log.add(leaves, r.meet) }

// errForgotten means that leaves were dropped together with their messages.
var errForgotten = errors.New("the log no longer has all leaves that the proof needs")

// hashes returns the hashes of the proof, after all leaves up to size were added.
func (r *replayer) hashes(size uint64) ([][]byte, error) {
	if r.log.Size() != size {
		return nil, errForgotten
	}
	hashes := make([][]byte, len(r.needed.IDs))
	for i, id := range r.needed.IDs {
		if hashes[i] = r.met[id]; hashes[i] == nil {
			return nil, errForgotten
		}
	}
	return r.needed.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
}

package seal

import (
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"dispatcher/ledger"
)

// Proof shows with the checkpoint alone that the log has a leaf: the inclusion proof of RFC 6962,
// section 2.1.1. Bytes are in base64 in JSON.
type Proof struct {
	Leaf       []byte   `json:"leaf"`
	Index      uint64   `json:"index"` // of the leaf in the log, from 0
	Size       uint64   `json:"size"`  // of the log at the checkpoint
	Hashes     [][]byte `json:"hashes"`
	Checkpoint string   `json:"checkpoint"`
}

// nodes are the hashes of subtrees that are known.
type nodes map[compact.NodeID][]byte

func (n nodes) see(id compact.NodeID, hash []byte) { n[id] = hash }

// Prove shows that the log has leaf i of a look, which follows the one before it, nil for the
// first.
func Prove(before, s *ledger.Seal, i int) (*Proof, error) {
	log, known, err := replayed(before, s.Leaves)
	if err != nil {
		return nil, err
	}
	first := log.Size() - uint64(len(s.Leaves)/LeafSize)
	p := &Proof{
		Leaf:  s.Leaves[i*LeafSize : (i+1)*LeafSize],
		Index: first + uint64(i), //nolint:gosec // It is not below 0.
		Size:  log.Size(), Checkpoint: s.Checkpoint,
	}
	needed, err := proof.Inclusion(p.Index, p.Size)
	if err != nil {
		return nil, err
	}
	p.Hashes, err = known.prove(needed)
	return p, err
}

// replayed is the log with leaves behind a look, and all hashes of subtrees met on the way.
func replayed(before *ledger.Seal, leaves []byte) (*Log, nodes, error) {
	log, err := Resume(0, nil)
	if before != nil {
		log, err = Resume(uint64(before.Size), before.Nodes) //nolint:gosec // The table refuses it.
	}
	if err != nil {
		return nil, nil, err
	}
	known := nodes{}
	for i, id := range compact.RangeNodes(0, log.Size(), nil) {
		known[id] = log.tree.Hashes()[i]
	}
	for ; len(leaves) >= LeafSize; leaves = leaves[LeafSize:] {
		hash := rfc6962.DefaultHasher.HashLeaf(leaves[:LeafSize])
		known[compact.NewNodeID(0, log.Size())] = hash
		if err := log.tree.Append(hash, known.see); err != nil {
			return nil, nil, err
		}
	}
	return log, known, nil
}

// prove are the hashes of a proof.
func (n nodes) prove(needed proof.Nodes) ([][]byte, error) {
	hashes := make([][]byte, len(needed.IDs))
	for i, id := range needed.IDs {
		hash, found := n[id]
		if !found {
			return nil, fmt.Errorf("a subtree of level %d is not known", id.Level)
		}
		hashes[i] = hash
	}
	return needed.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
}

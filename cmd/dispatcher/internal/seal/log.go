package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dispatcher/ledger"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Log is the log, to which leaves can be added. It keeps only the heads of the perfect subtrees, at
// most about two thousand bytes.
type Log struct{ tree *compact.Range }

var factory = &compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

// Resume returns a log with a number of leaves, given its Nodes.
func Resume(size uint64, nodes []byte) (*Log, error) {
	const width = 32
	if len(nodes)%width != 0 {
		return nil, errors.New("the heads of the log are cut off")
	}
	hashes := make([][]byte, 0, len(nodes)/width)
	for ; len(nodes) > 0; nodes = nodes[width:] {
		hashes = append(hashes, nodes[:width])
	}
	tree, err := factory.NewRange(0, size, hashes)
	if err != nil {
		return nil, fmt.Errorf("the heads of the log do not fit its %d leaves: %w", size, err)
	}
	return &Log{tree}, nil
}

// after returns the log after a seal; the empty log for nil.
func after(s *ledger.Seal) (*Log, error) {
	if s == nil {
		return Resume(0, nil)
	}
	return Resume(uint64(s.Size), s.Nodes) //nolint:gosec // The table refuses less than 0.
}

// Size is the number of leaves of the log.
func (l *Log) Size() uint64 { return l.tree.End() }

// Nodes are what Resume needs.
func (l *Log) Nodes() []byte { return bytes.Join(l.tree.Hashes(), nil) }

// Add adds leaves, given one after the other in one slice.
func (l *Log) Add(leaves []byte) error { return l.add(leaves, nil) }

// add also calls visit, unless that is nil, with each new node of the tree.
func (l *Log) add(leaves []byte, visit compact.VisitFn) error {
	for ; len(leaves) > 0; leaves = leaves[LeafSize:] {
		if len(leaves) < LeafSize {
			return errors.New("the leaves are cut off")
		}
		hash := rfc6962.DefaultHasher.HashLeaf(leaves[:LeafSize])
		if err := l.tree.Append(hash, visit); err != nil {
			return err
		}
	}
	return nil
}

// Root is the root hash of the log.
func (l *Log) Root() ([]byte, error) {
	if l.Size() == 0 {
		return rfc6962.DefaultHasher.EmptyRoot(), nil
	}
	return l.tree.GetRootHash(nil)
}

// Sign returns the signed checkpoint of the log, in the note format of transparency logs.
func (l *Log) Sign(signer note.Signer) (string, error) {
	root, err := l.Root()
	if err != nil {
		return "", err
	}
	text := signer.Name() + "\n" + strconv.FormatUint(l.Size(), 10) + "\n" +
		base64.StdEncoding.EncodeToString(root) + "\n"
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	return string(signed), err
}

// Checkpoint is a signed head of the log.
type Checkpoint struct {
	Size uint64
	Root []byte
}

// errCheckpoint means that a text is not a checkpoint.
var errCheckpoint = errors.New("it is not a checkpoint")

// Size is the number of leaves at a checkpoint. It does not verify the signature.
func Size(text string) (uint64, error) {
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) < 3 {
		return 0, errCheckpoint
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil {
		return 0, errCheckpoint
	}
	return size, nil
}

// open parses a checkpoint if its signature is valid.
func open(text string, verifier note.Verifier) (Checkpoint, error) {
	signed, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, err
	}
	lines := strings.Split(signed.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return Checkpoint{}, errCheckpoint
	}
	size, err := Size(text)
	if err != nil {
		return Checkpoint{}, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil {
		return Checkpoint{}, errCheckpoint
	}
	return Checkpoint{size, root}, nil
}

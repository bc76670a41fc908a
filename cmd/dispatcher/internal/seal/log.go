package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Log is the end of the log, to which leaves are added. It keeps the heads of the perfect subtrees
// only, some thousand bytes at most.
type Log struct{ tree *compact.Range }

var factory = &compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

// Resume is a log of so many leaves, of which Nodes are known.
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

// Size is how many leaves the log has.
func (l *Log) Size() uint64 { return l.tree.End() }

// Nodes are what Resume needs.
func (l *Log) Nodes() []byte { return bytes.Join(l.tree.Hashes(), nil) }

// Add adds leaves that lie end to end.
func (l *Log) Add(leaves []byte) error {
	for ; len(leaves) > 0; leaves = leaves[LeafSize:] {
		if len(leaves) < LeafSize {
			return errors.New("the leaves are cut off")
		}
		hash := rfc6962.DefaultHasher.HashLeaf(leaves[:LeafSize])
		if err := l.tree.Append(hash, nil); err != nil {
			return err
		}
	}
	return nil
}

// Root is the head of the log.
func (l *Log) Root() ([]byte, error) {
	if l.Size() == 0 {
		return rfc6962.DefaultHasher.EmptyRoot(), nil
	}
	return l.tree.GetRootHash(nil)
}

// Sign is the checkpoint of the log: the signed note of the transparency logs.
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

// errCheckpoint says that a text is no checkpoint at all.
var errCheckpoint = errors.New("it is not a checkpoint")

// Size is how many leaves the log has at a checkpoint, whoever signed it.
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

// open reads a checkpoint if its signature is right.
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

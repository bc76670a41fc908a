package seal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"dispatcher/ledger"
)

// Keys sign and verify the log. Verifiers also has the keys of earlier signers.
type Keys struct {
	Signer    note.Signer // nil to only verify
	Verifiers []note.Verifier
}

// ParseKeys parses the lines of a key file: signer and verifier keys in the format of package note
// of golang.org/x/mod/sumdb. The first signer key signs. name is the file's, for errors, which show
// no key.
func ParseKeys(name string, lines []string) (*Keys, error) {
	k := &Keys{}
	for i, line := range lines {
		if strings.HasPrefix(line, "PRIVATE+KEY+") {
			signer, err := note.NewSigner(line)
			if err != nil {
				return nil, fmt.Errorf("%s: key %d is not a signer key", name, i+1)
			}
			if k.Signer == nil {
				k.Signer = signer
			}
			continue
		}
		verifier, err := note.NewVerifier(line)
		if err != nil {
			return nil, fmt.Errorf("%s: key %d is not a verifier key: %w", name, i+1, err)
		}
		k.Verifiers = append(k.Verifiers, verifier)
	}
	switch {
	case len(k.Verifiers) == 0:
		return nil, fmt.Errorf("%s has no verifier key", name)
	case k.Signer != nil && !slices.ContainsFunc(k.Verifiers, func(v note.Verifier) bool {
		return v.Name() == k.Signer.Name() && v.KeyHash() == k.Signer.KeyHash()
	}):
		return nil, fmt.Errorf("%s lacks the verifier key of its first signer key", name)
	}
	return k, nil
}

// NewKey makes a key with a name such as sms.example.com. It returns the text of a key file, and
// the verifier key, which may be public.
func NewKey(name string) (file, verifier string, err error) {
	signer, verifier, err := note.GenerateKey(rand.Reader, name)
	if err == nil {
		_, err = note.NewSigner(signer) // it checks the name
	}
	if err != nil {
		return "", "", err
	}
	return "# The first line signs, and is secret. The second verifies; auditors need no other.\n" +
		signer + "\n" + verifier + "\n", verifier, nil
}

// Open verifies and parses a checkpoint that one of the keys has signed.
func (k *Keys) Open(text string) (c Checkpoint, err error) {
	err = errors.New("there is no key")
	for _, verifier := range k.Verifiers {
		if c, err = open(text, verifier); err == nil {
			return c, nil
		}
	}
	return c, err
}

// writer collects the leaves of one seal.
type writer struct {
	log    *Log
	keys   *Keys
	known  map[int64]Leaf // the newest leaf of each row that was sealed before
	leaves []byte
}

// Begin continues the log after its newest seal, nil for none. It returns an error if that seal is
// not as it was signed, because additions to a damaged log would prove nothing.
func (k *Keys) Begin(last *ledger.Seal) (ledger.SealWriter, error) {
	log, err := k.resume(last)
	return &writer{log: log, keys: k, known: map[int64]Leaf{}, leaves: []byte{}}, err
}

// resume returns the log after a seal, if the seal is as it was signed; the empty log for nil.
func (k *Keys) resume(s *ledger.Seal) (*Log, error) {
	log, err := after(s)
	if err != nil || s == nil {
		return log, err
	}
	return log, k.check(log, s)
}

// check compares the log with the checkpoint of a seal.
func (k *Keys) check(log *Log, s *ledger.Seal) error {
	signed, err := k.Open(s.Checkpoint)
	if err != nil {
		return fmt.Errorf("checkpoint %d: %w", s.Number, err)
	}
	root, err := log.Root()
	if err != nil {
		return err
	}
	if signed.Size != log.Size() || !bytes.Equal(signed.Root, root) {
		return fmt.Errorf("checkpoint %d is not that of the log", s.Number)
	}
	return nil
}

// Check returns an error if a seal is not as it was signed, or does not follow the one before it
// (nil for the first).
func (k *Keys) Check(before, s *ledger.Seal) error {
	log, err := k.resume(before)
	if err != nil {
		return err
	}
	if err := log.Add(s.Leaves); err != nil {
		return fmt.Errorf("seal %d: %w", s.Number, err)
	}
	if !bytes.Equal(log.Nodes(), s.Nodes) {
		return fmt.Errorf("seal %d has other heads than its leaves lead to", s.Number)
	}
	return k.check(log, s)
}

// Known takes leaves that the log has already: Add adds them only if they have changed.
func (w *writer) Known(leaves []byte) error {
	all, err := ReadLeaves(leaves)
	for _, leaf := range all {
		w.known[leaf.Seq] = leaf
	}
	return err
}

// Add adds a leaf for a row, unless the log has the same one.
func (w *writer) Add(e *ledger.Evidence) error {
	leaf := NewLeaf(e)
	if known, found := w.known[e.Seq]; found && known == leaf {
		return nil
	}
	w.leaves = leaf.Append(w.leaves)
	return nil
}

// Close signs the log and sets the fields of s.
func (w *writer) Close(s *ledger.Seal) (err error) {
	if err := w.log.Add(w.leaves); err != nil {
		return err
	}
	s.Size = int64(w.log.Size()) //nolint:gosec // Far less.
	s.Leaves, s.Nodes = w.leaves, append([]byte{}, w.log.Nodes()...)
	s.Checkpoint, err = w.log.Sign(w.keys.Signer)
	return err
}

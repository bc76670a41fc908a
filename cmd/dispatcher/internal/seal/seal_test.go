package seal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"dispatcher/ledger"
)

// newKeys returns the keys of a new file.
func newKeys(t *testing.T) *Keys {
	t.Helper()
	text, _, err := NewKey("sms.example.com")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys("seal.key", secrets(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// secrets returns the lines of a file that are not comments.
func secrets(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// newSeals returns n seals of random messages.
func newSeals(t *testing.T, keys *Keys, n int) []*ledger.Seal {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var all []*ledger.Seal
	var last *ledger.Seal
	for number := range n {
		w, err := keys.Begin(last)
		if err != nil {
			t.Fatal(err)
		}
		for range random.IntN(9) {
			e := ledger.Evidence{
				Seq: random.Int64(), State: states[random.IntN(len(states))],
				Open: random.IntN(2) == 0,
			}
			for p := range e.Parts {
				e.Parts[p][random.IntN(ledger.HashSize)] = byte(random.Uint32())
			}
			if err := w.Add(&e); err != nil {
				t.Fatal(err)
			}
		}
		last = &ledger.Seal{Number: int64(number + 1)}
		if err := w.Close(last); err != nil {
			t.Fatal(err)
		}
		all = append(all, last)
	}
	return all
}

// TestOthersCheckTheLogWithTheirTools: each leaf is proved with the public functions of
// transparency logs, from the checkpoint and the proof alone.
func TestOthersCheckTheLogWithTheirTools(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	var before *ledger.Seal
	proved := 0
	for _, s := range newSeals(t, keys, 60) {
		if err := keys.Check(before, s); err != nil {
			t.Fatal(err)
		}
		for i := range len(s.Leaves) / LeafSize {
			p, err := Prove(before, s, i)
			if err != nil {
				t.Fatal(err)
			}
			c, err := keys.Open(p.Checkpoint)
			if err != nil || c.Size != p.Size {
				t.Fatal(c, err)
			}
			hash := rfc6962.DefaultHasher.HashLeaf(p.Leaf)
			err = proof.VerifyInclusion(rfc6962.DefaultHasher, p.Index, p.Size, hash, p.Hashes, c.Root)
			if err != nil {
				t.Errorf("leaf %d of %d: %v", p.Index, p.Size, err)
			}
			proved++
		}
		before = s
	}
	if proved < 100 {
		t.Errorf("%d leaves", proved)
	}
}

// TestOthersSeeThatTheLogOnlyGrew: from each checkpoint to each later one, with the public
// functions of transparency logs.
func TestOthersSeeThatTheLogOnlyGrew(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	all := newSeals(t, keys, 60)
	for i, from := range all {
		for j := i; j < len(all); j++ {
			g, err := ProveGrowth(from, all[j].Checkpoint, func(add func(*ledger.Seal) error) error {
				for _, s := range all[i+1:] {
					if err := add(s); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			was, err := keys.Open(from.Checkpoint)
			if err != nil {
				t.Fatal(err)
			}
			is, err := keys.Open(g.Checkpoint)
			if err != nil || g.From != was.Size || g.Size != is.Size {
				t.Fatal(g, err)
			}
			err = proof.VerifyConsistency(rfc6962.DefaultHasher, g.From, g.Size, g.Hashes, was.Root,
				is.Root)
			if err != nil {
				t.Errorf("%d to %d leaves: %v", g.From, g.Size, err)
			}
		}
	}
	lost := func(add func(*ledger.Seal) error) error { return add(all[2]) }
	if _, err := ProveGrowth(all[0], all[2].Checkpoint, lost); !errors.Is(err, errForgotten) {
		t.Errorf("with leaves missing: %v", err)
	}
}

func TestLeavesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	var data []byte
	var want []Leaf
	for i, state := range states {
		l := Leaf{Seq: int64(i) << 40, State: state, Open: i%2 == 0}
		for p := range l.Parts {
			l.Parts[p] = [ledger.HashSize]byte{byte(i), byte(p), 7}
		}
		data, want = l.Append(data), append(want, l)
	}
	version := Leaf{Seq: -3}
	data, want = version.Append(data), append(want, version)
	got, err := ReadLeaves(data)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := ReadLeaves(data[1:]); err == nil {
		t.Error("truncated leaves were accepted")
	}
}

// TestADamagedLogIsNotContinued: additions to it would prove nothing.
func TestADamagedLogIsNotContinued(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	all := newSeals(t, keys, 20)
	last := all[len(all)-1]
	for name, damage := range map[string]func(*ledger.Seal){
		"size":       func(s *ledger.Seal) { s.Size++ },
		"nodes":      func(s *ledger.Seal) { s.Nodes = bytes.Repeat([]byte{1}, len(s.Nodes)) },
		"cut nodes":  func(s *ledger.Seal) { s.Nodes = s.Nodes[1:] },
		"checkpoint": func(s *ledger.Seal) { s.Checkpoint = all[3].Checkpoint },
		"signature":  func(s *ledger.Seal) { s.Checkpoint = s.Checkpoint[:len(s.Checkpoint)-9] + "\n" },
		"other key": func(s *ledger.Seal) {
			s.Checkpoint = newSeals(t, newKeys(t), 20)[19].Checkpoint
		},
	} {
		damaged := *last
		damage(&damaged)
		if _, err := keys.Begin(&damaged); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := keys.Begin(last); err != nil {
		t.Error(err)
	}
}

func TestKeyFilesAreReadOrExplained(t *testing.T) {
	t.Parallel()
	first, _, err := NewKey("first")
	if err != nil {
		t.Fatal(err)
	}
	second, verifier, err := NewKey("second")
	if err != nil {
		t.Fatal(err)
	}
	one, two := secrets(first), secrets(second)
	keys, err := ParseKeys("f", append(two, one[1])) // a new key above the verifier of the old one
	if err != nil || keys.Signer.Name() != "second" || len(keys.Verifiers) != 2 {
		t.Error(keys, err)
	}
	if keys, err := ParseKeys("f", []string{verifier}); err != nil || keys.Signer != nil {
		t.Error(keys, err)
	}
	for want, lines := range map[string][]string{
		"f has no verifier key":                            {one[0]},
		"f lacks the verifier key of its first signer key": {one[0], two[1]},
		"f: key 1 is not a signer key":                     {"PRIVATE+KEY+x", one[1]},
		"f: key 2 is not a verifier key":                   {one[1], "hello"},
		"f has no verifier key ":                           nil,
	} {
		_, err := ParseKeys("f", lines)
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v instead of %s", err, want)
		}
		if err != nil && strings.Contains(err.Error(), one[0]) {
			t.Error("the error shows the key")
		}
	}
	if _, _, err := NewKey("a b"); err == nil {
		t.Error("a name with a space was accepted")
	}
}

// TestOnlyWhatMayHaveHappenedIsTaken: as a change by the dispatcher.
func TestOnlyWhatMayHaveHappenedIsTaken(t *testing.T) {
	t.Parallel()
	one, other := ledger.Parts{}, ledger.Parts{}
	for p := range other {
		other[p][0] = 1
	}
	with := func(p int) ledger.Parts {
		parts := one
		parts[p] = other[p]
		return parts
	}
	sealedAt := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		was    Leaf
		now    ledger.Evidence
		faults string
	}{
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Accepted}, ""},
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Delivered, Parts: with(ledger.PartLater), LaterAt: sealedAt.Add(-30 * time.Second)}, ""},
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Delivered, Parts: with(ledger.PartLater), LaterAt: sealedAt.Add(-2 * time.Minute)}, "changed later"},
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Accepted, Parts: with(ledger.PartLater)}, "changed later"},
		{Leaf{State: ledger.Unknown, Open: true}, ledger.Evidence{State: ledger.Delivered, Parts: with(ledger.PartLater), LaterAt: sealedAt}, ""},
		{Leaf{State: ledger.Unknown, Open: true}, ledger.Evidence{State: ledger.Delivered, Parts: with(ledger.PartLater)}, "changed later"},
		{Leaf{State: ledger.Unknown, Open: true}, ledger.Evidence{State: ledger.Unknown, Open: true, Parts: with(ledger.PartPlan)}, "changed plan"},
		{Leaf{State: ledger.Unknown, Open: true}, ledger.Evidence{State: ledger.NotSent, Open: true, Parts: with(ledger.PartPlan)}, ""},
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Accepted, Parts: with(ledger.PartAttempts)}, "changed attempts"},
		{Leaf{State: ledger.Accepted, Open: true}, ledger.Evidence{State: ledger.Accepted, Parts: with(ledger.PartAttempts), LaterAt: sealedAt}, ""},
		{Leaf{State: ledger.Accepted, Open: true}, ledger.Evidence{State: ledger.Accepted, Parts: with(ledger.PartAttempts)}, "changed attempts"},
		{Leaf{State: ledger.NotSent, Open: true}, ledger.Evidence{State: ledger.Failed, Parts: with(ledger.PartPlan)}, ""},
		{Leaf{State: ledger.NotSent, Open: true}, ledger.Evidence{State: ledger.NotSent, Parts: with(ledger.PartIntake)}, "changed intake"},
		{Leaf{State: ledger.Delivered}, ledger.Evidence{State: ledger.Accepted}, "outcome"},
		{Leaf{State: ledger.Accepted}, ledger.Evidence{State: ledger.Rejected}, "outcome"},
		{Leaf{State: ledger.Rejected}, ledger.Evidence{State: ledger.Accepted}, "outcome"},
		{Leaf{State: ledger.Failed}, ledger.Evidence{State: ledger.NotSent}, "outcome"},
		{Leaf{State: ledger.Unknown, Open: true}, ledger.Evidence{State: ledger.Accepted}, ""},
	} {
		var got []string
		for _, f := range Verify([]Leaf{c.was}, &c.now, sealedAt) {
			got = append(got, strings.TrimSpace(f.What+" "+f.Part))
		}
		if strings.Join(got, ", ") != c.faults {
			t.Errorf("%+v, now %+v: %v, not %s", c.was, c.now, got, c.faults)
		}
	}
	if got := fmt.Sprint(Verify([]Leaf{{Seq: 7}}, nil, time.Time{})); !strings.Contains(got, Deleted) {
		t.Error(got)
	}
	if got := fmt.Sprint(Verify(nil, &ledger.Evidence{}, time.Time{})); !strings.Contains(got, Inserted) {
		t.Error(got)
	}
}

package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// outsider checks proofs with a verifier key, the output of "audit proof" and the public libraries
// of transparency logs. It uses no package of this module and no database.
type outsider struct{ verifier note.Verifier }

// open verifies a checkpoint as described in
// https://github.com/C2SP/C2SP/blob/main/tlog-checkpoint.md.
func (o *outsider) open(t *testing.T, checkpoint string) (size uint64, root []byte) {
	t.Helper()
	signed, err := note.Open([]byte(checkpoint), note.VerifierList(o.verifier))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(signed.Text, "\n")
	if lines[0] != o.verifier.Name() {
		t.Errorf("got log name %s", lines[0])
	}
	size, err = strconv.ParseUint(lines[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if root, err = base64.StdEncoding.DecodeString(lines[2]); err != nil {
		t.Fatal(err)
	}
	return size, root
}

// TestAnOutsiderChecksProofsWithTheirOwnTools: proofs of inclusion and consistency, from the
// printed JSON.
func TestAnOutsiderChecksProofsWithTheirOwnTools(t *testing.T) {
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 10)
	first, code := o.verify(seals...)
	if code != exitOK || first.Sealed == nil {
		t.Fatalf("%d: got %+v", code, first)
	}
	kept := write(t, "checkpoint", first.Sealed.Checkpoint)
	// The log grows: all messages get a receipt, and an hour later the dispatcher seals again.
	o.exec(`update dispatcher.attempts set receipt_state = 'delivered', receipt_at = now(),
		delivered_at = now() where outcome = 'accepted'`)
	o.exec(`update dispatcher.seals s set to_at = date_trunc('hour', from_at) + interval '1 hour',
		at = date_trunc('hour', from_at) + interval '61 minutes'`)
	o.exec(`update dispatcher.seals set from_at = from_at - interval '3 hours',
		to_at = to_at - interval '3 hours', at = at - interval '3 hours'`)
	o.exec(`update dispatcher.messages set received_at = received_at - interval '3 hours'`)
	addSeals(t, o, keyFile)

	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	verifier, err := note.NewVerifier(lines[len(lines)-1])
	if err != nil {
		t.Fatal(err)
	}
	out := outsider{verifier}
	prove := func(v any, args ...string) {
		t.Helper()
		got := dispatcher(t, "", o.env,
			append([]string{"audit", "proof", "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.out), v); err != nil {
			t.Fatalf("%v in %+v", err, got)
		}
	}
	for _, id := range []string{"v1-000000", "v1-000003", "v2-000009"} {
		var p struct {
			Leaf, Hashes json.RawMessage
			Index, Size  uint64
			Checkpoint   string
		}
		prove(&p, id)
		var leaf []byte
		var hashes [][]byte
		if err := json.Unmarshal(p.Leaf, &leaf); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(p.Hashes, &hashes); err != nil {
			t.Fatal(err)
		}
		size, root := out.open(t, p.Checkpoint)
		check := func() error {
			return proof.VerifyInclusion(rfc6962.DefaultHasher, p.Index, size,
				rfc6962.DefaultHasher.HashLeaf(leaf), hashes, root)
		}
		if err := check(); err != nil || size != p.Size {
			t.Errorf("%s, leaf %d of %d: %v", id, p.Index, size, err)
		}
		leaf[8] ^= 1 // changes the state
		if check() == nil {
			t.Errorf("%s: the log contains a changed leaf", id)
		}
	}
	var g struct {
		From, Size uint64
		Hashes     [][]byte
		Checkpoint string
	}
	prove(&g, "--since", kept)
	from, was := out.open(t, first.Sealed.Checkpoint)
	size, root := out.open(t, g.Checkpoint)
	if g.From != from || g.Size != size || size <= from {
		t.Fatalf("from %d to %d leaves: %+v", from, size, g)
	}
	err = proof.VerifyConsistency(rfc6962.DefaultHasher, from, size, g.Hashes, was, root)
	if err != nil {
		t.Error(err)
	}
	g.Hashes[0][0] ^= 1
	if proof.VerifyConsistency(rfc6962.DefaultHasher, from, size, g.Hashes, was, root) == nil {
		t.Error("a changed proof is accepted")
	}
}

// TestALimitThatMissesRowsIsNamed: the limit has counted slots for which no attempt is stored.
func TestALimitThatMissesRowsIsNamed(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 10)
	o.exec(`insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
		  max, granted, since)
		select 'c', 'channel', 60, 'messages', date_trunc('minute', min(claimed_at)), 1000, 999,
		  now() - interval '2 days' from dispatcher.attempts`)
	var day string
	if err := o.sql.QueryRow(t.Context(), `select to_char(min(claimed_at) at time zone
		'Europe/London', 'YYYY-MM-DD') from dispatcher.attempts`).Scan(&day); err != nil {
		t.Fatal(err)
	}
	v, code := o.verify("--day", day)
	if code != exitFailed || v.ByKind["deleted"] != 1 || v.Mismatches[0].ID != "limit of c" ||
		v.Mismatches[0].Derived != "999 were counted" {
		t.Errorf("%d: got %+v", code, v)
	}
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// outsider checks proofs with a verifier key, the output of "audit proof" and the public libraries
// of transparency logs. It uses no package of this module and no database.
type outsider struct{ verifier note.Verifier }

// newOutsider returns somebody who knows the last line of a key file.
func newOutsider(t *testing.T, keyFile string) *outsider {
	t.Helper()
	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	verifier, err := note.NewVerifier(lines[len(lines)-1])
	if err != nil {
		t.Fatal(err)
	}
	return &outsider{verifier}
}

// inclusion is a printed proof of inclusion.
type inclusion struct {
	Leaf        []byte
	Hashes      [][]byte
	Index, Size uint64
	Checkpoint  string
}

// included checks a proof, and that it proves no changed leaf.
func (o *outsider) included(t *testing.T, p *inclusion) {
	t.Helper()
	size, root := o.open(t, p.Checkpoint)
	check := func(leaf []byte) error {
		return proof.VerifyInclusion(rfc6962.DefaultHasher, p.Index, size,
			rfc6962.DefaultHasher.HashLeaf(leaf), p.Hashes, root)
	}
	if err := check(p.Leaf); err != nil || size != p.Size {
		t.Errorf("leaf %d of %d: %v", p.Index, p.Size, err)
	}
	changed := slices.Clone(p.Leaf)
	changed[10] ^= 1 // the first hash
	if check(changed) == nil {
		t.Errorf("the log contains a changed leaf %d", p.Index)
	}
}

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

	out := newOutsider(t, keyFile)
	prove := func(v any, args ...string) {
		t.Helper()
		got := dispatcher(t, "", o.env,
			append([]string{"audit", "proof", "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.out), v); err != nil {
			t.Fatalf("%v in %+v", err, got)
		}
	}
	for _, id := range []string{"v1-000000", "v1-000003", "v2-000009"} {
		var p inclusion
		prove(&p, id)
		out.included(t, &p)
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
	err := proof.VerifyConsistency(rfc6962.DefaultHasher, from, size, g.Hashes, was, root)
	if err != nil {
		t.Error(err)
	}
	g.Hashes[0][0] ^= 1
	if proof.VerifyConsistency(rfc6962.DefaultHasher, from, size, g.Hashes, was, root) == nil {
		t.Error("a changed proof is accepted")
	}
}

// TestAnOutsiderChecksTheProofOfAClosedDay: with finance's login. The hashes of the leaf are those
// of the figures, which SQL computes.
func TestAnOutsiderChecksTheProofOfAClosedDay(t *testing.T) {
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 10)
	day := seals[len(seals)-1]
	o.closed(day)
	url, _ := strings.CutPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	env := []string{"DISPATCHER_POSTGRES_URL=" + ledgertest.As(migrations.RoleFinance, url)}
	prove := func(args ...string) result {
		return dispatcher(t, "", env, append([]string{
			"audit", "proof", "--format", "json", "--day", day,
		}, args...)...)
	}
	if got := prove(); got.code != exitFailed || !strings.Contains(got.err,
		"has no such closing of "+day) {
		t.Errorf("before it is sealed: %+v", got)
	}
	o.exec(`update dispatcher.closings set at = at - interval '40 minutes'`)
	addSeals(t, o, keyFile)
	var p inclusion
	if err := json.Unmarshal([]byte(prove("--revision", "1").out), &p); err != nil {
		t.Fatal(err)
	}
	newOutsider(t, keyFile).included(t, &p)
	var hashes []byte
	if err := o.sql.QueryRow(t.Context(), `select intake || choices || attempts || carried
		from facts.closing_evidence where day = $1 and revision = 1`, day).Scan(&hashes); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.Leaf[10:], hashes) {
		t.Errorf("the leaf has %x, the figures %x", p.Leaf[10:], hashes)
	}
	if got := prove("--revision", "2"); got.code != exitFailed {
		t.Errorf("of a closing that is not there: %+v", got)
	}
}

// TestALimitThatMissesRowsIsNamed: the owner of the database deletes a message and its attempts, or
// raises a counter. No log of hashes is kept, and each choice that is left is as on record.
func TestALimitThatMissesRowsIsNamed(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 10)
	o.exec(`insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
		  max, granted, since)
		select 'c', 'channel', 60, 'messages', date_trunc('minute', claimed_at), 1000, count(*),
		  now() - interval '2 days' from dispatcher.all_attempts where channel = 'c' group by 5`)
	var day, id string
	var minute time.Time
	var counted int64 // in this minute
	if err := o.sql.QueryRow(t.Context(), `select to_char(a.claimed_at at time zone
		  'Europe/London', 'YYYY-MM-DD'), m.id, h.window_start, h.granted
		from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
		join dispatcher.limit_history h on h.window_start = date_trunc('minute', a.claimed_at)
		where a.channel = 'c' and h.since < now() - interval '1 day'
		order by a.claimed_at limit 1`).Scan(&day, &id, &minute, &counted); err != nil {
		t.Fatal(err)
	}
	check := func(after string, onRecord, granted int64) {
		t.Helper()
		v, code := o.verify("--day", day)
		if code != exitFailed || len(v.Mismatches) != 1 || v.ByKind["deleted"] != 1 ||
			v.Mismatches[0].ID != "limit of c" || !strings.HasPrefix(v.Mismatches[0].Stored,
			fmt.Sprintf("%d attempts in the 60 s from ", onRecord)) ||
			v.Mismatches[0].Derived != fmt.Sprintf("%d were counted", granted) {
			t.Errorf("%s: exit code %d, %+v", after, code, v)
		}
	}
	if v, code := o.verify("--day", day); code != exitOK || len(v.Mismatches) > 0 {
		t.Fatalf("with all rows: exit code %d, %+v", code, v)
	}
	o.exec(`with m as (delete from dispatcher.messages where id = $1 returning seq)
		delete from dispatcher.attempts a using m where a.message_seq = m.seq`, id)
	check("a message was deleted", counted-1, counted)
	o.exec(`update dispatcher.limit_history set granted = 999
		where window_seconds = 60 and window_start = $1`, minute)
	check("a counter was raised", counted-1, 999)
}

// TestAPublishedCheckpointCoversTheFigures: the report of a day waits until its closing is in the
// log, unless nobody keeps the log any more.
func TestAPublishedCheckpointCoversTheFigures(t *testing.T) {
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 10)
	day := seals[len(seals)-1]
	o.closed(day)
	folder := t.TempDir()
	args := []string{"report", "publish", "--url", folder}
	for _, more := range [][]string{nil, {"--format", "json"}} {
		got := dispatcher(t, "", o.env, append(args, more...)...)
		if got.code != exitOK || strings.Contains(got.out, day) ||
			!strings.Contains(got.err, "Not written yet") {
			t.Errorf("before the figures are in the log: %+v", got)
		}
	}
	o.exec(`update dispatcher.closings set at = at - interval '40 minutes'`)
	addSeals(t, o, keyFile)
	names := days(publishedNames(t, o.env, "--url", folder))
	csv := "daily/" + day + ".csv"
	want := []string{csv + ".checkpoint", csv, "daily/" + day + ".html"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatal(diff)
	}
	size, _ := newOutsider(t, keyFile).open(t, read(t, filepath.Join(folder, want[0])))
	var p inclusion
	got := dispatcher(t, "", o.env, "audit", "proof", "--format", "json", "--day", day)
	if err := json.Unmarshal([]byte(got.out), &p); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}
	if p.Index >= size {
		t.Errorf("the closing is entry %d, the published checkpoint has %d", p.Index, size)
	}
	o.exec(`update dispatcher.closings set at = now()`)
	if names := publishedNames(t, o.env, "--url", t.TempDir()); len(names) > 0 {
		t.Errorf("published before the closing is in the log: %v", names)
	}
	o.exec(`update dispatcher.closings set at = now() - interval '61 minutes'`)
	o.exec(`update dispatcher.seals set to_at = from_at + interval '1 second' where closings`)
	if names := publishedNames(t, o.env, "--url", t.TempDir()); len(names) == 0 {
		t.Error("without a log that grows, nothing is published")
	}
}

// TestAProgramOfTheAuditorsReadsAProof: deploy/audit/prove.py is written from docs/evidence.md and
// uses nothing of this program. Finance's login is enough for the proof.
func TestAProgramOfTheAuditorsReadsAProof(t *testing.T) {
	tier.LongOnly(t) // it needs Python
	t.Parallel()
	o, keyFile, _ := sealedAuditDB(t, 10)
	url, _ := strings.CutPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	got := dispatcher(t, "", []string{
		"DISPATCHER_POSTGRES_URL=" + ledgertest.As(migrations.RoleFinance, url),
	}, "audit", "proof", "v1-000003", "--format", "json")
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	other, _, err := seal.NewKey("sms.example.com")
	if err != nil {
		t.Fatal(err)
	}
	prove := func(key string, changed func(p map[string]any)) (out string, code int) {
		t.Helper()
		var p map[string]any
		if err := json.Unmarshal([]byte(got.out), &p); err != nil {
			t.Fatal(err)
		}
		changed(p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return python(t, "../../deploy/audit/prove.py", "--key", key, write(t, "proof", string(text)))
	}
	out, code := prove(keyFile, func(map[string]any) {})
	for _, want := range []string{
		"signed by sms.example.com: leaf ", `id: "v1-000003"`, "first_choice: ", "price_micros: ",
		`outcome: "accepted"`, "claimed_at: 20", "later:", `state: "accepted"`,
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, out)
		}
	}
	texts := func(p map[string]any) map[string]any { return p["texts"].(map[string]any) }
	for want, changed := range map[string]func(p map[string]any){
		"attempts: the text is not the one in the log": func(p map[string]any) {
			was := texts(p)["attempts"].(string)
			now := strings.Replace(was, `"GBP"`, `"EUR"`, 1)
			if now == was {
				t.Error("the attempts have no currency")
			}
			texts(p)["attempts"] = now
		},
		"the log does not have this leaf": func(p map[string]any) {
			p["index"] = p["index"].(float64) + 1
		},
		"the key has not signed this checkpoint": func(p map[string]any) {
			p["checkpoint"] = strings.Replace(p["checkpoint"].(string), "\n", "\n1", 1)
		},
	} {
		if out, code := prove(keyFile, changed); code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, out)
		}
	}
	if out, code := prove(write(t, "other", other), func(map[string]any) {}); code != 1 ||
		!strings.Contains(out, "the key has not signed this checkpoint") {
		t.Errorf("with another key: exit code %d\n%s", code, out)
	}
	if out, code := prove(keyFile, func(p map[string]any) { delete(p, "leaf") }); code != 2 {
		t.Errorf("without a leaf: exit code %d\n%s", code, out)
	}
}

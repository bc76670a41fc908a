package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// Changes of a row of payloads, at the same length and price.
const (
	otherText = `envelope = convert_to(replace(convert_from(envelope, 'UTF8'), '123456', '654321'),
		'UTF8')`
	otherNumber = `envelope = convert_to(replace(convert_from(envelope, 'UTF8'), '+447700900123',
		'+447700900124'), 'UTF8')`
	ofOtherNumber = `dispatcher.recipient((select m.tenant from dispatcher.messages m
		where m.seq = payloads.seq), '+447700900124')`
	ofAnother = `(envelope, salt, digest, recipient) = (select envelope, salt, digest, recipient
		from dispatcher.payloads where seq = (select max(seq) from dispatcher.payloads))`
)

// TestAPayloadThatWasChangedIsFound with finance's login, without any draw key and without a log of
// hashes. The same holds for a dead record, which somebody may publish again. A payload that is
// gone is not a difference, and neither is one of an earlier release.
func TestAPayloadThatWasChangedIsFound(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o := filledAuditDB(t, 20)
	app := o.env[0]
	o.asFinance()
	want := ledger.ComparedPayloads{Compared: 40}
	intact := func() {
		t.Helper()
		v, code := o.verify("--without-keys")
		if code != exitOK || v.Payloads != want {
			t.Fatalf("exit code %d, %+v, payloads: %+v", code, v.Mismatches, v.Payloads)
		}
	}
	intact()
	ids := names(t, o.sql, `select id from dispatcher.messages order by seq`)
	const (
		first  = ` where seq = (select min(seq) from dispatcher.messages)`
		update = `update dispatcher.payloads set `
	)
	o.exec(`create table kept as select * from dispatcher.payloads`)
	changed := []string{"another number, text or salt in payloads"}
	recipient, noSalt := []string{"another recipient in payloads"}, []string{"no salt in payloads"}
	for _, c := range []struct {
		sql    string
		stored []string // of the first message, and of the last one
	}{
		{update + otherText + first, changed},
		{update + otherNumber + first, changed},
		{update + otherNumber + `, recipient = ` + ofOtherNumber + first, changed},
		{update + otherText + `, salt = substr(sha256(envelope), 1, 16)` + first, changed},
		{update + otherText + `, salt = ''` + first, changed},
		{update + `salt = set_byte(salt, 15, get_byte(salt, 15) # 128)` + first, changed},
		{update + `envelope = 'x'` + first, changed},
		{update + ofAnother + first, changed},
		{
			`update dispatcher.payloads p set envelope = k.envelope, salt = k.salt, digest = k.digest
			from kept k where (p.seq, k.seq) in (select min(seq), max(seq) from dispatcher.messages
			  union all select max(seq), min(seq) from dispatcher.messages)`,
			slices.Concat(changed, changed),
		},
		{update + `recipient = recipient # 1` + first, recipient},
		{update + `recipient = ` + ofOtherNumber + first, recipient},
		{update + `recipient = null` + first, recipient},
		{update + `salt = null` + first, noSalt},
		{update + otherText + `, salt = null` + first, noSalt},
		{update + otherNumber + `, salt = null` + first, recipient},
	} {
		o.exec(c.sql)
		v, code := o.verify("--without-keys")
		var found []audit.Mismatch
		for i, stored := range c.stored {
			found = append(found, audit.Mismatch{
				ID: []string{ids[0], ids[len(ids)-1]}[i], What: seal.Changed, Stored: stored,
			})
		}
		for i := range v.Mismatches {
			v.Mismatches[i].Derived = ""
		}
		if diff := cmp.Diff(found, v.Mismatches); diff != "" || code != exitFailed {
			t.Errorf("%s: exit code %d, %s", c.sql, code, diff)
		}
		o.exec(`update dispatcher.payloads p set digest = k.digest, recipient = k.recipient,
			envelope = k.envelope, salt = k.salt from kept k where k.seq = p.seq`)
	}
	intact()

	// A text was cut in the middle of a character. PostgreSQL cannot read it.
	const fitting = `update dispatcher.messages m set envelope_hmac =
		('x' || encode(substr(sha256(p.salt || p.envelope), 1, 8), 'hex'))::bit(64)::bigint
		from dispatcher.payloads p where p.seq = m.seq`
	o.exec(update + `envelope = convert_to(replace(convert_from(envelope, 'UTF8'), '123456',
		'\ud83d'), 'UTF8')` + first)
	o.exec(fitting)
	if n := len(names(t, o.sql, `select seq::text from dispatcher.payloads
		where dispatcher.number_of(envelope) is null`)); n != 1 {
		t.Fatalf("%d envelopes cannot be read", n)
	}
	intact()
	o.exec(`update dispatcher.payloads p set envelope = k.envelope from kept k where k.seq = p.seq`)
	o.exec(fitting)

	// A dead record.
	o.exec(`with m as (insert into dispatcher.messages (seq, id, lane, state, reason, detail, attempts,
		  finished_at, envelope_hmac) select max(seq) + 1, 'dead-1', 'otp', 'dead', 'invalid', 'no body',
		  0, now(), ('x' || encode(substr(sha256('0123456789abcdef{'), 1, 8), 'hex'))::bit(64)::bigint
		  from dispatcher.messages returning seq)
		insert into dispatcher.payloads (seq, digest, envelope, salt)
		select seq, 0, '{', '0123456789abcdef' from m`)
	want.Compared++
	intact()
	o.exec(update + `envelope = '[' where seq = (select max(seq) from dispatcher.messages)`)
	if v, code := o.verify("--without-keys"); code != exitFailed || len(v.Mismatches) != 1 ||
		v.Mismatches[0].ID != "dead-1" || v.Mismatches[0].Stored != changed[0] {
		t.Errorf("a dead record: exit code %d, %+v", code, v.Mismatches)
	}
	o.exec(`delete from dispatcher.payloads where seq = (select max(seq) from dispatcher.messages)`)
	want.Compared, want.Gone = 40, 1
	intact()

	// As if the first half had been stored by an earlier release, and the migration had come later.
	const earlier = ` where seq in (select seq from dispatcher.messages where id like 'v1-%')`
	o.exec(update + `salt = null` + earlier)
	o.exec(`update dispatcher.schema_migrations set applied_at = now() - interval '30 days'
		where version = 1`)
	want.Compared, want.Unhashed = 20, 20
	intact()
	unchecked := dispatcher(t, "", o.env, "audit", "verify", "--without-keys", "--checkpoint", "kept")
	if unchecked.code != exitUsage || !strings.Contains(unchecked.err, "give --seal-keys") {
		t.Errorf("a checkpoint that nobody can check: %+v", unchecked)
	}
	out := dispatcher(t, "", o.env, "audit", "verify", "--without-keys").out
	if line := "20 payloads compared with the hashes of their messages; 1 is gone; 20 that an " +
		"earlier build stored have no salt\n"; !strings.Contains(out, line) {
		t.Error(out)
	}
	o.exec(`update dispatcher.schema_migrations set applied_at = now() - interval '25 hours'
		where version = 30`)
	if v, code := o.verify("--without-keys"); code != exitFailed || v.Mismatched != 20 ||
		v.Mismatches[0].Stored != noSalt[0] {
		t.Errorf("more than a day after the migration: exit code %d, %+v", code, v)
	}
	o.exec(`update dispatcher.schema_migrations set applied_at = now() where version = 30`)

	// Somebody with the draw key who may read payloads sees more: a salt that was removed, and a hash
	// under the key, as an earlier release stored it.
	o.env[0] = app
	if v, code := o.verify(); code != exitFailed || v.ByKind["salt"] != 20 || v.Mismatched != 20 {
		t.Errorf("with the draw key: exit code %d, %+v", code, v)
	}
}

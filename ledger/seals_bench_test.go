package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkEvidence reads the hashes of messages, as Seals.Add does.
func BenchmarkEvidence(b *testing.B) {
	url := ledgertest.Fresh(b)
	db, l := raw(b, url), connect(b, ledger.Config{URL: url})
	const n = 100000
	fillHours(b, db, n)
	execute(b, db, `vacuum analyze`)
	now := time.Now()
	for b.Loop() {
		seen := 0
		err := l.Seals.Evidence(b.Context(), now.Add(-4*time.Hour), now.Add(time.Hour),
			func(*ledger.Evidence) error {
				seen++
				return nil
			})
		if err != nil || seen != n {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}

// BenchmarkPayloads compares payloads with the hashes of their messages, as audit verify does.
func BenchmarkPayloads(b *testing.B) {
	url := ledgertest.Fresh(b)
	db, l := raw(b, url), connect(b, ledger.Config{URL: url})
	const n = 100000
	fillHours(b, db, n)
	execute(b, db, `insert into dispatcher.payloads (seq, digest, recipient, envelope, salt)
		select seq, 1, dispatcher.recipient(tenant, '+447700900123'), convert_to('{"id":"' || id ||
		'","to":"+447700900123","text":"' || repeat('x', 160) || '"}', 'UTF8'),
		decode(md5(id), 'hex') from dispatcher.messages`)
	execute(b, db, `update dispatcher.messages m set number_hmac = 1, envelope_hmac =
		('x' || encode(substr(sha256(p.salt || p.envelope), 1, 8), 'hex'))::bit(64)::bigint
		from dispatcher.payloads p where p.seq = m.seq`)
	execute(b, db, `vacuum analyze`)
	now := time.Now()
	for b.Loop() {
		c, err := l.Sealed.Payloads(b.Context(), now.Add(-4*time.Hour), now.Add(time.Hour),
			func(changed []ledger.ChangedPayload) {
				if len(changed) > 0 {
					b.Fatal(changed[0])
				}
			})
		if err != nil || c.Compared != n {
			b.Fatal(c, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}

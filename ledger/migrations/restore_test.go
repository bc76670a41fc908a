package migrations_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
)

// restorePage is what docs/deploy.md says about a restore.
func restorePage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "### Restore\n")
	return rest
}

// TestARestoreAdvancesTheNumbers runs the statement of docs/deploy.md: neither a message nor a
// status event gets a number again that was given out after the moment of the restore.
func TestARestoreAdvancesTheNumbers(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(restorePage(t), "```sql\n")
	statement, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/deploy.md has no statement for a restore")
	}
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	next := func() (message, event int64) {
		if err := conn.QueryRow(t.Context(), `select nextval('dispatcher.message_numbers'),
			nextval('dispatcher.outbox_seq_seq')`).Scan(&message, &event); err != nil {
			t.Fatal(err)
		}
		return message, event
	}
	const lost = 1_000_000_000
	for _, at := range []int64{1000, 1 << 40} {
		if _, err := conn.Exec(t.Context(), `select setval('dispatcher.message_numbers', $1),
			setval('dispatcher.outbox_seq_seq', 1000)`, at); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		message, event := next()
		if message < at+lost || event < 1000+lost {
			t.Errorf("after %d comes message %d; after 1000 comes event %d", at, message, event)
		}
	}
}

// TestARestoreFindsWhereTheLedgerIs runs the query of docs/deploy.md for the offsets of a lane.
func TestARestoreFindsWhereTheLedgerIs(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile(`-c "(select topic[^"]*)"`).FindStringSubmatch(restorePage(t))
	if found == nil {
		t.Fatal("docs/deploy.md has no query for offsets")
	}
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	if _, err := conn.Exec(t.Context(), `insert into dispatcher.messages
		  (seq, id, lane, topic, kafka_partition, kafka_offset, received_at, state, finished_at)
		select dispatcher.first_of(dispatcher.day_at(now())) + n, 'order-' || n, lane, topic, partition,
		  position, now() - age, 'failed', now()
		from (values (1, 'bulk', 'sms.bulk', 0, 70, interval '1 hour'),
		  (2, 'bulk', 'sms.bulk', 0, 71, '0'), (3, 'bulk', 'sms.bulk', 0, 72, '0'),
		  (4, 'bulk', 'sms.bulk', 1, 40, '1 hour'), (5, 'bulk', '', 0, 0, '0'),
		  (6, 'otp', 'sms.otp', 0, 9, '0')) v (n, lane, topic, partition, position, age)`); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), strings.ReplaceAll(found[1], "'T'", "'now'"))
	if err != nil {
		t.Fatal(err)
	}
	var topic string
	var partition, offset int64
	got := map[int64]int64{}
	if _, err := pgx.ForEachRow(rows, []any{&topic, &partition, &offset}, func() error {
		if topic != "sms.bulk" {
			t.Errorf("it has topic %q", topic)
		}
		got[partition] = offset
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != 71 || got[1] != 41 {
		t.Errorf("the ledger is at %v", got)
	}
}

package pages

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestNotesOfOperatorsAreNotShownToViewers: they may hold a number.
func TestNotesOfOperatorsAreNotShownToViewers(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // It was read.
	for _, sql := range []string{
		`update dispatcher.messages set state = 'sending', next_at = null, attempts = 1
		where id = 'known'`,
		`insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
		  segments, channel, reason, currency, settled_at, answers, outcome)
		select seq, 1, now(), 0, 1, 1, 'a', 'first_choice', '', now(), 1, 'unknown'
		from dispatcher.messages where id = 'known'`,
		`insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
		  verdict, author, note)
		select seq, 'k', 1, 1, 'none', now(), now(), 'final', 'olga', '+447700900123 has it'
		from dispatcher.messages where id = 'known'`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for role, sees := range map[string]bool{"viewer": false, "operator": true, "admin": true} {
		b := c.client(t, role)
		if got := b.get("/messages/known").body; !strings.Contains(got, "<strong>olga settled it as final") ||
			strings.Contains(got, "7700900123") != sees {
			t.Errorf("%s is shown the message: %s", role, got)
		}
		if got := b.get("/ambiguous?all=1").body; !strings.Contains(got, "/messages/known") ||
			strings.Contains(got, "7700900123") {
			t.Errorf("%s is shown the list: %s", role, got)
		}
	}
}

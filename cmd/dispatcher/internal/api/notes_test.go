package api_test

import (
	"net/http"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
)

// TestNotesOfOperatorsAreForThemAlone: people write numbers into them. Every other role that sees
// the message sees who settled it and how, and not the note.
func TestNotesOfOperatorsAreForThemAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	const seq = `dispatcher.first_of(dispatcher.day_at(now())) + 7`
	s.sql(`select 1 from (select dispatcher.make_days(1)) x;;
		insert into dispatcher.messages (seq, id, lane, state, reason, attempts, finished_at, route,
		  routing_version, segments, expires_at)
		select ` + seq + `, 'm', 'otp', 'unknown', 'ambiguous_final', 1, now(), 'default', 1, 1, now();;
		insert into dispatcher.ids_0 (id, seq) select 'm', ` + seq + `;;
		insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
		  segments, channel, reason, currency, settled_at, answers, outcome)
		select ` + seq + `, 1, now(), 0, 1, 1, 'a', 'first_choice', '', now(), 1, 'unknown';;
		insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
		  verdict, author, note)
		select ` + seq + `, 'k', 1, 1, 'none', now(), now(), 'final', 'olga', '+447700900123 has it'`)
	for role, sees := range map[string]bool{"viewer": false, "operator": true, "admin": true} {
		got := s.ask(role, "GET", "/messages/m", "")
		if got.status != http.StatusOK || !strings.Contains(got.body, `"olga"`) ||
			strings.Contains(got.body, "has it") != sees {
			t.Errorf("%s: %+v", role, got)
		}
		list := s.ask(role, "GET", "/ambiguous?all=true", "")
		if list.status != http.StatusOK || !strings.Contains(list.body, `"olga"`) ||
			strings.Contains(list.body, "has it") {
			t.Errorf("%s: %+v", role, list)
		}
	}
	for _, role := range []string{"finance", "sender"} {
		if got := s.ask(role, "GET", "/messages/m", ""); got.status != http.StatusForbidden {
			t.Errorf("%s: %+v", role, got)
		}
	}
}

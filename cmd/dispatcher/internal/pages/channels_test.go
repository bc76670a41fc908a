package pages

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// execute changes the database of a console.
func (c *console) execute(t *testing.T, statements ...string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // Nothing is left to do.
	for _, sql := range statements {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChannelPagesShowPausesAndWhatDidNotLeave: until when the provider asked to wait, and by which
// words of ours attempts did not leave, beside the codes of the provider.
func TestChannelPagesShowPausesAndWhatDidNotLeave(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	const attempt = `insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros,
		attempt, segments, channel, reason, currency, settled_at, answers, outcome, provider_code)
		select seq, 1, now(), 0, n, 1, 'a', 'first_choice', 'GBP', now(), 1, `
	c.execute(t, `update dispatcher.channels set ease_rate = 0.5, ease_since = now(),
		  ease_until = now() + interval '1 hour' where channel = 'a'`,
		attempt+`'refused', 'breaker_open' from dispatcher.messages, generate_series(1, 3) n`,
		attempt+`'rejected', '0x0b' from dispatcher.messages, generate_series(4, 5) n`)
	b := c.client(t, "viewer")
	for path, wants := range map[string][]string{
		"/channels": {
			`>paused until [0-9:]{8} UTC<`, `>0x0b × 2</span>`, `not sent: <span[^>]*>breaker_open × 3</span>`,
		},
		"/channels/a": {
			`>paused until [0-9:]{8} UTC<`, `<th scope="row" class="mono">0x0b</th><td>rejected</td><td class="r">2<`,
			`Not sent, because`, `<th scope="row" class="mono">breaker_open</th><td class="r">3</td>`,
		},
	} {
		body := strings.ReplaceAll(b.get(path).body, "\n", "")
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(body) {
				t.Errorf("%s has no %s: %s", path, want, body)
			}
		}
	}
	if body := b.get("/channels/b").body; strings.Contains(body, "paused until") ||
		strings.Contains(body, "Not sent") {
		t.Errorf("a channel without either: %s", body)
	}
}

// TestReportsShowTheDeliveredShare beside the agreed, drawn and carried ones.
func TestReportsShowTheDeliveredShare(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.execute(t, `insert into dispatcher.messages (seq, id, lane, state, attempts, route,
		  routing_version, draw, draw_size, first_choice, segments, expires_at)
		select dispatcher.first_of(dispatcher.day_at(now())) + 1000 + n, 'd-' || n, 'otp', 'sending', 1,
		  'default', 1, n, 100, case when n < 4 then 'a' else 'b' end, 1, now()
		from generate_series(0, 7) n`,
		`insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
		  segments, channel, reason, currency, settled_at, answers, outcome, receipt_state, receipt_at,
		  delivered_at)
		select seq, 1, now(), 31000, 1, 1, first_choice, 'first_choice', 'GBP', now(), 1, 'accepted',
		  case when draw in (0, 1, 2, 4) then 'delivered' else 'undelivered' end, now(),
		  case when draw in (0, 1, 2, 4) then now() end
		from dispatcher.messages where id like 'd-%'`)
	body := strings.ReplaceAll(c.client(t, "finance").get("/reports").body, "\n", "")
	if !strings.Contains(body, `<th scope="col" class="r">Delivered share</th>`) {
		t.Errorf("no head in %s", body)
	}
	for channel, want := range map[string]string{"a": "3</td><td class=\"r\">75.0", "b": "1</td><td class=\"r\">25.0"} {
		if !regexp.MustCompile(`<th scope="row">` + channel + `</th>.{0,200}?<td class="r">4</td><td class="r">` +
			want).MatchString(body) {
			t.Errorf("%s has not delivered %s: %s", channel, want, body)
		}
	}
}

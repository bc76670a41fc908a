package pages

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestTheAuditLogHasFurtherPages, of every kind of action, with the login beside the author.
// Reasons that may have numbers are for operators only.
func TestTheAuditLogHasFurtherPages(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	for _, sql := range []string{
		`insert into dispatcher.operator_actions (author, reason, action, subject)
		select 'ann', 'old note', 'cancel', 'm-' || n from generate_series(1, 60) n`,
		`insert into dispatcher.top_ups (author, reason, channel, scope, currency, micros, before,
		  granted) values ('ann', 'invoice 7', '', 'tenant:shop', 'GBP', 12500000, 0, 0)`,
		`insert into dispatcher.guard_trips (per, subject, action, hour, seen, usual, days, times,
		  at_least) values ('tenant', 'shop', 'warn', now(), 500, 20, 7, 3, 100)`,
		`insert into dispatcher.opt_outs (tenant, recipient, source, author, reason)
		values ('shop', 1, 'command', 'ann', 'by letter')`,
		`insert into dispatcher.erasures (author, reason, number_hmac) values ('ann', 'asked', 1)`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	older := regexp.MustCompile(`href="(/audit\?[^"]*cursor=[^"]+)">Older`)
	for role, sees := range map[string]bool{"finance": false, "admin": true} {
		b := c.client(t, role)
		first := b.get("/audit").body
		for _, want := range []string{
			"top up tenant:shop, 12.5 GBP", "warn tenant shop, 500 messages", "opt out tenant shop",
			"erase all tenants", "login dispatcher",
		} {
			if !strings.Contains(first, want) {
				t.Errorf("%s: %q is missing in\n%s", role, want, first)
			}
		}
		for _, note := range []string{"invoice 7", "by letter", "asked", "old note"} {
			if strings.Contains(first, note) != sees {
				t.Errorf("%s is shown %q: %v", role, note, !sees)
			}
		}
		link := older.FindStringSubmatch(first)
		if link == nil {
			t.Fatalf("no further page:\n%s", first)
		}
		second := b.get(html.UnescapeString(link[1])).body
		if !strings.Contains(second, "cancel m-1<") || !strings.Contains(second, "version 1") ||
			strings.Contains(second, "cancel m-60<") || older.MatchString(second) {
			t.Errorf("the second page:\n%s", second)
		}
		if got := b.get("/audit?kind=budget").body; !strings.Contains(got, "12.5 GBP") ||
			strings.Contains(got, "cancel m-60") {
			t.Errorf("of budgets:\n%s", got)
		}
		if got := b.get("/audit?cursor=x"); got.StatusCode != 404 {
			t.Errorf("a wrong cursor: %d", got.StatusCode)
		}
	}
}

package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestOptOutsAreLookedUpAddedAndLifted without the number on a page or in an address. Only
// operators change the lists and see reasons.
func TestOptOutsAreLookedUpAddedAndLifted(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	const number = "+447700900123"
	form := func(move, reason string) url.Values {
		return url.Values{
			"number": {number}, "tenant": {" shop "}, "move": {move}, "reason": {reason},
		}
	}
	look := func(b *client) string {
		t.Helper()
		got := b.send("/opt-outs/lookup", url.Values{"number": {number}, "tenant": {"shop"}})
		if got.StatusCode != http.StatusOK {
			t.Fatalf("look-up: %d %s", got.StatusCode, got.body)
		}
		if strings.Contains(strings.ReplaceAll(got.body, `placeholder="`+number, ""), "7700900") {
			t.Errorf("the page has the number: %s", got.body)
		}
		return strings.Join(strings.Fields(got.body), " ")
	}
	change := func(move, want string) {
		t.Helper()
		got := b.send("/opt-outs", form(move, "by letter"))
		at, err := url.Parse(got.Header.Get("Location"))
		if err != nil || got.StatusCode != http.StatusSeeOther || at.Path != "/opt-outs" ||
			at.Query().Get("done") != want {
			t.Errorf("%s: %d %s %s, want %q", move, got.StatusCode, at, got.body, want)
		}
	}
	if page := look(b); !strings.Contains(page, "The number is not on the list of shop.") {
		t.Errorf("before: %s", page)
	}
	change("remove", "The number was not on the list of shop: nothing was changed.")
	change("add", "The number is on the list of shop now.")
	change("add", "The number was on the list of shop: nothing was changed.")
	if page := look(b); !strings.Contains(page, "The number is on the list of shop.") ||
		!strings.Contains(page, "by letter") || !strings.Contains(page, "anna-operator") {
		t.Errorf("on the list: %s", page)
	}
	if page := look(c.client(t, "viewer")); strings.Contains(page, "by letter") ||
		!strings.Contains(page, "anna-operator") || strings.Contains(page, `action="/opt-outs"`) {
		t.Errorf("as a viewer: %s", page)
	}
	if page := b.get("/opt-outs").body; !strings.Contains(page, `<th scope="row">shop</th><td>console</td>`) {
		t.Errorf("the counts: %s", page)
	}
	change("remove", "The number is off the list of shop now.")
	if page := look(b); !strings.Contains(page, "The number is not on the list of shop any more.") {
		t.Errorf("afterwards: %s", page)
	}
	if log := c.client(t, "admin").get("/audit").body; !strings.Contains(log, "1 by console") ||
		strings.Contains(log, "7700900") {
		t.Errorf("the audit log: %s", log)
	}
	for what, wrong := range map[string]url.Values{
		"no reason": form("add", " "), "a reason with a number": form("add", "asked by +447700900124"),
		"no move":   form("", "by letter"),
		"no number": {"number": {"0770"}, "move": {"add"}, "reason": {"by letter"}},
	} {
		if got := b.send("/opt-outs", wrong); got.StatusCode != http.StatusUnprocessableEntity ||
			strings.Contains(got.body, "0770") {
			t.Errorf("%s: %d %s", what, got.StatusCode, got.body)
		}
	}
}

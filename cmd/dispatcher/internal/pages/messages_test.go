package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestAMessageIsFoundByItsNumber: the number is in the body of the form, and on no page.
func TestAMessageIsFoundByItsNumber(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "viewer")
	find := func(number, days string) answer {
		return b.send("/messages", url.Values{"number": {number}, "days": {days}})
	}
	if page := b.get("/messages").body; !strings.Contains(page, `method="post" action="/messages"`) {
		t.Errorf("there is no form:\n%s", page)
	}
	got := find("+44 7700 900123", "7")
	if got.StatusCode != http.StatusOK || !strings.Contains(got.body, `href="/messages/known"`) {
		t.Errorf("%d: got %s", got.StatusCode, got.body)
	}
	if strings.Contains(strings.ReplaceAll(got.body, `placeholder="+447700900123"`, ""), "900123") {
		t.Errorf("the page shows the number:\n%s", got.body)
	}
	if got := find("+447700900124", "7"); got.StatusCode != http.StatusOK ||
		strings.Contains(got.body, "/messages/known") ||
		!strings.Contains(got.body, "No message of these days") {
		t.Errorf("another number: %d %s", got.StatusCode, got.body)
	}
	for _, wrong := range [][2]string{{"0770", "7"}, {"+447700900123", "0"}, {"+447700900123", "x"}} {
		if got := find(wrong[0], wrong[1]); got.StatusCode != http.StatusUnprocessableEntity ||
			strings.Contains(got.body, wrong[0]) {
			t.Errorf("%q: got %d %s", wrong, got.StatusCode, got.body)
		}
	}
}

package pages

import (
	"net/http"
	"net/url"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
)

// TestWhoAsksTheConsoleTooOftenWaits: it has the rate of the API.
func TestWhoAsksTheConsoleTooOftenWaits(t *testing.T) {
	t.Parallel()
	c := newConsoleOf(t, access.Config{Rate: access.Rate{PerSecond: 1e-3, Burst: 3}})
	b := c.client(t, "viewer") // signing in opens one page
	for i, want := range []int{200, 200, 429} {
		if got := b.get("/messages"); got.StatusCode != want ||
			(got.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("page %d: %d, want %d", i+1, got.StatusCode, want)
		}
	}
	if got := c.client(t, "operator").get("/messages"); got.StatusCode != http.StatusOK {
		t.Errorf("another user: %d", got.StatusCode)
	}
}

func TestTheConsoleReadsLongOneAtATime(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	defer c.ledger.Reports.LongRead(t.Context())()
	if got := c.client(t, "viewer").send("/messages", url.Values{
		"number": {"+447700900123"}, "days": {"7"},
	}); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a search: %d", got.StatusCode)
	}
	if got := c.client(t, "finance").get("/reports"); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a report: %d", got.StatusCode)
	}
	if got := c.client(t, "finance").get("/reports?from=0001-01-01"); got.StatusCode !=
		http.StatusUnprocessableEntity {
		t.Errorf("a report of all days: %d", got.StatusCode)
	}
}

// TestTheStreamsOfTheConsoleAreBounded: with those of the API, for each user.
func TestTheStreamsOfTheConsoleAreBounded(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	who := &access.Principal{Name: "anna-viewer"}
	for c.server.cfg.Gate.OpenStream(who) { // as many as there may be
	}
	b := c.client(t, "viewer")
	if got := b.get("/live/overview"); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %d", got.StatusCode)
	}
}

package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dispatcher/ledger"
)

func TestAPrefixIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	move := func(version, prefix, move string) answer {
		return b.send("/pauses", url.Values{
			"version": {version}, "kind": {"prefix"}, "name": {prefix}, "move": {move},
			"reason": {"the carriers there do not deliver"},
		})
	}
	if page := b.get("/pauses").body; !strings.Contains(page, `id="prefix"`) {
		t.Errorf("there is no form:\n%s", page)
	}
	if got := move("1", "44", "pause"); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("what begins no number: %d", got.StatusCode)
	}
	if got := move("1", "+4477", "pause"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	if page := b.get("/pauses").body; !strings.Contains(page, "+4477") &&
		!strings.Contains(page, "&#43;4477") {
		t.Errorf("it is not shown:\n%s", page)
	}
	if got := move("2", "+4477", "resume"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	if page := b.get("/pauses").body; strings.Contains(page, `value="resume"`) {
		t.Errorf("it is paused still:\n%s", page)
	}
}

// TestWhatWaitsIsCancelledFromThePageOfPauses, after it was counted.
func TestWhatWaitsIsCancelledFromThePageOfPauses(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	storeMessage(t, c.ledger, "waits", &ledger.Decision{State: ledger.Waiting, Reason: "paused"})
	storeMessage(t, c.ledger, "gone", &ledger.Decision{State: ledger.Rejected, Reason: "opted_out"})
	if page := b.get("/pauses").body; !strings.Contains(page, "Cancel what has not left") {
		t.Errorf("there is no form:\n%s", page)
	}
	if page := c.client(t, "viewer").get("/pauses").body; strings.Contains(page, "/pauses/cancel") {
		t.Error("a viewer sees the form")
	}
	send := func(kind, name, do string) string {
		t.Helper()
		got := b.send("/pauses/cancel", url.Values{
			"kind": {kind}, "name": {name}, "do": {do}, "reason": {"wrong text"},
		})
		if got.StatusCode != http.StatusSeeOther {
			return got.body
		}
		return b.get(got.Header.Get("Location")).body
	}
	for _, step := range [][4]string{
		{"lane", "otp", "look", "2 messages would be cancelled."},
		{"prefix", "+33", "cancel", "0 messages cancelled."},
		{"prefix", "33", "cancel", "does not begin a number"},
		{"", "otp", "cancel", "ame the lane"},
		{"prefix", "+4477", "cancel", "2 messages cancelled."},
		{"lane", "otp", "look", "0 messages would be cancelled."},
	} {
		if page := send(step[0], step[1], step[2]); !strings.Contains(page, step[3]) {
			t.Errorf("%v: the page is\n%s", step, page)
		}
	}
	if log := c.client(t, "finance").get("/audit").body; !strings.Contains(log, "cancel waits") {
		t.Errorf("the audit log:\n%s", log)
	}
}

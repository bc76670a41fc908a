package pages

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
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

// cancelMany sends the form, and then the one for the rest that comes back until there is none. It
// returns what each said.
func (b *client) cancelMany(form url.Values) (said []string) {
	b.t.Helper()
	for len(said) < 10 {
		page := b.send("/pauses/cancel", form).body
		found := regexp.MustCompile(`role="status"><p>([^<]*)`).FindStringSubmatch(page)
		if found == nil {
			b.t.Fatalf("it says nothing:\n%s", page)
		}
		said = append(said, html.UnescapeString(found[1]))
		if !strings.Contains(page, "Cancel the rest<") {
			return said
		}
		form = url.Values{"do": {"cancel"}}
		rest, _, _ := strings.Cut(page, "Cancel the rest<")
		for _, field := range regexp.MustCompile(`type="hidden" name="(\w+)" value="([^"]*)"`).
			FindAllStringSubmatch(rest[strings.Index(rest, `action="/pauses/cancel"`):], -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
	}
	return said
}

// TestTheFormGoesOnWhereItStopped, with the bound of the first form, and the filter is on record
// once.
func TestTheFormGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.server.mostCancelled = 2
	b := c.client(t, "operator")
	for _, id := range []string{"w-1", "part", "w-2", "w-3"} {
		storeMessage(t, c.ledger, id, &ledger.Decision{State: ledger.Waiting, Reason: "paused"})
	}
	c.exec(t, `update dispatcher.messages set pinned = 'a', parts_cut = 'x', parts_left = '{2}'
		where id = 'part'`)
	form := url.Values{
		"kind": {"prefix"}, "name": {"+447700900123"}, "since": {"2h"}, "do": {"cancel"},
		"reason": {"wrong text"},
	}
	got := b.cancelMany(form)
	want := []string{
		"2 messages cancelled. There are more: cancel the rest.",
		"3 messages cancelled. 1 message could not be: part has been taken by a in part: the rest is " +
			"sent, or given up at its deadline. There are more: cancel the rest.",
		"4 messages cancelled.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it says %q", got)
	}
	log := c.client(t, "admin").get("/audit").body
	if strings.Count(log, "cancel many prefix of one number, since 20") != 1 ||
		strings.Contains(log, "447700900123") {
		t.Errorf("the audit log:\n%s", log)
	}
	form.Set("since", "yesterday")
	if got := b.send("/pauses/cancel", form); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a bound that is none: %d", got.StatusCode)
	}
	form.Set("since", "")
	form.Set("until", "2026-01-01T00:00:00Z")
	if got := b.cancelMany(form); !slices.Equal(got, []string{"0 messages cancelled."}) {
		t.Errorf("before they were stored: %q", got)
	}
}

// TestAFailureUnderWaySaysHowManyAreCancelled, and the form goes on.
func TestAFailureUnderWaySaysHowManyAreCancelled(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.server.mostCancelled = 10
	c.server.cancelPage = 1
	b := c.client(t, "operator")
	storeMessage(t, c.ledger, "w-1", &ledger.Decision{State: ledger.Waiting, Reason: "paused"})
	c.exec(t, `create sequence failures`)
	c.exec(t, `create function fail() returns trigger language plpgsql as $$ begin
		if nextval('failures') = 1 then raise exception 'no'; end if; return new; end $$`)
	c.exec(t, `create trigger fail before update on dispatcher.messages for each row
		when (new.state = 'failed' and new.id = 'w-1') execute function fail()`)
	got := b.cancelMany(url.Values{
		"kind": {"lane"}, "name": {"otp"}, "do": {"cancel"}, "reason": {"wrong text"},
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "1 message cancelled. Then the database failed") ||
		got[1] != "2 messages cancelled." {
		t.Errorf("it says %q", got)
	}
}

// TestAMessageThatIsStillInKafkaIsCancelledWhenItComes from the page of its id.
func TestAMessageThatIsStillInKafkaIsCancelledWhenItComes(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	if page := b.get("/messages/early").body; !strings.Contains(page, "Cancel it when it comes") {
		t.Errorf("there is no form:\n%s", page)
	}
	if page := c.client(t, "viewer").get("/messages/early").body; strings.Contains(page, "/cancel\"") {
		t.Error("a viewer sees the form")
	}
	got := b.send("/messages/early/cancel", url.Values{"reason": {"wrong"}, "pending": {"yes"}})
	if got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: %s", got.StatusCode, got.body)
	}
	page := b.get(got.Header.Get("Location")).body
	for _, want := range []string{
		"It is cancelled if it comes", "anna-operator cancelled it at",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "/messages/early/cancel") {
		t.Error("the page offers to cancel it again")
	}
}

package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"dispatcher/ledger"
)

func TestDeadRecordsArePublishedAgainFromTheConsole(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	var messages []ledger.Message
	for i, to := range []string{"+447700900123", "+447700900124", "07700"} {
		id := "dead-" + string(rune('a'+i))
		messages = append(messages, ledger.Message{
			ID: id, Lane: "otp", State: ledger.Dead, Reason: "no_route", Detail: "no route matches",
			Envelope: []byte(`{"id":"` + id + `","to":"` + to + `","text":"x"}`),
			Origin:   ledger.Origin{Topic: "sms.otp", Offset: int64(i)},
		})
	}
	tx, err := c.ledger.Claims.Lock(t.Context(), ledger.Claim{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(t.Context(), ledger.Decisions{
		Each: make([]ledger.Decision, len(messages)),
	}); err != nil {
		t.Fatal(err)
	}
	b := c.client(t, "operator")
	send := func(which, do string) answer {
		return b.send("/dead", url.Values{"which": {which}, "do": {do}, "reason": {"route added"}})
	}
	notice := func(a answer) string {
		to, err := url.Parse(a.Header.Get("Location"))
		if err != nil || a.StatusCode != http.StatusSeeOther {
			t.Errorf("%d: got %s", a.StatusCode, a.body)
			return ""
		}
		return to.Query().Get("done")
	}
	if got := notice(send("reason:no_route", "look")); !strings.Contains(got,
		"2 records would be published again. sms.otp/0/2 would be a dead record again") ||
		len(c.published) > 0 {
		t.Errorf("looking: %s, %v", got, c.published)
	}
	if got := notice(send("record:sms.otp/0/0", "replay")); got !=
		"1 record was published again." || !slices.Equal(c.published, []string{"sms.otp dead-a"}) {
		t.Errorf("one: %s, %v", got, c.published)
	}
	if got := notice(send("reason:no_route", "replay")); !strings.HasPrefix(got,
		"1 record was published again.") || len(c.published) != 2 {
		t.Errorf("the rest: %s, %v", got, c.published)
	}
	page := b.get("/ambiguous").body
	if !strings.Contains(page, "replayed as dead-a") || !strings.Contains(page, "record:sms.otp/0/2") ||
		strings.Contains(page, "record:sms.otp/0/0") || strings.Contains(page, "44770090012") {
		t.Errorf("the page:\n%s", page)
	}
	if got := send("", "replay"); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("nothing chosen: %d", got.StatusCode)
	}
	if log := c.client(t, "finance").get("/audit").body; strings.Count(log, "anna-operator") < 2 ||
		!strings.Contains(log, "replay") {
		t.Errorf("the audit log:\n%s", log)
	}
	if page := c.client(t, "viewer").get("/ambiguous").body; strings.Contains(page, "replay-which") {
		t.Error("a viewer sees the form")
	}
}

// TestADeadRecordIsCorrectedInTheConsole: one field of one record. The notice has no number.
func TestADeadRecordIsCorrectedInTheConsole(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	message := ledger.Message{
		ID: "m", Lane: "otp", State: ledger.Dead, Reason: "bad_number", Detail: "no number",
		Envelope: []byte(`{"id":"m","to":"07700","text":"x"}`),
		Origin:   ledger.Origin{Topic: "sms.otp"},
	}
	tx, err := c.ledger.Claims.Lock(t.Context(), ledger.Claim{Messages: []ledger.Message{message}})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(t.Context(), ledger.Decisions{
		Each: make([]ledger.Decision, 1),
	}); err != nil {
		t.Fatal(err)
	}
	b := c.client(t, "operator")
	send := func(which, set, value string) answer {
		return b.send("/dead", url.Values{
			"which": {which}, "set": {set}, "value": {value}, "do": {"replay"}, "reason": {"a typo"},
		})
	}
	const one, number = "record:sms.otp/0/0", "+447700900123"
	for _, bad := range []answer{
		send("reason:bad_number", "to", number), send(one, "", number), send(one, "tow", number),
	} {
		if bad.StatusCode != http.StatusUnprocessableEntity || len(c.published) > 0 {
			t.Errorf("got %d, %v", bad.StatusCode, c.published)
		}
	}
	done := send(one, "to", number)
	if to := done.Header.Get("Location"); !strings.Contains(to, "1+record+was+published") ||
		strings.Contains(to, "7700900") || !slices.Equal(c.published, []string{"sms.otp m"}) {
		t.Errorf("got %s, %v", to, c.published)
	}
}

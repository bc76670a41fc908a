package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestAFormSurvivesTheEndOfTheSession: after signing in again the operator is on the same page, and
// what was typed is there and can be sent. A number is kept nowhere. Text that was sent does not
// come back, nor does text in a page that is reloaded.
func TestAFormSurvivesTheEndOfTheSession(t *testing.T) {
	s := start(t)
	ctx := browser(t)
	s.signIn(t, ctx, "operator")
	const reason, stored = `document.getElementById("state-reason").value`,
		`sessionStorage.getItem("kept") ?? ""`
	open(t, ctx, s.url+"/channels/a")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#test-to"), "+447700900123"),
		chromedp.SendKeys(chromedp.CSS("#test-text"), "hello"),
		chromedp.SendKeys(chromedp.CSS("#test-reason"), "a new account"))
	if kept := value[string](t, ctx, stored); !strings.Contains(kept, "a new account") ||
		strings.Contains(kept, "7700900") || strings.Contains(kept, "hello") ||
		strings.Contains(kept, "csrf") {
		t.Errorf("the tab keeps %s", kept)
	}
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#state-reason"), "maintenance until 04:00"))

	// The session ends elsewhere: this page does not see it.
	value[int64](t, ctx, `fetch("/logout", {method: "POST"}).then((a) => a.status)`)
	const drain = `button[value="draining"]`
	click(t, ctx, drain, "Your session has ended")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#token"), s.tokens["operator"]+"\r"))
	wait(t, "the page with what was typed", func() bool {
		return strings.Contains(text(t, ctx, "main"), "What you had typed is here again")
	})
	if path := value[string](t, ctx, `location.pathname`); path != "/channels/a" {
		t.Errorf("after signing in the page is %s", path)
	}
	if got := value[string](t, ctx, reason); got != "maintenance until 04:00" {
		t.Errorf("the reason is now %q", got)
	}
	click(t, ctx, drain, "Version 2 is in force")
	wait(t, "the tab that keeps nothing after the form was sent", func() bool {
		return value[string](t, ctx, stored) == ""
	})

	// While the session lasts, a reloaded page has empty fields.
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#state-reason"), "never mind"))
	open(t, ctx, s.url+"/channels/a")
	if got := value[string](t, ctx, reason); got != "" {
		t.Errorf("a page loaded anew has the reason %q", got)
	}
}

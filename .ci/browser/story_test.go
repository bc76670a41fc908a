package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// signIn signs in with the token of a role.
func (s *site) signIn(t *testing.T, ctx context.Context, role string) {
	t.Helper()
	open(t, ctx, s.url+"/login")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#token"), s.tokens[role]+"\r"))
	wait(t, "signed in as "+role, func() bool {
		return strings.Contains(text(t, ctx, ".who"), "anna-"+role)
	})
}

// TestAnOperatorChangesWeightsAndAnotherTabAndAWorkerShowIt: the preview says what will be; another
// tab, which nobody touches, shows it; the running dispatcher applies it.
func TestAnOperatorChangesWeightsAndAnotherTabAndAWorkerShowIt(t *testing.T) {
	s := start(t)
	operator := browser(t)
	s.signIn(t, operator, "operator")
	watcher := tab(t, operator)
	open(t, watcher, s.url+"/routes")
	worker := tab(t, operator)
	open(t, worker, s.url+"/instances")
	if weights := text(t, watcher, "#routes"); !strings.Contains(weights, "25.0 %") {
		t.Fatalf("before the change: %s", weights)
	}

	open(t, operator, s.url+"/routes/default")
	for channel, weight := range map[string]string{"a": "100", "b": "0", "c": "0"} {
		field := chromedp.CSS("#weight-" + channel)
		do(t, operator, chromedp.Clear(field), chromedp.SendKeys(field, weight))
	}
	wait(t, "the preview", func() bool {
		preview := text(t, operator, "#effect")
		return strings.Contains(preview, "100.0 %") && strings.Contains(preview, "before")
	})
	do(t, operator, chromedp.SendKeys(chromedp.CSS("#weights-reason"), "all by a\r"))
	wait(t, "the change is confirmed", func() bool {
		return strings.Contains(text(t, operator, ".message"), "Version 2 is in force")
	})

	wait(t, "the other tab shows the new share", func() bool {
		return strings.Contains(text(t, watcher, "#routes"), "100.0 %")
	})
	wait(t, "the worker says that it works by version 2", func() bool {
		return strings.Contains(text(t, worker, "#instances"), "version 2")
	})
	s.dispatcher(t, "", "send", "--id", "by-the-new-weights", "--to", "+447700900123", "--text", "Hello")
	wait(t, "a message is sent by the new weights", func() bool {
		open(t, operator, s.url+"/messages/by-the-new-weights")
		page := text(t, operator, "main")
		return strings.Contains(page, "Answer of a: accepted") && strings.Contains(page, "version 2")
	})
}

// TestAForgedFormIsRefused: a page of another origin sends a form with the session of an operator.
// It is on the same host, for which browsers send the cookie.
func TestAForgedFormIsRefused(t *testing.T) {
	s := start(t)
	ctx := browser(t)
	s.signIn(t, ctx, "operator")
	forged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>forged</title><h1>forged</h1>
			<form method="post" action="%s/pauses"><input name="version" value="1">
			<input name="reason" value="forged"><input name="kind" value="all">
			<input name="name" value="everything"><input name="move" value="pause"></form>
			<script>document.forms[0].submit()</script>`, s.url)
	}))
	t.Cleanup(forged.Close)
	do(t, ctx, chromedp.Navigate(forged.URL))
	wait(t, "the form is refused", func() bool {
		return strings.Contains(text(t, ctx, "body"), "This form was not sent from a page of this console")
	})
	open(t, ctx, s.url+"/pauses")
	if page := text(t, ctx, "main"); strings.Contains(page, "paused") && strings.Contains(page, "Resume") {
		t.Errorf("something is paused:\n%s", page)
	}
	// The session is good: the operator's own form is taken.
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`input[aria-label="Reason, lane bulk"]`), "wrong text\r"))
	wait(t, "the operator's own form is taken", func() bool {
		return strings.Contains(text(t, ctx, "main"), "Resume")
	})
}

// TestAnOptOutIsAddedLookedUpAndLiftedByKeyboard, and the number is neither shown nor in an
// address.
func TestAnOptOutIsAddedLookedUpAndLiftedByKeyboard(t *testing.T) {
	s := start(t)
	ctx := browser(t)
	s.signIn(t, ctx, "operator")
	open(t, ctx, s.url+"/messages")
	click(t, ctx, `a[href="/opt-outs"]`, "No number is on a list.")
	write := func(field, keys, want string) {
		t.Helper()
		do(t, ctx, chromedp.SendKeys(chromedp.CSS(field), "+447700900123\tshop\t"+keys))
		wait(t, want, func() bool { return strings.Contains(text(t, ctx, "main"), want) })
		if at := value[string](t, ctx, `location.href + document.querySelector("main").innerText`); strings.
			Contains(at, "7700900") {
			t.Errorf("the number is shown: %s", at)
		}
	}
	write("#change-number", "by letter\r", "The number is on the list of shop now.")
	write("#look-number", "\r", "The number is on the list of shop.")
	write("#change-number", "asked to\t\t\r", "The number is off the list of shop now.")
	write("#look-number", "\r", "The number is not on the list of shop any more.")
}

// TestFinanceReadsReportsAndChangesNothing: the pages of finance have the figures, and no form but
// that which signs out.
func TestFinanceReadsReportsAndChangesNothing(t *testing.T) {
	s := start(t)
	ctx := browser(t)
	s.signIn(t, ctx, "finance")
	for path, want := range map[string]string{"/reports": "Reports", "/audit": "Audit"} {
		open(t, ctx, s.url+path)
		if heading := text(t, ctx, "h1"); !strings.Contains(heading, want) {
			t.Errorf("%s: the heading is %q", path, heading)
		}
	}
	for _, path := range []string{"/reports", "/audit"} {
		open(t, ctx, s.url+path)
		forms := value[string](t, ctx, `[...document.querySelectorAll('form[method=post]')].
			map((f) => new URL(f.action).pathname).join(' ')`)
		if forms != "/logout" {
			t.Errorf("%s has the forms %s", path, forms)
		}
	}
}

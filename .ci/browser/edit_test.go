package browser

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// replaceText replaces a text in the routing document of the form.
func replaceText(t *testing.T, ctx context.Context, from, to string) {
	t.Helper()
	if !value[bool](t, ctx, `(() => { const area = document.getElementById("document");
		const before = area.value;
		area.value = before.replace("`+from+`", "`+to+`");
		return area.value !== before })()`) {
		t.Fatalf("the document has no %s", from)
	}
}

// click clicks an element and waits for a text on the next page.
func click(t *testing.T, ctx context.Context, selector, want string) {
	t.Helper()
	do(t, ctx, chromedp.Click(chromedp.CSS(selector)))
	wait(t, want, func() bool { return strings.Contains(text(t, ctx, "main"), want) })
}

// TestAnOperatorEditsTheRoutingDocument: a mistake is shown at its line, the preview shows the
// effect, and what another tab has applied meanwhile is not overwritten. axe-core finds nothing on
// these pages, light and dark, on a desktop and on a phone.
func TestAnOperatorEditsTheRoutingDocument(t *testing.T) {
	folder := os.Getenv(screenshots)
	s, source := start(t), axe(t)
	s.traffic(t, folder != "")
	ctx := browser(t)
	s.signIn(t, ctx, "operator")
	const preview, apply = `button[value="preview"]`, `button[value="apply"]`
	see := func(name string) {
		t.Helper()
		for _, screen := range []struct{ width, height int64 }{{390, 844}, {1280, 900}} {
			for _, scheme := range []string{"dark", "light"} {
				look(t, ctx, screen.width, screen.height, scheme)
				check(t, ctx, source, name+", "+scheme)
				if width := value[int64](t, ctx, `document.documentElement.scrollWidth`); width > screen.width {
					t.Errorf("%s is %d wide, not %d", name, width, screen.width)
				}
			}
		}
	}
	open(t, ctx, s.url+"/routing")
	do(t, ctx, chromedp.Click(chromedp.CSS(`a[href="/routing/edit"]`)), chromedp.WaitVisible(chromedp.CSS("#document")))
	replaceText(t, ctx, "provider: sandbox", "provider: sandbix")
	click(t, ctx, preview, "did you mean sandbox?")
	see("edit-problem")
	do(t, ctx, chromedp.Click(chromedp.CSS("a[data-line]")))
	if selected := value[string](t, ctx, `(() => { const a = document.activeElement;
		return a.value.slice(a.selectionStart, a.selectionEnd) })()`); !strings.Contains(selected, "sandbix") {
		t.Errorf("the link to the line selects %q", selected)
	}
	replaceText(t, ctx, "provider: sandbix", "provider: sandbox")
	replaceText(t, ctx, "a: 30", "a: 50")
	click(t, ctx, preview, "What it changes")
	see("edit")
	shoot(t, ctx, folder, "edit")

	s.dispatcher(t, "", "channel", "drain", "c", "--author", "ben", "--reason", "maintenance")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#edit-reason"), "a has more capacity"))
	click(t, ctx, apply, "ben applied version 6")
	see("edit-conflict")
	open(t, ctx, s.url+"/routing/edit")
	replaceText(t, ctx, "a: 30", "a: 50")
	click(t, ctx, preview, "What it changes")
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#edit-reason"), "a has more capacity\r"))
	wait(t, "the document is applied", func() bool {
		return strings.Contains(text(t, ctx, ".message"), "Version 7 is in force")
	})
	if shown := s.dispatcher(t, "", "routing", "show"); !strings.Contains(shown, "a: 50") ||
		!strings.Contains(shown, "draining") || strings.Contains(shown, "\r") {
		t.Errorf("the document is now:\n%s", shown)
	}
}

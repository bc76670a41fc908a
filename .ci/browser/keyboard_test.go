package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// watchFocus opens what is folded, takes the focus away, and notes in the page which controls get
// the focus, and which of them then look as before. A control is identified by its place, because
// parts of a live page are replaced; the radio buttons of one name are one control.
const watchFocus = `(() => {
	const place = (e) => e.type === "radio" ? "radio " + e.name :
		e.parentNode ? place(e.parentNode) + "/" + [...e.parentNode.children].indexOf(e) : "";
	const look = (e) => {
		const s = getComputedStyle(e);
		const outline = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 ? s.outline : "";
		return [outline, s.boxShadow, s.borderColor, s.backgroundColor].join();
	};
	const show = (e) => e.outerHTML.slice(0, 150);
	const controls = () => [...document.querySelectorAll(
		"a, button, input, select, textarea, summary, [tabindex]")].
		filter((e) => e.checkVisibility() && !e.matches(":disabled"));
	document.activeElement?.blur();
	for (const e of document.querySelectorAll("details")) e.open = true;
	const before = new Map(controls().map((e) => [place(e), look(e)]));
	const reached = new Map(), unseen = new Set();
	addEventListener("focusin", (event) => {
		const e = event.target;
		reached.set(place(e), show(e));
		if (look(e) === before.get(place(e))) unseen.add(show(e));
	});
	window.focusWatch = {
		first: () => [...reached.values()][0] ?? "",
		missing: () => controls().filter((e) => !reached.has(place(e))).map(show).join("\n"),
		unseen: () => [...unseen].join("\n"),
	};
	return before.size })()`

// tabThrough presses Tab until each control of the page had the focus, and says what the first one
// is. A field for a time takes several presses.
func tabThrough(t *testing.T, ctx context.Context, what string) string {
	t.Helper()
	const presses = 20
	controls := value[int](t, ctx, watchFocus)
	missing := "everything"
	for pressed := 0; missing != "" && pressed < 60+4*controls; pressed += presses {
		do(t, ctx, chromedp.KeyEvent(strings.Repeat("\t", presses)))
		missing = value[string](t, ctx, `focusWatch.missing()`)
	}
	if controls == 0 || missing != "" {
		t.Errorf("%s: of %d controls the keyboard does not reach:\n%s", what, controls, missing)
	}
	if unseen := value[string](t, ctx, `focusWatch.unseen()`); unseen != "" {
		t.Errorf("%s: nobody sees that the focus is on:\n%s", what, unseen)
	}
	return value[string](t, ctx, `focusWatch.first()`)
}

// TestTheKeyboardIsEnough: on every page Tab reaches each link, field and button and shows where it
// is, and the first Tab leads to the link that skips the navigation.
func TestTheKeyboardIsEnough(t *testing.T) {
	s := start(t)
	s.traffic(t, false)
	ctx := browser(t)
	look(t, ctx, 1280, 900, "light")
	open(t, ctx, s.url+"/login")
	tabThrough(t, ctx, "/login")
	s.signIn(t, ctx, "admin")
	for _, p := range pages {
		open(t, ctx, s.url+p.path)
		if first := tabThrough(t, ctx, p.path); !strings.Contains(first, "Skip to the content") {
			t.Errorf("%s: the first key leads to %s", p.path, first)
		}
	}
}

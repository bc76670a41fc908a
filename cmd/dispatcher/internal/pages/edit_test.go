package pages

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// editForm is the form of the whole document, as a browser sends it.
func editForm(version, text string, more ...string) url.Values {
	form := url.Values{
		"version": {version}, "document": {strings.ReplaceAll(text, "\n", "\r\n")}, "do": {"preview"},
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// previewed is the hash of the text that a page previews.
func previewed(t *testing.T, page answer) string {
	t.Helper()
	found := regexp.MustCompile(`name="previewed" value="(\w+)"`).FindStringSubmatch(page.body)
	if found == nil {
		t.Fatalf("%d, without a preview: %s", page.StatusCode, page.body)
	}
	return found[1]
}

func TestTheDocumentIsAppliedAfterItsPreview(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	if page := b.get("/routing/edit").body; !strings.Contains(page, "provider: sandbox, price") ||
		strings.Contains(page, `value="apply"`) {
		t.Errorf("the form:\n%s", page)
	}
	text := strings.Replace(document, "a: 25, b: 15, c: 60", "a: 50, b: 15, c: 35", 1) + "# agreed\n"
	page := b.send("/routing/edit", editForm("1", text))
	for _, want := range []string{
		"routes.default.weights.a", "50.0 %", "0–49", "&#43;# agreed", `value="apply"`,
	} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the preview does not say %s:\n%s", want, page.body)
		}
	}
	inForce := func(version int64, text string) {
		t.Helper()
		v, err := c.ledger.Routing.Current(t.Context())
		if err != nil || v.Version != version || v.Document != text {
			t.Errorf("version %d: %v\n%s", v.Version, err, v.Document)
		}
	}
	inForce(1, document)
	apply := []string{"do", "apply", "previewed", previewed(t, page), "reason", "more by a"}
	// Another text than the one that was previewed is not applied.
	got := b.send("/routing/edit", editForm("1", text+"#\n", apply...))
	if got.StatusCode != http.StatusOK || !strings.Contains(got.body, "differs from the one that was") ||
		!strings.Contains(got.body, `value="more by a"`) {
		t.Errorf("%d: got %s", got.StatusCode, got.body)
	}
	got = b.send("/routing/edit", editForm("1", text, "do", "apply", "previewed", previewed(t, page)))
	if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, "# agreed") {
		t.Errorf("without a reason %d: got %s", got.StatusCode, got.body)
	}
	inForce(1, document)
	if got := b.send("/routing/edit", editForm("1", text, apply...)); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	inForce(2, text)
	if v, err := c.ledger.Routing.Current(t.Context()); v.Author != "anna-operator" ||
		v.Reason != "more by a" {
		t.Errorf("%s %s %v", v.Author, v.Reason, err)
	}
	if page := b.send("/routing/edit", editForm("2", text)).body; strings.Contains(page, `value="apply"`) {
		t.Error("what changes nothing can be applied")
	}
	// Comments and layout are the operator's too.
	page = b.send("/routing/edit", editForm("2", document+"# 25\n"))
	apply[3] = previewed(t, page)
	if got := b.send("/routing/edit", editForm("2", document+"# 25\n", apply...)); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	inForce(3, document+"# 25\n")
}

func TestMistakesInTheDocumentAreShownAtTheirLines(t *testing.T) {
	t.Parallel()
	b := newConsole(t).client(t, "operator")
	text := strings.Replace(document, "  b: {provider: sandbox", "  b: {provider: sandbix", 1)
	got := b.send("/routing/edit", editForm("1", text+"<x>: 1\n"))
	if got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("got %d", got.StatusCode)
	}
	for _, want := range []string{
		`data-line="4">Line 4</a>`, "channels.b.provider", "did you mean sandbox?",
		`  b: {provider: sandbix, price`, "2 problems", "&lt;x&gt;: 1\n</textarea>",
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page does not say %s:\n%s", want, got.body)
		}
	}
}

func TestADocumentThatSomebodyChangedMeanwhileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	mine := strings.Replace(document, "ttl: 10m", "ttl: 20m", 1)
	preview := previewed(t, b.send("/routing/edit", editForm("1", mine)))
	if got := c.client(t, "admin").send("/routes/default/weights", url.Values{
		"version": {"1"}, "reason": {"less"}, "weight-a": {"7"},
	}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	got := b.send("/routing/edit", editForm("1", mine, "do", "apply", "previewed", preview, "reason", "x"))
	if got.StatusCode != http.StatusConflict {
		t.Errorf("got %d", got.StatusCode)
	}
	for _, want := range []string{
		"anna-admin applied version 2", "routes.default.weights.a", "ttl: 20m",
		`name="version" value="2"`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page does not say %s:\n%s", want, got.body)
		}
	}
	if v, err := c.ledger.Routing.Current(t.Context()); err != nil || v.Version != 2 {
		t.Errorf("version %d is in force, %v", v.Version, err)
	}
	// The next preview shows that applying takes the other change back.
	if got := b.send("/routing/edit", editForm("2", mine)); !strings.Contains(got.body, "25.0 %") {
		t.Errorf("%d: got %s", got.StatusCode, got.body)
	}
}

func TestALargeDocumentIsTaken(t *testing.T) {
	t.Parallel()
	b := newConsole(t).client(t, "operator")
	large := document + "# " + strings.Repeat("ü", 100_000) + "\n"
	if got := b.send("/routing/edit", editForm("1", large)); got.StatusCode != http.StatusOK {
		t.Errorf("got %d", got.StatusCode)
	}
	if got := b.send("/routing/edit", editForm("1", strings.Repeat(large, 25))); got.StatusCode !=
		http.StatusRequestEntityTooLarge {
		t.Errorf("got %d", got.StatusCode)
	}
}

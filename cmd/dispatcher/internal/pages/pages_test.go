package pages

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

// paths replaces the wildcards of patterns by values.
var paths = strings.NewReplacer("{$}", "", "{page}", "overview", "{route}", "default", "{version}", "1",
	"{channel}", "a", "{id}", "known")

func TestRolesDecideWhatIsServed(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for _, role := range []access.Role{access.None, access.Viewer, access.Operator, access.Finance} {
		name := role.String()
		if role == access.None {
			name = ""
		}
		b := c.client(t, name)
		for _, e := range (&Server{}).endpoints() {
			method, path, _ := strings.Cut(paths.Replace(e.pattern), " ")
			if strings.HasPrefix(path, "/live/") && role.May(e.action) {
				continue // a stream does not end
			}
			var got answer
			if method == http.MethodPost {
				got = b.send(path, url.Values{})
			} else {
				got = b.get(path)
			}
			allowed := got.StatusCode != http.StatusForbidden &&
				got.StatusCode != http.StatusUnauthorized && got.StatusCode != http.StatusSeeOther
			if allowed != role.May(e.action) {
				t.Errorf("%s %s as %s: %d", method, path, role, got.StatusCode)
			}
		}
	}
}

func TestOnlyOperatorsSeeForms(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	viewer, operator := c.client(t, "viewer"), c.client(t, "operator")
	for _, path := range []string{
		"/routes/default", "/channels/a", "/pauses", "/messages/known",
	} {
		if body := viewer.get(path).body; strings.Contains(body, `name="csrf"`) {
			t.Errorf("a viewer sees a form on %s", path)
		}
		if body := operator.get(path).body; !strings.Contains(body, `name="csrf"`) {
			t.Errorf("an operator sees no form on %s", path)
		}
	}
	if body := operator.get("/").body; strings.Contains(body, "/audit") {
		t.Error("an operator sees a link to the audit log")
	}
	if body := c.client(t, "finance").get("/audit").body; strings.Contains(body, `href="/channels"`) {
		t.Error("finance sees a link to the channels")
	}
}

func TestAForgedFormIsRefused(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	form := func(csrf string) url.Values {
		return url.Values{
			"csrf": {csrf}, "version": {"1"}, "reason": {"forged"}, "kind": {"lane"}, "name": {"bulk"},
			"move": {"pause"},
		}
	}
	for name, got := range map[string]answer{
		"of another site, with the secret": b.post("/pauses", form(b.csrf),
			map[string]string{"Sec-Fetch-Site": "cross-site"}),
		"of another port of this host": b.post("/pauses", form(b.csrf),
			map[string]string{"Sec-Fetch-Site": "same-site"}),
		"of an old browser on another site": b.post("/pauses", form(b.csrf),
			map[string]string{"Origin": "https://elsewhere.example"}),
		"without the secret": b.post("/pauses", form(""), nil),
		"of another session": b.post("/pauses", form(c.client(t, "admin").csrf), nil),
		"to sign in": b.post("/login", url.Values{"token": {c.tokens["admin"]}},
			map[string]string{"Sec-Fetch-Site": "cross-site"}),
		"to sign out": b.post("/logout", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}),
	} {
		if got.StatusCode != http.StatusForbidden {
			t.Errorf("a form %s: %d", name, got.StatusCode)
		}
	}
	if v, err := c.ledger.Routing.Current(t.Context()); err != nil || v.Version != 1 {
		t.Errorf("version %d is in force, %v", v.Version, err)
	}
	if got := b.send("/pauses", form("")); got.StatusCode != http.StatusSeeOther {
		t.Errorf("a valid form: %d %s", got.StatusCode, got.body)
	}
}

func TestTheAuthorIsTheSignedInUser(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	got := b.send("/routes/default/weights", url.Values{
		"version": {"1"}, "reason": {"b is cheaper"}, "author": {"somebody else"},
		"weight-a": {"10"}, "weight-b": {"30"}, "weight-c": {"60"},
	})
	if got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	v, err := c.ledger.Routing.Current(t.Context())
	if err != nil || v.Version != 2 || v.Author != "anna-operator" || v.Reason != "b is cheaper" {
		t.Errorf("%d %s %s %v", v.Version, v.Author, v.Reason, err)
	}
	if page := b.get(got.Header.Get("Location")); !strings.Contains(page.body, "Version 2 is in force") {
		t.Error("the page does not say what was done")
	}
	// The text is in the address, signed, so nobody else can forge one.
	if page := b.get("/routes/default?done=Send+money&by=x"); strings.Contains(page.body, "Send money") {
		t.Error("the page shows text of a forged link")
	}
}

func TestAChangeFromAnOldPageIsRefused(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	weights := func() url.Values {
		return url.Values{"version": {"1"}, "reason": {"more"}, "weight-a": {"30"}}
	}
	for name, c := range map[string]struct {
		form   url.Values
		status int
	}{
		"no reason":  {url.Values{"version": {"1"}, "weight-a": {"30"}}, http.StatusUnprocessableEntity},
		"no version": {url.Values{"reason": {"x"}, "weight-a": {"30"}}, http.StatusUnprocessableEntity},
		"no weight": {
			url.Values{"version": {"1"}, "reason": {"x"}, "weight-a": {"many"}},
			http.StatusUnprocessableEntity,
		},
	} {
		if got := b.send("/routes/default/weights", c.form); got.StatusCode != c.status {
			t.Errorf("%s: got %d, want %d", name, got.StatusCode, c.status)
		}
	}
	if got := b.send("/routes/default/weights", weights()); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("the first: %d %s", got.StatusCode, got.body)
	}
	if got := b.send("/routes/default/weights", weights()); got.StatusCode != http.StatusConflict ||
		!strings.Contains(got.body, "anna-operator") {
		t.Errorf("the second: %d %s", got.StatusCode, got.body)
	}
}

func TestThePreviewShowsIntervalsAndChangesNothing(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	form := url.Values{"weight-a": {"50"}, "weight-b": {"25"}, "weight-c": {"25"}}
	got := b.send("/routes/default/preview", form)
	if got.Header.Get("X-Part") != "preview" {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	for _, want := range []string{"50.0 %", "0–49", "1000 segments cost 31.25 GBP", "before 29.80 GBP"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the preview does not say %s:\n%s", want, got.body)
		}
	}
	form.Set("weight-a", "x")
	if got := b.send("/routes/default/preview", form); !strings.Contains(got.body, "Channel a:") {
		t.Errorf("an invalid weight: %s", got.body)
	}
	if v, err := c.ledger.Routing.Current(t.Context()); err != nil || v.Version != 1 {
		t.Errorf("version %d is in force, %v", v.Version, err)
	}
}

// largestPaint is the limit for the first view of a page, in uncompressed bytes.
const largestPaint = 100_000

func TestEveryPageIsSmallAndHasNoInlineCode(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "admin")
	assets := 0
	for _, asset := range []string{"console.css", "console.js", "icon.svg"} {
		got := b.get("/assets/" + asset)
		if got.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d, want %d", asset, got.StatusCode, http.StatusOK)
		}
		assets += len(got.body)
	}
	for _, e := range (&Server{}).endpoints() {
		method, path, _ := strings.Cut(paths.Replace(e.pattern), " ")
		if method != http.MethodGet || strings.HasPrefix(path, "/live/") || path == csvPath {
			continue
		}
		got := b.get(path)
		if got.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d %s", path, got.StatusCode, got.body)
		}
		if size := len(got.body) + assets; size > largestPaint {
			t.Errorf("%s loads %d bytes", path, size)
		}
		for _, inline := range []string{"<style", " style=", "<script>", "onclick=", "javascript:"} {
			if strings.Contains(got.body, inline) {
				t.Errorf("%s has %s in it", path, inline)
			}
		}
		headers := got.Header
		if csp := headers.Get("Content-Security-Policy"); csp != policy ||
			!strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if headers.Get("X-Content-Type-Options") != "nosniff" ||
			headers.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, headers)
		}
	}
}

func TestSessionsEndWithTheirTokens(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "viewer")
	if got := b.get("/messages"); got.StatusCode != http.StatusOK {
		t.Fatalf("got %d, want %d", got.StatusCode, http.StatusOK)
	}
	if err := os.WriteFile(c.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.get("/messages?id=x"); got.StatusCode != http.StatusSeeOther ||
		got.Header.Get("Location") != "/login?to="+url.QueryEscape("/messages?id=x") {
		t.Errorf("%d: got %s", got.StatusCode, got.Header.Get("Location"))
	}
}

func TestTheCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "")
	got := b.post("/login", url.Values{"token": {c.tokens["viewer"]}}, nil)
	cookies := got.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode ||
		cookies[0].Secure || cookies[0].MaxAge != int(sessionLife.Seconds()) ||
		strings.Contains(cookies[0].Value, c.tokens["viewer"]) {
		t.Fatalf("got %+v", cookies)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/login",
		strings.NewReader(url.Values{"token": {c.tokens["viewer"]}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "sms.example.com"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookies := b.do(r).Cookies(); len(cookies) != 1 || !cookies[0].Secure ||
		!strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Errorf("away from loopback: %+v", cookies)
	}
}

func TestSealedSessionsExpireAndCannotBeChanged(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sealerOf := func(secret, kind string) *sealer {
		of, err := newSealer([]byte(secret), kind)
		if err != nil {
			t.Fatal(err)
		}
		return of
	}
	seal := sealerOf("secret", sessions)
	sealed, err := seal.seal(&session{Token: "token", Expires: now.Add(sessionLife)})
	if err != nil {
		t.Fatal(err)
	}
	var of session
	if !seal.open(sealed, now, &of) || of.Token != "token" {
		t.Errorf("got %+v", of)
	}
	for name, taken := range map[string]bool{
		"expired":           seal.open(sealed, now.Add(sessionLife), &of),
		"changed":           seal.open("A"+sealed, now, &of),
		"of another secret": sealerOf("another secret", sessions).open(sealed, now, &of),
		"of another kind":   sealerOf("secret", signIns).open(sealed, now, &of),
		"of something else": seal.open("nothing", now, &of),
		"that is empty":     seal.open("", now, &of),
	} {
		if taken {
			t.Errorf("a session %s was accepted", name)
		}
	}
	if _, err := seal.seal(&session{Token: strings.Repeat("x", 12_000)}); err == nil {
		t.Error("a token that does not fit into the cookies was accepted")
	}
}

func TestTheCodeLetsOneBrowserInOnce(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	if got := c.client(t, "").get("/login?code=another"); got.StatusCode != http.StatusForbidden {
		t.Errorf("another code: %d", got.StatusCode)
	}
	b := c.client(t, "")
	if got := b.get("/login?code=the-code"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("the code: %d", got.StatusCode)
	}
	if got := b.get("/audit"); got.StatusCode != http.StatusOK {
		t.Errorf("with the session: %d", got.StatusCode)
	}
	if got := c.client(t, "").get("/login?code=the-code"); got.StatusCode != http.StatusForbidden {
		t.Errorf("once more: %d", got.StatusCode)
	}
}

func TestSigningInLeadsBackToThisHostAlone(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/channels/a?x=1": "/channels/a?x=1", "//elsewhere.example": "/", "/\\elsewhere": "/",
		"/./\\elsewhere": "/", "/.//elsewhere": "/.//elsewhere",
		"https://elsewhere": "/", "": "/", "/a\r\nb": "/", "/": "/",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q leads to %q", to, got)
		}
	}
}

// TestAnotherTabIsUpdated: after a change by another user, a stream sends the page again.
func TestAnotherTabIsUpdated(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	viewer, operator := c.client(t, "viewer"), c.client(t, "operator")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/live/routes", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := viewer.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close() //nolint:errcheck // It does not end by itself.
	if stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d: got %v", stream.StatusCode, stream.Header)
	}
	lines := bufio.NewScanner(stream.Body)
	until := func(want string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended without %q: %v", want, lines.Err())
	}
	until(">25<")
	if got := operator.send("/routes/default/weights", url.Values{
		"version": {"1"}, "reason": {"more"}, "weight-a": {"77"},
	}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	until(">77<")
	// Removing the token from the file ends the stream.
	if err := os.WriteFile(c.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until("event: signout")
}

func TestStyleSheetAndScriptAreReadByHand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"console.css", "console.js"} {
		text, err := os.ReadFile(filepath.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if len(line) > 120 {
				t.Errorf("%s:%s is %d long", name, strconv.Itoa(i+1), len(line))
			}
		}
	}
}

func TestAWaitingMessageCanBeCancelledOnce(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	page := b.get("/messages/known").body
	if strings.Contains(page, "447700900123") || !strings.Contains(page, "Cancel the message") {
		t.Errorf("the page of the message:\n%s", page)
	}
	form := func() url.Values { return url.Values{"reason": {"wrong day"}} }
	if got := b.send("/messages/known/cancel", url.Values{"reason": {"asked by +447700900123"}}); got.
		StatusCode == http.StatusSeeOther || !strings.Contains(got.body, "reason has a phone number") {
		t.Fatalf("with a number in the reason: %d: got %s", got.StatusCode, got.body)
	}
	if got := b.send("/messages/known/cancel", form()); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	page = b.get("/messages/known").body
	if strings.Contains(page, "Cancel the message") {
		t.Error("the page offers to cancel it again")
	}
	if !strings.Contains(page, "Cancelled by anna-operator") {
		t.Errorf("the timeline does not say who cancelled it:\n%s", page)
	}
	if got := b.send("/messages/known/cancel", form()); got.StatusCode != http.StatusConflict {
		t.Errorf("once more: %d", got.StatusCode)
	}
	if log := c.client(t, "finance").get("/audit").body; !strings.Contains(log, "cancel known") ||
		!strings.Contains(log, "anna-operator") || strings.Contains(log, "wrong day") {
		t.Errorf("the audit log:\n%s", log)
	}
	if log := c.client(t, "admin").get("/audit").body; !strings.Contains(log, "wrong day") {
		t.Errorf("the audit log of an admin:\n%s", log)
	}
	if got := b.send("/messages/none/cancel", form()); got.StatusCode != http.StatusNotFound {
		t.Errorf("a message that is not there: %d", got.StatusCode)
	}
}

func TestGoingBackAppliesTheOldDocumentAgain(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	if got := b.send("/channels/c/state", url.Values{
		"version": {"1"}, "reason": {"maintenance"}, "state": {"draining"},
	}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	page := b.get("/routing/1").body
	if !strings.Contains(page, "channels.c.state") || !strings.Contains(page, "Apply version 1 again") {
		t.Errorf("the page of version 1:\n%s", page)
	}
	if got := b.send("/routing/1/rollback", url.Values{
		"version": {"2"}, "reason": {"it is over"},
	}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	v, err := c.ledger.Routing.Current(t.Context())
	if err != nil || v.Version != 3 || v.Document != document {
		t.Errorf("version %d: %v\n%s", v.Version, err, v.Document)
	}
}

func TestARampIsStartedAndEnded(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	form := url.Values{
		"version": {"1"}, "reason": {"a has more"}, "weight-a": {"50"}, "weight-b": {"15"},
		"weight-c": {"35"}, "minutes": {"60"}, "steps": {"5"}, "errors": {"5"},
	}
	if got := b.send("/routes/default/ramp", form); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	if page := b.get("/routes/default").body; !strings.Contains(page, "step 0 of 5") {
		t.Errorf("the page of the route:\n%s", page)
	}
	if got := b.send("/routes/default/steer", url.Values{
		"reason": {"changed my mind"}, "move": {"cancel"},
	}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: got %s", got.StatusCode, got.body)
	}
	if page := b.get("/routes/default").body; !strings.Contains(page, "Past ramps") {
		t.Errorf("the page of the route afterwards:\n%s", page)
	}
	if got := b.send("/routes/default/steer", url.Values{
		"reason": {"again"}, "move": {"cancel"},
	}); got.StatusCode != http.StatusConflict {
		t.Errorf("without a ramp: %d", got.StatusCode)
	}
}

func TestAnOperatorSendsAMessageOverAChannel(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.client(t, "operator")
	form := func(to string) url.Values {
		page := b.get("/channels/a").body
		found := regexp.MustCompile(`name="key" value="(\w+)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatal("the form has no key")
		}
		return url.Values{
			"to": {to}, "text": {"Hello"}, "reason": {"new account"}, "key": {found[1]},
		}
	}
	if got := b.send("/channels/a/test", form("0770")); got.StatusCode != http.StatusUnprocessableEntity ||
		strings.Contains(got.body, "0770") {
		t.Errorf("no number: %d %s", got.StatusCode, got.body)
	}
	if got := b.send("/channels/nobody/test", form("+447700900123")); got.StatusCode != http.StatusNotFound {
		t.Errorf("no channel: %d", got.StatusCode)
	}
	// No dispatcher reads the topic here: publish stores the message as a dispatcher would.
	c.arrives = true
	first := form("0770")
	if got := b.send("/channels/a/test", first); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("no number: %d", got.StatusCode)
	}
	first.Set("to", "+447700900123") // a form that was refused may be corrected
	got := b.send("/channels/a/test", first)
	at, err := url.Parse(got.Header.Get("Location"))
	if err != nil || got.StatusCode != http.StatusSeeOther || len(c.published) != 1 ||
		at.Path != "/messages/"+strings.TrimPrefix(c.published[0], "sms.otp ") ||
		at.Query().Get("done") != "The channel has not answered so far. The message is failed." {
		t.Errorf("%d %s %v", got.StatusCode, got.Header.Get("Location"), c.published)
	}
	// A double click sends the form again: it sends no second message.
	again := b.send("/channels/a/test", first)
	if to, err := url.Parse(again.Header.Get("Location")); err != nil || len(c.published) != 1 ||
		to.Path != at.Path || !strings.HasPrefix(to.Query().Get("done"),
		"The form came twice, and its message was sent once.") {
		t.Errorf("twice: %s, published %v", again.Header.Get("Location"), c.published)
	}
	first.Set("text", "Other")
	if got := b.send("/channels/a/test", first); got.StatusCode != http.StatusUnprocessableEntity ||
		len(c.published) != 1 {
		t.Errorf("another message with the key: %d, published %v", got.StatusCode, c.published)
	}
	first.Del("key")
	if got := b.send("/channels/a/test", first); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without a key: %d", got.StatusCode)
	}
	if got := b.send("/channels/a/test", form("+447700900123")); len(c.published) != 2 {
		t.Errorf("the form of a new page: %d, published %v", got.StatusCode, c.published)
	}
	if page := b.get(got.Header.Get("Location")); page.StatusCode != http.StatusOK ||
		strings.Contains(page.body, "7700900") {
		t.Errorf("%d: got %s", page.StatusCode, page.body)
	}
	if log := c.client(t, "finance").get("/audit").body; !strings.Contains(log, "anna-operator") ||
		!strings.Contains(log, "test") {
		t.Errorf("the audit log:\n%s", log)
	}
}

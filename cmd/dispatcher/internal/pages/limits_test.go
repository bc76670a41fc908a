package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

const limitsDocument = `timezone: Europe/London
channels:
  a: {provider: sandbox, limits: [{window: 1d, max: 7001, tenant: "*"}]}
  b:
    provider: sandbox
    price: {currency: GBP, default: "0.031"}
    limits:
      - {window: 1m, max: 7002, prefix: "+4477"}
      - {window: prepaid, unit: money, currency: GBP}
  c: {provider: sandbox}
limits:
  - {window: 1h, max: 7003, tenant: shop}
routes:
  - {name: default, match: {}, weights: {a: 1, b: 1, c: 1}}
lanes:
  otp: {topics: [sms.otp], ttl: 10m}
`

func TestPagesShowLimitsOfEachScope(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.apply(t, limitsDocument)
	viewer := c.client(t, "viewer")
	onA := []string{"each tenant", "7\u2009001"}
	onB := []string{"prefix &#43;4477", "7\u2009002", "prepaid", "money GBP"}
	onAll := []string{"tenant shop", "all channels", "7\u2009003"}
	for path, want := range map[string][]string{
		"/":           append(append(append([]string{}, onA...), onB...), onAll...),
		"/channels/a": onA,
		"/channels/b": onB,
		"/channels/c": {"The channel has no limit."},
	} {
		body := viewer.get(path).body
		for _, words := range want {
			if !strings.Contains(body, words) {
				t.Errorf("%s does not say %q", path, words)
			}
		}
	}
}

// TestALimitIsRestartedInTheConsole when its window begins in the future; else there is no form.
func TestALimitIsRestartedInTheConsole(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	if _, err := db.Exec(t.Context(), `update dispatcher.limits set granted = 7,
		window_start = date_trunc('second', now()) + interval '2 days',
		next_at = now() + interval '2 days'`); err != nil {
		t.Fatal(err)
	}
	b := c.client(t, "operator")
	if body := b.get("/channels/a").body; !strings.Contains(body, "<option>a 1s messages</option>") {
		t.Errorf("the page has no form:\n%s", body)
	}
	for _, page := range []answer{b.get("/"), c.client(t, "viewer").get("/channels/a")} {
		if has := strings.Contains(page.body, "/limits/restart"); has != (page.Request.URL.Path == "/") {
			t.Errorf("%s: a form: %v", page.Request.URL, has)
		}
	}
	form := url.Values{"limit": {"a 1s messages"}, "version": {"1"}, "reason": {"the clock"}}
	got := b.send("/limits/restart", form)
	if to := got.Header.Get("Location"); !strings.HasPrefix(to, "/channels/a?") ||
		!strings.Contains(to, "done=The+window+of+limit+a+1s") {
		t.Errorf("got %d, %s: %s", got.StatusCode, to, got.body)
	}
	if body := b.get("/channels/a").body; strings.Contains(body, "/limits/restart") {
		t.Error("there is a form although no window begins in the future")
	}
	if got := b.send("/limits/restart", form); got.StatusCode != http.StatusConflict {
		t.Errorf("again: got %d", got.StatusCode)
	}
	if got := b.send("/limits/restart", url.Values{
		"limit": {"a"}, "version": {"1"}, "reason": {"x"},
	}); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("no limit: got %d", got.StatusCode)
	}
}

// TestALimitIsSetAndABudgetToppedUpInTheConsole: on the page of its channel, or on the overview for
// those over all channels.
func TestALimitIsSetAndABudgetToppedUpInTheConsole(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.apply(t, limitsDocument)
	b := c.client(t, "operator")
	for path, want := range map[string][]string{
		"/channels/a": {"<option>a tenant:* 1d messages</option>"},
		"/channels/b": {"<option>b prefix:&#43;4477 1m messages</option>", "<option>b prepaid money</option>"},
		"/":           {"<option>tenant:shop 1h messages</option>"},
	} {
		body := b.get(path).body
		for _, option := range want {
			if !strings.Contains(body, option) {
				t.Errorf("%s has no %s:\n%s", path, option, body)
			}
		}
		if strings.Contains(c.client(t, "viewer").get(path).body, "/limits/max") {
			t.Errorf("a viewer sees the form on %s", path)
		}
	}
	send := func(path string, fields ...string) answer {
		form := url.Values{"version": {"2"}, "reason": {"agreed"}, "key": {"of this form"}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return b.send(path, form)
	}
	const onB, onAll = "b prefix:+4477 1m messages", "tenant:shop 1h messages"
	for want, got := range map[string]answer{
		"is not a limit":          send("/limits/max", "limit", "x", "max", "5"),
		"is not a whole number":   send("/limits/max", "limit", onB, "max", "many"),
		"has no max: top it up":   send("/limits/max", "limit", "b prepaid money", "max", "5"),
		"here is no limit":        send("/limits/max", "limit", "b 1s messages", "max", "5"),
		"is not a prepaid budget": send("/limits/top-up", "limit", onB, "amount", "5"),
		"0 changes nothing":       send("/limits/top-up", "limit", "b prepaid money", "amount", "0"),
		"no more can be taken":    send("/limits/top-up", "limit", "b prepaid money", "amount", "-1"),
		"has no key":              send("/limits/top-up", "limit", "b prepaid money", "amount", "5", "key", ""),
		"which version":           send("/limits/max", "limit", onB, "max", "5", "version", ""),
		"rite a reason":           send("/limits/max", "limit", onB, "max", "5", "reason", ""),
		"changed after version ":  send("/limits/max", "limit", onB, "max", "5", "version", "1"),
	} {
		if got.StatusCode < 400 || !strings.Contains(got.body, want) {
			t.Errorf("got %d, want %q: %s", got.StatusCode, want, got.body)
		}
	}
	follow := func(got answer, path, want string) {
		t.Helper()
		to := got.Header.Get("Location")
		if !strings.HasPrefix(to, path+"?") {
			t.Fatalf("got %d, %s: %s", got.StatusCode, to, got.body)
		}
		if body := b.get(to).body; !strings.Contains(body, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, body)
		}
	}
	for range 2 { // a form that is sent twice counts once
		follow(send("/limits/top-up", "limit", "b prepaid money", "amount", "12.50"), "/channels/b",
			"The budget was topped up by 12.50 to 12.50 GBP.")
	}
	follow(send("/limits/max", "limit", onB, "max", "6001"), "/channels/b", "6\u2009001")
	follow(send("/limits/max", "limit", onAll, "max", "6002", "version", "3"), "/", "6\u2009002")
	if log := c.client(t, "finance").get("/audit").body; !strings.Contains(log, "anna-operator") {
		t.Errorf("the audit log:\n%s", log)
	}
}

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

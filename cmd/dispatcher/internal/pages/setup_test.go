package pages

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/selector"
)

const document = `timezone: Europe/London
channels:
  a: {provider: sandbox, price: {currency: GBP, default: "0.031"}, limits: [{window: 1s, max: 50}]}
  b: {provider: sandbox, price: {currency: GBP, default: "0.035"}}
  c: {provider: sandbox, price: {currency: GBP, default: "0.028"}}
routes:
  - {name: default, match: {}, mode: weighted, weights: {a: 25, b: 15, c: 60}, fallback: load_ratio}
lanes:
  otp: {topics: [sms.otp], ttl: 10m}
  bulk: {topics: [sms.bulk], ttl: 72h}
`

// testKey is the key of the draws.
var testKey = selector.Key{1}

// console is a running console with a token for each role.
type console struct {
	url    string
	server *Server
	db     string // URL of the database
	ledger *ledger.Ledger
	tokens map[string]string
	once   *Once
	file   string // of tokens

	published []string // "topic id" of each record; requests come one after the other
	arrives   bool     // publish stores the message at once, as one that was too late
}

func newConsole(t *testing.T) *console {
	t.Helper()
	return newConsoleOf(t, access.Config{})
}

// newConsoleOf also admits users of the configuration.
func newConsoleOf(t *testing.T, who access.Config) *console {
	t.Helper()
	c := &console{tokens: map[string]string{}, file: filepath.Join(t.TempDir(), "tokens")}
	var lines strings.Builder
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Finance, access.Admin} {
		token, entry, err := access.NewToken("anna-"+role.String(), role)
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[role.String()] = token
		lines.WriteString(entry.String() + "\n")
	}
	if err := os.WriteFile(c.file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	who.TokensFile = c.file
	if who.Rate.Burst == 0 {
		who.Rate = access.Rate{PerSecond: 1e6, Burst: 1e6}
	}
	gate, err := access.New(who)
	if err != nil {
		t.Fatal(err)
	}
	c.ledger, c.db = lent.Ledger(t, ledger.Config{})
	c.apply(t, document)
	if err := c.ledger.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	storeMessage(t, c.ledger, "known", &ledger.Decision{
		State: ledger.Waiting, Reason: "no_slot", WaitsFor: "a 1s messages",
	})
	c.once = &Once{Code: "the-code", Token: c.tokens["admin"]}
	s, err := New(Config{
		Gate: gate, Ledger: c.ledger, Keys: []selector.Key{testKey}, Secret: []byte("secret"),
		Once: c.once, DeadAfter: time.Minute, Log: zerolog.Nop(),
		ReportCSV: func(out io.Writer, r *report.Range) error {
			for i := range r.Rows {
				fmt.Fprintf(out, "%s,%s\n", r.Rows[i].Period, r.Rows[i].Channel)
			}
			return nil
		},
		Publish: func(_ context.Context, topic, id string, _ []byte) error {
			c.published = append(c.published, topic+" "+id)
			if c.arrives {
				storeMessage(t, c.ledger, id, &ledger.Decision{State: ledger.Failed, Reason: "expired"})
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.server = s
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	c.url = server.URL
	return c
}

// apply puts a routing document in force.
func (c *console) apply(t *testing.T, text string) {
	t.Helper()
	doc, err := config.ParseDocument("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ledger.Routing.Apply(t.Context(), app.NewRouting(doc, nil, "dispatcher",
		"first start", nil)); err != nil {
		t.Fatal(err)
	}
}

// client is a browser that does not follow redirects.
type client struct {
	t    *testing.T
	url  string
	http *http.Client
	csrf string
}

// client signs in with a role, unless it is empty.
func (c *console) client(t *testing.T, role string) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &client{t: t, url: c.url, http: &http.Client{
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if role == "" {
		return b
	}
	if r := b.post("/login", url.Values{"token": {c.tokens[role]}}, nil); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("signing in as %s: %d %s", role, r.StatusCode, r.body)
	}
	home := "/messages"
	if role == "finance" {
		home = "/audit"
	}
	if role == "operator" || role == "admin" {
		home = "/pauses"
	}
	if found := regexp.MustCompile(`name="csrf" value="(\w+)"`).FindStringSubmatch(
		b.get(home).body); found != nil {
		b.csrf = found[1]
	}
	return b
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

func (b *client) do(r *http.Request) answer {
	b.t.Helper()
	response, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response, string(body)}
}

func (b *client) get(path string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b *client) post(path string, form url.Values, headers map[string]string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return b.do(r)
}

// send sends a form of the session, with its secret.
func (b *client) send(path string, form url.Values) answer {
	b.t.Helper()
	form.Set("csrf", b.csrf)
	return b.post(path, form, map[string]string{"Sec-Fetch-Site": "same-origin"})
}

func TestMain(m *testing.M) {
	tier.Parallel(4)
	ledgertest.Main(m, lent.Close)
}

// storeMessage stores a message with a decision.
func storeMessage(t *testing.T, l *ledger.Ledger, id string, d *ledger.Decision) {
	t.Helper()
	until := time.Now().Add(time.Hour)
	message := ledger.Message{
		ID: id, Lane: "otp", Envelope: []byte(`{"id":"` + id + `","to":"+447700900123","text":"x"}`),
		State: ledger.Sending, ExpiresAt: until, ReceivedAt: time.Now(),
		Plan:       ledger.Plan{Route: "default", Version: 1, FirstChoice: "a", Segments: 1},
		NumberHMAC: decide.NumberHMAC(testKey, "+447700900123"),
	}
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{
		Messages: []ledger.Message{message}, Channels: []string{"a", "b", "c"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if d.Plan = message.Plan; d.State == ledger.Waiting {
		d.NextAt = until
	}
	if err := tx.Commit(t.Context(), ledger.Decisions{Each: []ledger.Decision{*d}}); err != nil {
		t.Fatal(err)
	}
}

// exec runs a statement in the database of the console.
func (c *console) exec(t *testing.T, sql string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/api"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/selector"
)

const document = `channels:
  a: {provider: sandbox, limits: [{window: 1s, max: 100}]}
  b: {provider: sandbox}
routes:
  - {name: default, weights: {a: 60, b: 40}}
`

// stage is the API over a database of its own, with a token of each role.
type stage struct {
	t      *testing.T
	url    string
	db     string // URL of the database
	ledger *ledger.Ledger
	tokens map[string]string
	file   string // of the tokens

	registry *prometheus.Registry

	mu        sync.Mutex
	published map[string]string // guarded by mu: replayed dead records by id
	broken    error             // guarded by mu: error of publish
}

// publish receives the replayed dead records in place of Kafka.
func (s *stage) publish(_ context.Context, _, id string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.published[id] = string(value)
	}
	return s.broken
}

func newStage(t *testing.T, rate access.Rate) *stage {
	t.Helper()
	return newIntakeStage(t, rate, nil)
}

func newIntakeStage(t *testing.T, rate access.Rate, intake api.Intake) *stage {
	t.Helper()
	l, url := lent.Ledger(t, ledger.Config{})
	s := &stage{
		t: t, db: url, ledger: l, tokens: map[string]string{}, published: map[string]string{},
		registry: prometheus.NewRegistry(),
	}
	s.edit("first", func(d *control.Draft) (*control.Changed, error) {
		return d.Make(t.Context(), func() (*config.Document, error) {
			return config.ParseDocument("first.yaml", []byte(document))
		})
	})
	var lines strings.Builder
	for name, role := range map[string]access.Role{
		"vic": access.Viewer, "olga": access.Operator, "fred": access.Finance, "ada": access.Admin,
		"sam": access.Sender,
	} {
		token, entry, err := access.NewToken(name, role)
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[role.String()] = token
		lines.WriteString(entry.String() + "\n")
	}
	token, entry, err := access.NewToken("shop-1", access.Sender)
	if err := errors.Join(err, entry.Bind("shop")); err != nil {
		t.Fatal(err)
	}
	s.tokens["sender of shop"] = token
	lines.WriteString(entry.String() + "\n")
	token, entry, err = access.NewToken("shop-2", access.Sender)
	if err := errors.Join(err, entry.Bind("shop"), entry.BoundTo("otp", "s-")); err != nil {
		t.Fatal(err)
	}
	s.tokens["sender of otp"] = token
	lines.WriteString(entry.String() + "\n")
	s.file = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(s.file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	gate, err := access.New(access.Config{TokensFile: s.file, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	a := api.New(api.Config{
		Gate: gate, Ledger: l, DeadAfter: time.Minute, Log: zerolog.Nop(),
		Keys: []selector.Key{{1}}, LiveEvery: 50 * time.Millisecond, Intake: intake,
		Publish: s.publish, IntakeMetrics: kafka.NewIntakeMetrics(s.registry),
	})
	server := httptest.NewServer(a.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(a.Close)
	s.url = server.URL
	return s
}

// edit changes the routing without the API, as another process does.
func (s *stage) edit(reason string, do func(*control.Draft) (*control.Changed, error)) {
	s.t.Helper()
	d, err := control.Begin(s.t.Context(), s.ledger, nil, control.By{
		Author: "elsewhere", Reason: reason,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := do(d); err != nil {
		s.t.Fatal(err)
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes a request with the token of a role; headers are pairs.
func (s *stage) ask(role, method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+api.Base+path,
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+s.tokens[role])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// operation is a request of an operation, with the action that a role must allow.
type operation struct {
	method, path, body string
	action             access.Action
}

// operations are one request of each.
var operations = []operation{
	{"GET", "/status", "", access.View},
	{"GET", "/channels", "", access.View},
	{"GET", "/instances", "", access.View},
	{"GET", "/routing/versions/1/diff/1", "", access.View},
	{"GET", "/opt-outs", "", access.View},
	{"POST", "/opt-outs/lookup", `{"tenant":"shop","number":"+447700900123"}`, access.View},
	{"POST", "/opt-outs", `{"tenant":"","numbers":["+447700900123"]}`, access.Operate},
	{"POST", "/opt-outs/remove", `{"numbers":["+447700900123"]}`, access.Operate},
	{"GET", "/routing", "", access.View},
	{"GET", "/routing/versions", "", access.View},
	{"GET", "/routing/versions/1", "", access.View},
	{"POST", "/routing/validate", `{"document":"x"}`, access.View},
	{"POST", "/routing/preview", `{"document":"x"}`, access.View},
	{"GET", "/weights", "", access.View},
	{"GET", "/ramps", "", access.View},
	{"GET", "/limits", "", access.View},
	{"GET", "/budgets", "", access.View},
	{"GET", "/budgets/top-ups", "", access.View},
	{"POST", "/budgets/top-ups", `{}`, access.Operate},
	{"GET", "/messages/none", "", access.View},
	{"POST", "/messages/lookup", `{"number":"+447700900123"}`, access.View},
	{"GET", "/ambiguous", "", access.View},
	{"GET", "/dead", "", access.View},
	{"POST", "/dead/replay", `{}`, access.Operate},
	{"GET", "/dead/records/none", "", access.View},
	{"POST", "/ambiguous/settle", `{}`, access.Operate},
	{"PUT", "/routing", `{}`, access.Operate},
	{"POST", "/routing/rollback", `{}`, access.Operate},
	{"PUT", "/channels/a/state", `{}`, access.Operate},
	{"PUT", "/routes/default/weights", `{}`, access.Operate},
	{"POST", "/routes/default/ramp", `{}`, access.Operate},
	{"PUT", "/routes/default/ramp", `{}`, access.Operate},
	{"PUT", "/limits", `{}`, access.Operate},
	{"POST", "/pause", `{}`, access.Operate},
	{"POST", "/resume", `{}`, access.Operate},
	{"POST", "/messages/none/cancel", `{}`, access.Operate},
	{"POST", "/messages/cancel", `{}`, access.Operate},
	{"POST", "/ambiguous/none/settle", `{}`, access.Operate},
	{"GET", "/reports/daily", "", access.Report},
	{"GET", "/reports/range", "", access.Report},
	{"GET", "/audit/actions", "", access.Audit},
	{"GET", "/audit/routing", "", access.Audit},
	{"POST", "/messages", `{}`, access.Send},
	{"POST", "/channels/a/test", `{}`, access.Operate},
	{"POST", "/limits/restart", `{}`, access.Operate},
	{"GET", "/reports/contracts", "", access.Report},
}

// TestEveryOperationIsAmongThem: the operations above are those of the description that is checked
// in, which is the one served. whoami and live are left out, since every role may use them, and a
// stream does not end.
func TestEveryOperationIsAmongThem(t *testing.T) {
	t.Parallel()
	var described struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	text, err := os.ReadFile("../../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	known := 0
	for path, methods := range described.Paths {
		pattern := regexp.MustCompile(`^` + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(
			strings.TrimPrefix(path, api.Base), `[\w.-]+`) + `$`)
		for method, o := range methods {
			if o.OperationID == "whoami" || o.OperationID == "live" {
				continue
			}
			known++
			if !slices.ContainsFunc(operations, func(one operation) bool {
				return strings.EqualFold(one.method, method) && pattern.MatchString(one.path)
			}) {
				t.Errorf("%s %s (%s) has no row in operations", method, path, o.OperationID)
			}
		}
	}
	if known != len(operations) {
		t.Errorf("%d operations are described, and %d are tested", known, len(operations))
	}
}

// TestEachRoleMayDoWhatTheTableSays: over real HTTP, for each operation. Without a token nothing is
// allowed.
func TestEachRoleMayDoWhatTheTableSays(t *testing.T) {
	t.Parallel()
	s := newIntakeStage(t, access.Rate{PerSecond: 1e6, Burst: 1e6}, brokenIntake{})
	for _, o := range operations {
		if got := s.ask("", o.method, o.path, o.body); got.status != http.StatusUnauthorized ||
			got.header.Get("WWW-Authenticate") != "Bearer" ||
			got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s without a token: %+v", o.method, o.path, got)
		}
		for _, role := range []access.Role{
			access.Viewer, access.Operator, access.Finance, access.Sender, access.Admin,
		} {
			got := s.ask(role.String(), o.method, o.path, o.body)
			if allowed := got.status != http.StatusForbidden; allowed != role.May(o.action) {
				t.Errorf("%s %s as %s: %d", o.method, o.path, role, got.status)
			}
			if got.status >= http.StatusInternalServerError {
				t.Errorf("%s %s as %s: %d %s", o.method, o.path, role, got.status, got.body)
			}
			if strings.Contains(got.body, "7700900123") {
				t.Errorf("%s %s as %s shows the number", o.method, o.path, role)
			}
		}
	}
}

func TestTheAuthorOfAChangeIsWhoWasAuthenticated(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	got := s.ask("operator", "PUT", "/routes/default/weights",
		`{"weights":{"a":25},"reason":"a costs more"}`)
	if got.status != http.StatusOK || got.header.Get("ETag") != `"2"` {
		t.Fatalf("got %+v", got)
	}
	v, err := s.ledger.Routing.Current(t.Context())
	if err != nil || v.Author != "olga" || v.Reason != "a costs more" ||
		!strings.Contains(v.Document, "a: 25") {
		t.Errorf("got %+v, error %v", v, err)
	}
	if got := s.ask("operator", "PUT", "/channels/b/state",
		`{"state":"draining","reason":"x","author":"somebody else"}`); got.status !=
		http.StatusUnprocessableEntity {
		t.Errorf("a claimed author: %+v", got)
	}
	if got := s.ask("operator", "PUT", "/channels/b/state", `{"state":"draining"}`); got.status !=
		http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %+v", got)
	}
}

func TestAnOldETagChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	tag := s.ask("viewer", "GET", "/routing", "").header.Get("ETag")
	s.edit("quicker", func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(t.Context(), "b", config.Draining)
	})
	const body = `{"weights":{"a":25},"reason":"mine"}`
	if got := s.ask("operator", "PUT", "/routes/default/weights", body, "If-Match",
		tag); got.status != http.StatusPreconditionFailed ||
		!strings.Contains(got.body, "elsewhere") {
		t.Errorf("got %+v", got)
	}
	now := s.ask("viewer", "GET", "/routing", "").header.Get("ETag")
	if got := s.ask("operator", "PUT", "/routes/default/weights", body, "If-Match",
		now); got.status != http.StatusOK {
		t.Errorf("got %+v, want status %v", got, http.StatusOK)
	}
}

// TestAWholeDocumentNeedsAnETag: without one it would take back what others have changed since.
func TestAWholeDocumentNeedsAnETag(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	was := s.ask("viewer", "GET", "/routing", "")
	var routing struct{ Document string }
	if err := json.Unmarshal([]byte(was.body), &routing); err != nil {
		t.Fatal(err)
	}
	body := func(more string) string {
		text, err := json.Marshal(strings.Replace(routing.Document, "a: ", "a:  ", 1))
		if err != nil {
			t.Fatal(err)
		}
		return `{"document":` + string(text) + more + `}`
	}
	for _, c := range []struct {
		more, match string
		want        int
	}{
		{`,"reason":"mine"`, "", http.StatusPreconditionRequired},
		{`,"dry_run":true`, "", http.StatusOK},
		{`,"reason":"mine","force":true`, was.header.Get("ETag"), http.StatusOK},
		{`,"reason":"mine","force":true`, was.header.Get("ETag"), http.StatusPreconditionFailed},
		{`,"reason":"mine","force":true`, "*", http.StatusOK},
	} {
		var header []string
		if c.match != "" {
			header = []string{"If-Match", c.match}
		}
		if got := s.ask("operator", "PUT", "/routing", body(c.more), header...); got.status != c.want {
			t.Errorf("%s with If-Match %q: got %+v, want status %d", c.more, c.match, got, c.want)
		}
	}
}

// TestNoReasonHasAPhoneNumber: the history shows reasons to everybody.
func TestNoReasonHasAPhoneNumber(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	const because = `"reason":"asked by +447700900123"}`
	for path, body := range map[string]string{
		"/pause": `{"lanes":["bulk"],`, "/messages/none/cancel": `{`,
	} {
		got := s.ask("operator", "POST", path, body+because)
		if got.status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.body, "the reason has a phone number") {
			t.Errorf("%s: got %+v, want status %d", path, got, http.StatusUnprocessableEntity)
		}
	}
}

func TestARepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	const body = `{"lanes":["bulk"],"reason":"wrong text"}`
	first := s.ask("operator", "POST", "/pause", body, "Idempotency-Key", "k-1")
	s.edit("resumed", func(d *control.Draft) (*control.Changed, error) {
		return d.Resume(t.Context(), &config.Paused{All: true})
	})
	again := s.ask("operator", "POST", "/pause", body, "Idempotency-Key", "k-1")
	if first.status != http.StatusOK || again.status != http.StatusOK || first.body != again.body ||
		again.header.Get("Idempotency-Replayed") != "true" ||
		again.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("%+v, then %+v", first, again)
	}
	if v, err := s.ledger.Routing.Current(t.Context()); err != nil || v.Version != 3 {
		t.Errorf("the request was carried out twice: %d, %v", v.Version, err)
	}
	other := s.ask("operator", "POST", "/pause", `{"all":true,"reason":"x"}`, "Idempotency-Key",
		"k-1")
	if other.status != http.StatusUnprocessableEntity {
		t.Errorf("another request with the key: %+v", other)
	}
	if got := s.ask("admin", "POST", "/resume", `{"all":true,"reason":"x"}`, "Idempotency-Key",
		"k-1"); got.status != http.StatusOK {
		t.Errorf("the key of another user: %+v", got)
	}
}

// TestABudgetIsToppedUpOnce: a repeated key has no effect, the author is the authenticated user,
// and only an existing budget can be topped up.
func TestABudgetIsToppedUpOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.edit("budgets", func(d *control.Draft) (*control.Changed, error) {
		return d.Make(t.Context(), func() (*config.Document, error) {
			return config.ParseDocument("next.yaml", []byte(document+
				`limits: [{window: prepaid, unit: money, currency: GBP, tenant: "*"}]`))
		})
	})
	const path = "/budgets/top-ups"
	body := `{"tenant":"shop","amount":"250.00","key":"invoice-1","reason":"paid"}`
	first := s.ask("operator", "POST", path, body)
	again := s.ask("operator", "POST", path, body)
	if first.status != http.StatusOK || !strings.Contains(first.body, `"topped_up":"250.00"`) ||
		!strings.Contains(first.body, `"author":"olga"`) ||
		again.status != http.StatusOK || !strings.Contains(again.body, `"repeated":true`) {
		t.Errorf("%+v, then %+v", first, again)
	}
	for bad, status := range map[string]int{
		`{"tenant":"shop","amount":"3","key":"invoice-1","reason":"paid"}`: http.StatusConflict,
		`{"tenant":"shop","amount":"-251","reason":"typing"}`:              http.StatusConflict,
		`{"tenant":"*","amount":"3","reason":"paid"}`:                      http.StatusUnprocessableEntity,
		`{"tenant":"shop","amount":"0","reason":"paid"}`:                   http.StatusUnprocessableEntity,
		`{"tenant":"shop","amount":"1.0000001","reason":"paid"}`:           http.StatusUnprocessableEntity,
		`{"tenant":"shop","amount":"3"}`:                                   http.StatusUnprocessableEntity,
		`{"channel":"a","amount":"3","reason":"paid"}`:                     http.StatusNotFound,
	} {
		if got := s.ask("operator", "POST", path, bad); got.status != status {
			t.Errorf("%s: got %+v, want status %v", bad, got, status)
		}
	}
	if got := s.ask("viewer", "GET", "/budgets", ""); got.header.Get("ETag") != `"2"` ||
		!strings.Contains(got.body, `"left":"250.00"`) || !strings.Contains(got.body, `"level":"enough"`) {
		t.Errorf("got %+v", got)
	}
	if got := s.ask("viewer", "GET", path+"?tenant=shop", ""); strings.Count(got.body, `"amount"`) != 1 ||
		!strings.Contains(got.body, `"key":"invoice-1"`) || strings.Contains(got.body, `"paid"`) {
		t.Errorf("got %+v", got)
	}
	if got := s.ask("operator", "GET", path, ""); !strings.Contains(got.body, `"reason":"paid"`) {
		t.Errorf("got %+v", got)
	}
	// A request that the state did not allow may be repeated with its key.
	take := `{"tenant":"shop","amount":"-300","reason":"mistake"}`
	if got := s.ask("operator", "POST", path, take, "Idempotency-Key", "k"); got.status != http.StatusConflict {
		t.Errorf("got %+v, want status %v", got, http.StatusConflict)
	}
	s.ask("operator", "POST", path, `{"tenant":"shop","amount":"100","reason":"paid"}`)
	if got := s.ask("operator", "POST", path, take, "Idempotency-Key", "k"); got.status != http.StatusOK {
		t.Errorf("once it is allowed: %+v", got)
	}
}

func TestWhoAsksTooOftenWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{PerSecond: 1e-3, Burst: 2})
	for range 2 {
		if got := s.ask("viewer", "GET", "/whoami", ""); got.status != http.StatusOK {
			t.Fatalf("got %+v, want status %v", got, http.StatusOK)
		}
	}
	if got := s.ask("viewer", "GET", "/whoami", ""); got.status != http.StatusTooManyRequests ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
	if got := s.ask("operator", "GET", "/whoami", ""); got.status != http.StatusOK ||
		!strings.Contains(got.body, `"olga"`) {
		t.Errorf("another user: %+v", got)
	}
}

func TestWhatIsNotThereIsAProblem(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	if got := s.ask("admin", "DELETE", "/routing", ""); got.status != http.StatusMethodNotAllowed ||
		got.header.Get("Allow") != "GET, PUT" {
		t.Errorf("got %+v", got)
	}
	if got := s.ask("admin", "GET", "/nothing", ""); got.status != http.StatusNotFound ||
		got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %+v", got)
	}
}

// TestARequestThatCannotBeMeantIsRefused: with a status that the API's description allows.
func TestARequestThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	for name, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"U+0000 in a query":  {"GET", "/ambiguous?lane=%00", "", 422},
		"U+0000 in a path":   {"GET", "/messages/a%00b", "", 422},
		"U+0000 in a reason": {"POST", "/pause", `{"all":true,"reason":"\u0000"}`, 422},
		"an empty time":      {"GET", "/ambiguous?before=", "", 422},
		"an empty day":       {"GET", "/reports/daily?day=", "", 422},
		"an empty number":    {"GET", "/dead?limit=", "", 422},
		"no day":             {"GET", "/reports/range?to=yesterday", "", 422},
		"an empty name":      {"GET", "/ambiguous?lane=", "", 200},
		"every dimension": {
			"GET", "/reports/range?by=hour,route,channel,tenant,country,sender,currency,reason", "", 200,
		},
		"a cursor of nobody": {"GET", "/dead?cursor=a.b", "", 422},
		"nothing to settle": {
			"POST", "/ambiguous/none/settle", `{"as":"final","reason":"x"}`, 404,
		},
		"a method of nothing": {"PATCH", "/pause", `{"all":true,"reason":"x"}`, 405},
	} {
		if got := s.ask("admin", c.method, c.path, c.body, "Idempotency-Key",
			name); got.status != c.want {
			t.Errorf("%s: got %+v, want status %v", name, got, c.want)
		}
	}
	if got := s.ask("admin", "PATCH", "/resume", `{"all":true,"reason":"x"}`, "Idempotency-Key",
		"a method of nothing"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("an unknown path with a used key: %+v", got)
	}
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	for _, state := range []config.ChannelState{config.Draining, config.Enabled, config.Disabled} {
		s.edit(string(state), func(d *control.Draft) (*control.Changed, error) {
			return d.SetState(t.Context(), "b", state)
		})
	}
	var versions []int64
	for cursor := ""; ; {
		var got struct {
			Items []struct {
				Version int64 `json:"version"`
			} `json:"items"`
			Next string `json:"next"`
		}
		a := s.ask("viewer", "GET", "/routing/versions?limit=3&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
			t.Fatalf("got %+v, error %v", a, err)
		}
		for _, v := range got.Items {
			versions = append(versions, v.Version)
		}
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	for _, path := range []string{"/audit/routing", "/routing/versions/4"} {
		role := map[bool]string{true: "finance", false: "viewer"}[path == "/audit/routing"]
		if got := s.ask(role, "GET", path, "").body; !strings.Contains(got, `"login":"`) ||
			strings.Contains(got, `"login":""`) {
			t.Errorf("%s has no login: %s", path, got)
		}
	}
	if len(versions) != 4 || versions[0] != 4 || versions[3] != 1 {
		t.Errorf("got %v", versions)
	}
	if got := s.ask("viewer", "GET", "/dead?cursor=x", ""); got.status !=
		http.StatusUnprocessableEntity {
		t.Errorf("got %+v, want status %v", got, http.StatusUnprocessableEntity)
	}
	got := s.ask("viewer", "POST", "/messages/lookup", `{"number":"+447700900123","cursor":"x"}`)
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `"body.cursor"`) {
		t.Errorf("a cursor in a body: %+v", got)
	}
}

// stream opens the stream of the status with the token of a viewer, for a minute at most.
func (s *stage) stream() *bufio.Reader {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+api.Base+"/live", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.tokens["viewer"])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewReader(response.Body)
}

// showsVersion reads a stream until it shows a version of the routing.
func showsVersion(t *testing.T, lines *bufio.Reader, version string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") &&
			strings.Contains(line, `"routing_version":`+version+",") {
			return
		}
	}
}

// TestTheStreamShowsWhatAnotherProcessChanges without being asked again.
func TestTheStreamShowsWhatAnotherProcessChanges(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	lines := s.stream()
	showsVersion(t, lines, "1")
	s.edit("elsewhere", func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(t.Context(), "b", config.Draining)
	})
	showsVersion(t, lines, "2")
}

// TestTheStreamEndsWithItsToken: it is taken out of the file, or gets a role that may not read.
func TestTheStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"revoked": "", "another role": "vic sender $1\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, access.Rate{})
			lines := s.stream()
			showsVersion(t, lines, "1")
			tokens, err := os.ReadFile(s.file)
			if err != nil {
				t.Fatal(err)
			}
			changed := regexp.MustCompile(`vic viewer (.*)\n`).ReplaceAll(tokens, []byte(line))
			if bytes.Equal(changed, tokens) {
				t.Fatalf("no line was replaced: %s", tokens)
			}
			if err := os.WriteFile(s.file, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(lines); err != nil {
				t.Error(err)
			}
		})
	}
}

//go:generate go test -run ^TestTheDescriptionIsTheOneThatIsCheckedIn$ . -update

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// TestTheDescriptionIsTheOneThatIsCheckedIn: docs/openapi.json is what the code generates.
func TestTheDescriptionIsTheOneThatIsCheckedIn(t *testing.T) {
	t.Parallel()
	gate, err := access.New(access.Config{Embedded: "t"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{
		Gate: gate, Log: zerolog.Nop(), Intake: brokenIntake{},
	}).Handler())
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		server.URL+api.Base+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	var now bytes.Buffer
	if err := json.Indent(&now, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	now.WriteByte('\n')
	path := filepath.Join("..", "..", "..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(path, now.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(stored, now.Bytes()) {
		t.Errorf("docs/openapi.json is not what is served (%v): run make generate", err)
	}
}

// TestEachProblemOfADocumentIsNamed with its place.
func TestEachProblemOfADocumentIsNamed(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	got := decode[struct {
		Valid    bool
		Problems []string
	}](t, s.ask("viewer", "POST", "/routing/validate",
		`{"document":"channels: {a: {provider: nope}}\nroutes: []"}`))
	if got.Valid || len(got.Problems) != 2 ||
		!strings.HasPrefix(got.Problems[0], "document:1: channels.a.provider: ") ||
		!strings.HasPrefix(got.Problems[1], "document:2: routes: ") {
		t.Errorf("got %+v", got)
	}
}

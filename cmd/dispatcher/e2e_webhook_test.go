package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config/tier"
	"dispatcher/provider"
)

// callback is a carrier's request as the proxy received it.
type callback struct {
	method, path string // path after the public URL, with the query
	header       http.Header
	body         []byte
}

// proxy stands before the webhooks under another path, as in a real deployment, and keeps the
// requests.
type proxy struct {
	*httptest.Server
	target string

	mu   sync.Mutex
	seen map[string]callback // guarded by mu: the first of each channel
}

const proxyPath = "/hooks"

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{target: target, seen: map[string]callback{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c := callback{r.Method, strings.TrimPrefix(r.RequestURI, proxyPath), r.Header.Clone(), body}
		status, answer, err := p.pass(r, &c)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway) // the dispatcher does not run
			return
		}
		p.mu.Lock()
		channel := regexp.MustCompile(`^/receipts/([^?]*)`).FindStringSubmatch(c.path)
		if _, known := p.seen[channel[1]]; !known && status == http.StatusOK {
			p.seen[channel[1]] = c
		}
		p.mu.Unlock()
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) pass(from *http.Request, c *callback) (int, []byte, error) {
	r, err := http.NewRequestWithContext(from.Context(), c.method, p.target+c.path,
		bytes.NewReader(c.body))
	if err != nil {
		return 0, nil, err
	}
	r.Header = c.header.Clone()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// genuine returns one stored callback of each channel.
func (p *proxy) genuine() map[string]callback {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen)
}

// send sends a callback to the webhooks and returns the status.
func (p *proxy) send(t *testing.T, c callback) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	status, _, err := p.pass(r, &c)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// forged is the callback of an attacker who knows everything but the secrets.
func (c callback) forged() callback {
	c.header = http.Header{"Content-Type": c.header["Content-Type"]}
	address, query, _ := strings.Cut(c.path, "?")
	values, _ := url.ParseQuery(query)
	for name := range values {
		values[name] = []string{strings.Repeat("0", len(values.Get(name)))}
	}
	c.path = address + "?" + values.Encode()
	// AWS and Vonage's SMS API sign within the body.
	c.body = bytes.Replace(c.body, []byte(`"MessageId":"`), []byte(`"MessageId":"0`), 1)
	c.body = bytes.Replace(c.body, []byte("&sig="), []byte("&sig=0"), 1)
	return c
}

// stale is a Telnyx callback that was signed age ago.
func (c callback) stale(t *testing.T, seed string, age time.Duration) callback {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(seed)
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
	signature := ed25519.Sign(ed25519.NewKeyFromSeed(raw), append([]byte(at+"|"), c.body...))
	c.header = c.header.Clone()
	c.header.Set("Telnyx-Timestamp", at)
	c.header.Set("Telnyx-Signature-Ed25519", base64.StdEncoding.EncodeToString(signature))
	return c
}

// TestWebhooksBelieveTheProvidersAndNobodyElse runs a carrier of every kind, with receipts that
// come early, twice and through a proxy: each message ends once, as its carrier reports. Forged,
// stale, too long and replayed callbacks after that change nothing and are counted.
func TestWebhooksBelieveTheProvidersAndNobodyElse(t *testing.T) {
	t.Parallel()
	n := tier.Size(150, 3_000)
	var channels []channel
	for _, word := range sandbox.Providers() {
		channels = append(channels, channel{name: word, weight: "1"})
	}
	s := newStage(t,
		stageConfig{settings: map[string]string{
			"SEND_TIMEOUT": "20s", "POSTGRES_MAX_CONNS": tier.Size("3", "8"),
		}})
	var p *proxy
	carriers := s.startKindsBehind(channels, sandbox.Profile{
		Receipts: 1, Delivered: 0.9, Early: 0.1, Duplicates: 0.1, Latency: 5 * time.Millisecond,
		ReceiptDelay: 40 * time.Millisecond,
	}, func(address string) string { p = newProxy(t, address); return p.URL + proxyPath })
	running := s.run("dispatcher")
	defer s.logStates()
	s.publish("bulk", short("webhook", n))
	tier.Within(t, stepTimeout, "every message is at its end", func() bool {
		return s.count(`
			select count(*) from audit.messages where state in ('delivered',
			'undelivered')`) == int64(n)
	})
	s.checkEnds(carriers)
	lost := s.count(`
		select count(*) from audit.messages m where not exists (select from audit.receipts r
		where r.message_id = m.id)`)
	if lost != 0 {
		t.Errorf("%d messages without their receipt in the audit", lost)
	}

	before := s.receipts()
	genuine := p.genuine()
	forgeries, callers := 0, slices.Sorted(maps.Keys(genuine))
	if len(callers) != len(channels)-1 { // SMPP does not call webhooks
		t.Fatalf("callbacks of %v", callers)
	}
	for _, name := range callers {
		c := genuine[name]
		if got := p.send(t, c); got != http.StatusOK {
			t.Errorf("%s: got status %d for a replay", name, got)
		}
		if got := p.send(t, c.forged()); got != http.StatusForbidden {
			t.Errorf("%s: got status %d for a forged callback", name, got)
		} else {
			forgeries++
		}
		long := c
		long.method, long.body = http.MethodPost, bytes.Repeat([]byte(" "), provider.MaxCallback+1)
		if got := p.send(t, long); got != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got status %d for a too long callback", name, got)
		}
	}
	old := genuine["telnyx"].stale(t, s.read("accounts/telnyx.signing_seed"), 10*time.Minute)
	if got := p.send(t, old); got != http.StatusServiceUnavailable {
		t.Errorf("got status %d for a stale callback", got)
	}
	got := p.send(t, callback{method: http.MethodPost, path: "/receipts/nobody"})
	if got != http.StatusServiceUnavailable {
		t.Errorf("got status %d for an unknown channel", got)
	}
	if after := s.receipts(); after != before {
		t.Errorf("the stored receipts changed from %s to %s", before, after)
	}
	_, metrics := running.get(t, "/metrics")
	for verdict, want := range map[string]int{
		"forged": forgeries, "stale": 1, "too_large": len(callers), "not_yet_known_channel": 1,
	} {
		if got := callbacksOf(metrics, verdict); got != want {
			t.Errorf("got %d callbacks counted as %s, want %d", got, verdict, want)
		}
	}
	if callbacksOf(metrics, "replayed") == 0 ||
		callbacksOf(metrics, "booked") < n-n/len(channels)-n/10 {
		t.Errorf("got %d replayed callbacks and %d stored ones", callbacksOf(metrics, "replayed"),
			callbacksOf(metrics, "booked"))
	}
}

// checkEnds compares the final states of messages with the receipts of their carriers.
func (s *stage) checkEnds(carriers *sandbox.Sandbox) {
	s.t.Helper()
	for _, c := range carriers.Counts() {
		for state, want := range map[string]int{
			"delivered": c.Delivered, "undelivered": c.Undelivered,
		} {
			got := s.count(`select count(*) from audit.messages m
				join audit.attempts a on a.message_id = m.id
				where a.channel = $1 and a.outcome in ('accepted', 'unknown')
				and m.state = $2`, c.Channel, state)
			if got != int64(want) || c.Unread > 0 || c.Accepted == 0 {
				s.t.Errorf("%s: got %d messages %s in the ledger, the carrier has %+v",
					c.Channel, got, state, c)
			}
		}
	}
}

// receipts returns a digest of everything that receipts change.
func (s *stage) receipts() string {
	s.t.Helper()
	rows := query(s.t, s.postgres, pgx.RowTo[string], `
		select md5(string_agg(line, e'\n' order by line)) from (
			select r::text as line from audit.receipts r union all
			select m.id || m.state || m.finished_at from audit.messages m
			union all select a::text from audit.attempts a) lines`)
	return rows[0]
}

// callbacksOf sums the callbacks with a verdict over all channels.
func callbacksOf(metrics, verdict string) (sum int) {
	form := regexp.MustCompile(`(?m)^dispatcher_receive_callbacks_total\{[^}]*verdict="` +
		regexp.QuoteMeta(verdict) + `"[^}]*\} (\d+)$`)
	for _, m := range form.FindAllStringSubmatch(metrics, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

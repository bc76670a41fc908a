package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/web"
)

func TestMain(m *testing.M) {
	tier.Parallel(6)
	goleak.VerifyTestMain(m)
}

// webhooks receives the callbacks of all channels and passes them to their adapters.
type webhooks struct {
	*httptest.Server

	mu       sync.Mutex
	channels map[string]provider.Channel   // guarded by mu
	receipts map[string][]provider.Receipt // guarded by mu
	inbound  map[string][]provider.Inbound // guarded by mu
	refused  []error                       // guarded by mu
}

func listen(t *testing.T) *webhooks {
	t.Helper()
	e := &webhooks{
		channels: map[string]provider.Channel{},
		receipts: map[string][]provider.Receipt{},
		inbound:  map[string][]provider.Inbound{},
	}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/receipts/")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		e.mu.Lock()
		listener, ok := e.channels[name].(provider.CallbackReader)
		e.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		receipts, err := listener.ReadCallback(
			&provider.Callback{
				Method: r.Method,
				URL:    e.URL + r.RequestURI,
				Header: r.Header,
				Body:   body,
				At:     time.Now(),
			},
		)
		if err != nil {
			e.mu.Lock()
			e.refused = append(e.refused, fmt.Errorf("%s: %w", name, err))
			e.mu.Unlock()
			w.WriteHeader(http.StatusForbidden)
			return
		}
		for _, receipt := range receipts.Receipts {
			e.take(name, receipt)
		}
		for _, message := range receipts.Inbound {
			e.takeInbound(name, message)
		}
		_, _ = io.WriteString(w, receipts.Answer)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *webhooks) take(channel string, r provider.Receipt) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receipts[channel] = append(e.receipts[channel], r)
	return true
}

func (e *webhooks) takeInbound(channel string, in provider.Inbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inbound[channel] = append(e.inbound[channel], in)
}

// subscribers returns the messages that came by a channel.
func (e *webhooks) subscribers(channel string) []provider.Inbound {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.inbound[channel])
}

// planned counts the messages of a channel that receipts reported as delivered, and not.
func (e *webhooks) planned(channel string) (counts [2]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[string]bool{}
	for _, r := range e.receipts[channel] {
		if id := r.Reference + "/" + r.Key; !seen[id] && r.State.Final() {
			seen[id] = true
			counts[one(r.State == provider.Undelivered)]++
		}
	}
	return counts
}

// open opens every channel of a written routing document.
func (e *webhooks) open(t *testing.T, text []byte) map[string]provider.Channel {
	t.Helper()
	doc, err := config.ParseRouting("sandbox.yaml", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	opened := map[string]provider.Channel{}
	for _, c := range doc.Channels {
		channel, err := e.channel(&c)
		if err != nil {
			t.Fatalf("channel %s: %v", c.Name, err)
		}
		t.Cleanup(func() { _ = channel.Close(context.Background()) })
		opened[c.Name] = channel
		e.mu.Lock()
		e.channels[c.Name] = channel
		e.mu.Unlock()
	}
	return opened
}

func (e *webhooks) channel(c *config.Channel) (provider.Channel, error) {
	if c.Provider == "smpp" {
		cfg, err := smpp.ParseSettings(c.Settings, os.ReadFile)
		if err != nil {
			return nil, err
		}
		cfg.OnReceipt = func(r provider.Receipt, answer func(taken bool)) {
			answer(e.take(c.Name, r))
		}
		cfg.OnInbound = func(in provider.Inbound) bool { e.takeInbound(c.Name, in); return true }
		return smpp.New(cfg)
	}
	return openers[c.Provider](c.Settings,
		web.Environment{ReadFile: os.ReadFile, Callback: e.URL + "/receipts/" + c.Name})
}

// submit sends n messages over a channel, one after the other, and counts the outcomes.
func submit(t *testing.T, channel provider.Channel, n int) map[provider.Outcome]int {
	t.Helper()
	outcomes := map[provider.Outcome]int{}
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		r := channel.Send(ctx, provider.Submission{
			ID: fmt.Sprintf(
				"m-%d",
				i,
			), Attempt: 1, Key: fmt.Sprintf("%032x", i+1), To: fmt.Sprintf("+4477009%05d", i),
			From: "Sandbox", Text: "Hello",
			Validity: time.Now().Add(time.Hour),
		})
		cancel()
		outcomes[r.Outcome]++
		if r.Outcome == provider.Unknown {
			t.Fatalf("message %d: %s %v", i, r.Code, r.Err)
		}
	}
	return outcomes
}

// TestEveryCarrierWorksWithItsWrittenChannel: the routing document of a sandbox opens, its accounts
// are accepted, and outcomes are those of the profile. Every receipt comes, including early and
// repeated ones, signed so that the adapter accepts it.
func TestEveryCarrierWorksWithItsWrittenChannel(t *testing.T) {
	t.Parallel()
	e := listen(t)
	profile := Profile{
		Reject:       0.1,
		Refuse:       0.1,
		Throttle:     0.1,
		Receipts:     0.9,
		Delivered:    0.8,
		Early:        0.2,
		Duplicates:   0.2,
		ReceiptDelay: 10 * time.Millisecond,
		Latency:      time.Millisecond,
	}
	s, err := Start(
		Config{
			Plan:     Each(Providers(), profile),
			Folder:   filepath.Join(t.TempDir(), "new"),
			Receipts: e.URL,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	text, err := s.Routing()
	if err != nil {
		t.Fatal(err)
	}
	channels := e.open(t, text)
	for _, count := range s.Counts() {
		t.Run(count.Channel, func(t *testing.T) {
			t.Parallel()
			channel := channels[count.Channel]
			tier.Eventually(t, "ready", func() bool { ok, _ := channel.Ready(); return ok })
			const n = 100
			outcomes := submit(t, channel, n)
			got := s.countOf(count.Channel)
			if got.Submitted != n || got.Unread > 0 ||
				got.Accepted != outcomes[provider.Accepted] ||
				got.Rejected != outcomes[provider.Rejected] ||
				got.Refused != outcomes[provider.Refused] ||
				got.Throttled != outcomes[provider.Throttled] {
				t.Errorf("outcomes %v, the carrier counted %+v", outcomes, got)
			}
			if got.Accepted < 60 || got.Rejected < 5 || got.Refused < 5 || got.Throttled < 5 {
				t.Errorf("%+v is not the profile", got)
			}
			tier.Eventually(
				t,
				"receipts",
				func() bool {
					return e.planned(count.Channel) == [2]int{got.Delivered, got.Undelivered}
				},
			)
		})
	}
	t.Cleanup(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, err := range e.refused {
			t.Errorf("a callback was refused: %v", err)
		}
	})
}

func (s *Sandbox) countOf(channel string) Count {
	for _, c := range s.Counts() {
		if c.Channel == channel {
			return c
		}
	}
	return Count{}
}

// TestASandboxThatIsStartedAgainKnowsItsAccountsAndGivesNewIDs: a running dispatcher continues to
// work with it, and no id belongs to two messages.
func TestASandboxThatIsStartedAgainKnowsItsAccountsAndGivesNewIDs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	profile := Profile{}
	seen := map[string]bool{}
	var documents []string
	for run := range 2 {
		s, err := Start(
			Config{
				Plan:     Each(Providers(), profile),
				Folder:   folder,
				Receipts: "http://127.0.0.1:1",
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.Routing()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Endpoints() {
			text = []byte(strings.ReplaceAll(string(text), p.Address, "ADDRESS"))
		}
		documents = append(documents, string(text))
		text, _ = s.Routing()
		for name, channel := range (&webhooks{
			Server:   &httptest.Server{URL: "http://127.0.0.1:1"},
			channels: map[string]provider.Channel{}, receipts: map[string][]provider.Receipt{},
		}).
			open(t, text) {
			tier.Eventually(t, "ready", func() bool { ok, _ := channel.Ready(); return ok })
			r := channel.Send(
				t.Context(),
				provider.Submission{
					ID:      "m",
					Attempt: 1,
					Key:     fmt.Sprintf("%032x", run),
					To:      "+447700900123",
					From:    "Sandbox",
					Text:    "Hello",
				},
			)
			if r.Outcome != provider.Accepted || seen[name+r.Reference] {
				t.Errorf("%s: %v %q %v", name, r.Outcome, r.Reference, r.Err)
			}
			seen[name+r.Reference] = true
			_ = channel.Close(t.Context())
		}
		s.Close()
	}
	if documents[0] != documents[1] {
		t.Errorf("the accounts differ:\n%s\n%s", documents[0], documents[1])
	}
}

// TestThePageShowsTheCounts: as HTML and as JSON.
func TestThePageShowsTheCounts(t *testing.T) {
	t.Parallel()
	s, err := Start(Config{Plan: Each([]string{"smpp"}, Profile{}), Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	page, err := s.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Close() })
	if text := get(t, page.URL()+"/"); !strings.Contains(text, s.Endpoints()[0].Address) ||
		strings.Contains(text, "<no value>") {
		t.Errorf("page %s", text)
	}
	var status struct{ Carriers []Count }
	if err := json.Unmarshal([]byte(get(t, page.URL()+"/status.json")), &status); err != nil ||
		len(status.Carriers) != 1 ||
		status.Carriers[0].Channel != "smpp" {
		t.Errorf("status %+v, %v", status, err)
	}
}

func get(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package receive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/provider"
)

// scriptedListener accepts callbacks with the right secret, and keeps all callbacks.
type scriptedListener struct {
	read func(c *provider.Callback) (provider.CallbackContent, error)

	mu        sync.Mutex
	callbacks []provider.Callback // guarded by mu
}

func (l *scriptedListener) ReadCallback(c *provider.Callback) (provider.CallbackContent, error) {
	l.mu.Lock()
	l.callbacks = append(l.callbacks, *c)
	l.mu.Unlock()
	if l.read != nil {
		return l.read(c)
	}
	switch c.Get("Secret") {
	case "right":
		return provider.CallbackContent{
			Receipts: []provider.Receipt{{
				Reference: string(c.Body), State: provider.Delivered,
				At: c.At,
			}},
			ReplayID: c.Get("Nonce"), Answer: "content", AnswerType: "text/plain",
		}, nil
	case "old":
		return provider.CallbackContent{}, fmt.Errorf("clock: %w", provider.ErrStale)
	case "odd":
		return provider.CallbackContent{}, fmt.Errorf("json: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{}, provider.ErrForged
}

// scriptedRecorder keeps what was stored, or fails.
type scriptedRecorder struct {
	book func(ctx context.Context) error

	mu    sync.Mutex
	noted []string // guarded by mu: channel and reference
}

func (b *scriptedRecorder) Record(
	ctx context.Context, channel string, content *provider.CallbackContent,
) error {
	if b.book != nil {
		if err := b.book(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range content.Receipts {
		b.noted = append(b.noted, channel+" "+r.Reference)
	}
	return nil
}

func (b *scriptedRecorder) list() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.noted...)
}

// oneListener has a channel "a", and a channel "broken" whose settings cannot be used.
type oneListener struct{ listener provider.CallbackReader }

func (o oneListener) Listener(channel string) (provider.CallbackReader, bool) {
	switch channel {
	case "a":
		return o.listener, true
	case "broken":
		return nil, true
	}
	return nil, false
}

// rig is a running listener.
type rig struct {
	t        testing.TB
	webhooks *Webhooks
	listener *scriptedListener
	booker   *scriptedRecorder
	registry *prometheus.Registry
	client   *http.Client
}

func setup(t testing.TB, change func(*WebhookConfig)) *rig {
	t.Helper()
	r := &rig{
		t: t, listener: &scriptedListener{}, booker: &scriptedRecorder{},
		registry: prometheus.NewRegistry(),
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	cfg := WebhookConfig{
		Address: "127.0.0.1:0", Channels: oneListener{r.listener}, Recorder: r.booker,
		Registry: r.registry,
		Trouble:  func(string, error) {},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.webhooks, err = ListenWebhooks(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	r.webhooks.Serve()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		if err := r.webhooks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// call returns the status and the body of the answer. Headers are given as "Name: value".
func (r *rig) call(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.webhooks.URL()+path,
		strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Add(name, value)
	}
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (r *rig) count(channel string, v verdict) int {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "dispatcher_receive_callbacks_total" &&
				labels["channel"] == channel && labels["verdict"] == string(v) {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func TestOnlyGenuineCallbacksAreStored(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", provider.MaxCallback+1)
	for _, c := range []struct {
		name, method, path, body, header string
		status                           int
		channel                          string
		verdict                          verdict
	}{
		{"genuine", "POST", "/receipts/a", "r-1", "Secret: right", 200, "a", recorded},
		{"genuine by GET", "GET", "/receipts/a?id=1", "", "Secret: right", 200, "a", recorded},
		{"forged", "POST", "/receipts/a", "r-1", "Secret: wrong", 403, "a", forged},
		{"unsigned", "POST", "/receipts/a", "r-1", "X: y", 403, "a", forged},
		{"stale", "POST", "/receipts/a", "r-1", "Secret: old", 503, "a", stale},
		{"malformed", "POST", "/receipts/a", "r-1", "Secret: odd", 400, "a", malformed},
		{"too long", "POST", "/receipts/a", long, "Secret: right", 413, "a", tooLarge},
		{"unknown channel", "POST", "/receipts/b", "r-1", "Secret: right", 503, "", notYet},
		{"below a channel", "POST", "/receipts/a/b", "r-1", "Secret: right", 404, "", noChannel},
		{"no channel", "POST", "/receipts/", "r-1", "Secret: right", 404, "", noChannel},
		{"elsewhere", "GET", "/metrics", "", "Secret: right", 404, "", noChannel},
		{"wrong method", "PUT", "/receipts/a", "r-1", "Secret: right", 405, "a", badMethod},
		{
			"channel without usable settings", "POST", "/receipts/broken", "r-1", "Secret: right", 503,
			"broken", unusable,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, nil)
			status, answer := r.call(c.method, c.path, c.body, c.header)
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if n := r.count(c.channel, c.verdict); n != 1 {
				t.Errorf("%d callbacks of %q counted as %s", n, c.channel, c.verdict)
			}
			if c.verdict == recorded {
				if answer != "content" || len(r.booker.list()) != 1 {
					t.Errorf("answered %q, stored %v", answer, r.booker.list())
				}
			} else if got := r.booker.list(); len(got) > 0 {
				t.Errorf("stored %v", got)
			}
		})
	}
}

// TestABodyWithoutLengthIsCappedToo: a chunked body has no announced length.
func TestABodyWithoutLengthIsCappedToo(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		r.webhooks.Callback("a"), io.LimitReader(forever{}, provider.MaxCallback+1))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Secret", "right")
	response, err := r.client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil && response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", response.StatusCode)
	}
	if r.count("a", tooLarge) != 1 || len(r.booker.list()) > 0 {
		t.Errorf("%d counted, stored %d", r.count("a", tooLarge), len(r.booker.list()))
	}
}

// forever is an endless body.
type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }

// TestACallbackIsShownAsTheProviderSentIt: the URL is the public one with the path and query of the
// request, whatever the Host header is, and the longest allowed body is complete.
func TestACallbackIsShownAsTheProviderSentIt(t *testing.T) {
	t.Parallel()
	r := setup(t, func(c *WebhookConfig) { c.PublicURL = "https://sms.example.com/hooks" })
	body := bytes.Repeat([]byte("y"), provider.MaxCallback)
	path := "/receipts/a?b=%7E+x&a=%2f&empty"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.webhooks.URL()+path,
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example.net"
	request.Header.Set("Secret", "right")
	request.Header.Set("X-Forwarded-Host", "evil.example.net")
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	callbacks := r.listener.callbacks[0]
	if callbacks.URL != "https://sms.example.com/hooks"+path {
		t.Errorf("URL %q", callbacks.URL)
	}
	if !bytes.Equal(callbacks.Body, body) || callbacks.Method != http.MethodPost || callbacks.Certificate ||
		time.Since(callbacks.At) > time.Minute {
		t.Errorf("%d bytes by %s at %v, certificate %v", len(callbacks.Body), callbacks.Method, callbacks.At,
			callbacks.Certificate)
	}
	if got := r.webhooks.Callback("a"); got != "https://sms.example.com/hooks/receipts/a" {
		t.Errorf("got answer %q to the provider", got)
	}
}

func TestAReplayedCallbackIsAnsweredAsTheFirstAndChangesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	for range 3 {
		if status, answer := r.call("POST", "/receipts/a", "r-1", "Secret: right",
			"Nonce: 1"); status != 200 || answer != "content" {
			t.Fatalf("answered %d %q", status, answer)
		}
	}
	r.call("POST", "/receipts/a", "r-1", "Secret: right", "Nonce: 2")
	if diff := cmp.Diff([]string{"a r-1", "a r-1"}, r.booker.list()); diff != "" {
		t.Error(diff)
	}
	if r.count("a", replayed) != 2 || r.count("a", recorded) != 2 {
		t.Errorf("%d replayed, %d stored", r.count("a", replayed), r.count("a", recorded))
	}
}

// TestWhatCouldNotBeStoredIsAskedForAgain: the answer is 503, and the provider's second call is not
// taken for a replay.
func TestWhatCouldNotBeStoredIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	var away atomic.Bool
	away.Store(true)
	r.booker.book = func(context.Context) error {
		if away.Load() {
			return errors.New("database away")
		}
		return nil
	}
	if status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: right",
		"Nonce: 1"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	away.Store(false)
	if status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: right",
		"Nonce: 1"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if len(r.booker.list()) != 1 || r.count("a", unrecorded) != 1 || r.count("a", recorded) != 1 {
		t.Errorf("stored %v", r.booker.list())
	}
}

// TestASlowDatabaseIsNotWaitedForLong: storing has a deadline that is shorter than the providers'.
func TestASlowDatabaseIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	r.booker.book = func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > recordTimeout {
			t.Error("no deadline")
		}
		<-ctx.Done()
		return ctx.Err()
	}
	if status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: "+
		"right"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}

// TestTheSameCallbackTwiceAtOnceIsStoredOnce: while the first is being stored, the second is asked
// to come again.
func TestTheSameCallbackTwiceAtOnceIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	r.booker.book = func(context.Context) error { close(entered); <-release; return nil }
	first := make(chan int)
	go func() {
		status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: right", "Nonce: 1")
		first <- status
	}()
	<-entered
	if status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: right",
		"Nonce: 1"); status != http.StatusServiceUnavailable {
		t.Errorf("got status %d for the second call", status)
	}
	close(release)
	if status := <-first; status != http.StatusOK {
		t.Errorf("got status %d for the first call", status)
	}
	if status, _ := r.call("POST", "/receipts/a", "r-1", "Secret: right",
		"Nonce: 1"); status != http.StatusOK || len(r.booker.list()) != 1 {
		t.Errorf("got status %d for the third call, stored %v", status, r.booker.list())
	}
}

// TestACallerThatHangsUpUndoesNothing: what is being stored is stored.
func TestACallerThatHangsUpUndoesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	entered, gone := make(chan struct{}), make(chan struct{})
	r.booker.book = func(ctx context.Context) error {
		close(entered)
		<-gone
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp",
		strings.TrimPrefix(r.webhooks.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /receipts/a HTTP/1.1\r\nHost: x\r\nSecret: right\r\nContent-Length: "+
		"3\r\n\r\nr-1")
	<-entered
	_ = conn.Close()
	close(gone)
	if err := r.webhooks.Close(t.Context()); err != nil { // it waits for the callback
		t.Fatal(err)
	}
	if got := r.booker.list(); len(got) != 1 {
		t.Errorf("stored %v", got)
	}
}

func TestAGenuineCallbackWithNothingInItIsFine(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	r.listener.read = func(*provider.Callback) (provider.CallbackContent, error) {
		return provider.CallbackContent{}, nil
	}
	if status, body := r.call("POST", "/receipts/a", "event"); status != 200 || body != "" {
		t.Errorf("answered %d %q", status, body)
	}
	if r.count("a", empty) != 1 || len(r.booker.list()) > 0 {
		t.Errorf("stored %v", r.booker.list())
	}
}

// askedListener has a provider that asks first whether its calls are wanted.
type askedListener struct{ away atomic.Bool }

func (*askedListener) ReadCallback(*provider.Callback) (provider.CallbackContent, error) {
	return provider.CallbackContent{}, nil
}

func (l *askedListener) Confirm(_ context.Context, c *provider.Callback) (bool, error) {
	if l.away.Load() {
		return false, errors.New("away")
	}
	return string(c.Body) == "question", nil
}

// TestAProviderThatAsksGetsAConfirmation: it gets the confirmation, and asks again if that failed.
func TestAProviderThatAsksGetsAConfirmation(t *testing.T) {
	t.Parallel()
	l := &askedListener{}
	r := setup(t, func(c *WebhookConfig) { c.Channels = oneListener{l} })
	for _, c := range []struct {
		body    string
		away    bool
		status  int
		verdict verdict
	}{{"question", false, 200, confirmed}, {"event", false, 200, empty}, {
		"question", true, 503,
		unconfirmed,
	}} {
		l.away.Store(c.away)
		if status, _ := r.call("POST", "/receipts/a", c.body); status != c.status || r.count("a",
			c.verdict) != 1 {
			t.Errorf("%s is answered %d, %d counted as %s", c.body, status, r.count("a", c.verdict),
				c.verdict)
		}
	}
}

// TestLongBodiesBeyondTheBoundAreAskedForAgain: strangers cannot fill the memory with endless
// bodies.
func TestLongBodiesBeyondTheBoundAreAskedForAgain(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	for range maxLarge {
		r.webhooks.large <- struct{}{}
	}
	long := strings.Repeat("x", smallBody)
	if status, _ := r.call("POST", "/receipts/a", long, "Secret: "+
		"right"); status != http.StatusServiceUnavailable {
		t.Errorf("got status %d for a long body", status)
	}
	if status, _ := r.call("POST", "/receipts/a", "short", "Secret: "+
		"right"); status != http.StatusOK {
		t.Errorf("got status %d for a short body", status)
	}
	<-r.webhooks.large
	if status, _ := r.call("POST", "/receipts/a", long, "Secret: right"); status != http.StatusOK ||
		len(r.webhooks.large) != maxLarge-1 {
		t.Errorf("status %d with room; %d long ones held", status, len(r.webhooks.large))
	}
}

// TestAnAddressInUseIsNamed: with the setting that changes it.
func TestAnAddressInUseIsNamed(t *testing.T) {
	t.Parallel()
	r := setup(t, nil)
	_, err := ListenWebhooks(t.Context(),
		WebhookConfig{
			Address:  strings.TrimPrefix(r.webhooks.URL(), "http://"),
			Registry: prometheus.NewRegistry(),
		})
	if err == nil || !strings.Contains(err.Error(), "DISPATCHER_RECEIPTS_LISTEN") {
		t.Errorf("error %v", err)
	}
}

package statushook_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dispatcher/cmd/dispatcher/internal/statushook"
	"dispatcher/config"
	"dispatcher/config/tier"
)

func TestMain(m *testing.M) {
	tier.Parallel(6)
	goleak.VerifyTestMain(m)
}

const (
	topic       = "sms.status"
	testTimeout = tier.LongestWait
)

var secrets = [][]byte{
	[]byte("the first secret of all the tests"), []byte("the one before that was in use"),
}

// receiver is a service that receives events, and answers as its test says.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	taken   []string // guarded by mu: "id seq" of each event that was answered with 2xx
	ids     []string // guarded by mu: webhook-id of each call
	faults  []string // guarded by mu
	answer  func(call int, event string) int
	changed chan struct{} // guarded by mu; closed at each call
}

func newReceiver(t *testing.T, answer func(call int, event string) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer, changed: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func ok(int, string) int { return http.StatusNoContent }

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var e struct {
		ID  string `json:"id"`
		Seq int    `json:"seq"`
	}
	fault := ""
	if err := json.Unmarshal(body, &e); err != nil {
		fault = err.Error()
	}
	if why := verify(request.Header, body); why != "" {
		fault = why
	}
	what := fmt.Sprintf("%s %d", e.ID, e.Seq)
	r.mu.Lock()
	call := len(r.ids)
	r.ids = append(r.ids, request.Header.Get("webhook-id"))
	if fault != "" {
		r.faults = append(r.faults, fault)
	}
	r.mu.Unlock()
	status := r.answer(call, what)
	r.mu.Lock()
	defer r.mu.Unlock()
	if status < 300 {
		r.taken = append(r.taken, what)
	}
	close(r.changed)
	r.changed = make(chan struct{})
	if status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(status)
}

// verify checks the signatures as a receiver with one of the secrets does.
func verify(h http.Header, body []byte) string {
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return "the timestamp is " + h.Get("webhook-timestamp")
	}
	for i, signature := range strings.Fields(h.Get("webhook-signature")) {
		mac := hmac.New(sha256.New, secrets[i])
		fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), at, body)
		if signature != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			return "signature " + signature + " is not valid"
		}
	}
	if n := len(strings.Fields(h.Get("webhook-signature"))); n != len(secrets) {
		return fmt.Sprintf("%d signatures", n)
	}
	return ""
}

// wait waits until enough returns true.
func (r *receiver) wait(t *testing.T, enough func() bool) {
	t.Helper()
	over := time.After(testTimeout)
	for {
		r.mu.Lock()
		done, changed := enough(), r.changed
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-over:
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("got events %v in %d calls", r.taken, len(r.ids))
		}
	}
}

func (r *receiver) has(n int) func() bool { return func() bool { return len(r.taken) >= n } }

// check expects the events of each message in order.
func (r *receiver) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]int{}
	for _, e := range r.taken {
		id, number, _ := strings.Cut(e, " ")
		seq, err := strconv.Atoi(number)
		if err != nil || seq < last[id] {
			t.Errorf("%s was received after event %d of the message", e, last[id])
		}
		last[id] = seq
	}
	if len(r.faults) > 0 {
		t.Errorf("got %v", r.faults)
	}
}

// stage is a broker with events.
type stage struct {
	t        *testing.T
	cluster  *kfake.Cluster
	client   *kgo.Client
	registry *prometheus.Registry
	giveUp   time.Duration
	timeout  time.Duration // of a call; 0 for one that no call takes

	mu      sync.Mutex
	hooks   []config.StatusWebhook // guarded by mu: content of the file
	trouble error                  // guarded by mu: error in the file
	log     strings.Builder        // guarded by mu
}

// change replaces the webhooks of the file, or breaks the file.
func (s *stage) change(trouble error, hooks ...config.StatusWebhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks, s.trouble = hooks, trouble
}

func (s *stage) read() ([]config.StatusWebhook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks, s.trouble
}

// Write keeps the log.
func (s *stage) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// awaitLog waits until the log contains a text this many times.
func (s *stage) awaitLog(what string, times int) {
	s.t.Helper()
	var text string
	defer func() {
		if s.t.Failed() {
			s.t.Log(text)
		}
	}()
	tier.Within(s.t, testTimeout, fmt.Sprintf("the log has %q %d times", what, times), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		text = s.log.String()
		return strings.Count(text, what) >= times
	})
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &stage{t: t, cluster: c, client: client}
}

// publish publishes an event of a message, which happened some time ago.
func (s *stage) publish(id, tenant, state string, seq int, ago time.Duration) {
	s.t.Helper()
	value := fmt.Sprintf(`{"id":%q,"state":%q,"seq":%d,"tenant":%q}`, id, state, seq, tenant)
	if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{
		Topic: topic, Key: []byte(id), Value: []byte(value), Timestamp: time.Now().Add(-ago),
	}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// run sends the events of webhooks until the returned function is called.
func (s *stage) run(hooks ...config.StatusWebhook) (stop func()) {
	s.t.Helper()
	s.registry = prometheus.NewRegistry()
	s.change(nil, hooks...)
	sender := statushook.New(statushook.Config{
		Webhooks: hooks, Read: s.read, ReadEvery: 20 * time.Millisecond,
		Client: []kgo.Opt{kgo.SeedBrokers(s.cluster.ListenAddrs()...)},
		Group:  "dispatcher", Topic: topic, Registry: s.registry, Log: zerolog.New(s),
		Timeout: cmp.Or(s.timeout, testTimeout), Pause: 5 * time.Millisecond, GiveUp: s.giveUp,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sender.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				s.t.Error(err)
			}
		})
	}
	s.t.Cleanup(stop)
	return stop
}

func hook(name, tenant string, r *receiver) config.StatusWebhook {
	return config.StatusWebhook{
		Name: name, Tenant: tenant, URL: r.URL, AllowPrivate: true, Secrets: secrets,
		MaxAge: time.Hour,
	}
}

func TestEachTenantGetsItsEventsSignedAndInOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	shop, rest := newReceiver(t, ok), newReceiver(t, ok)
	of := hook("shop", "shop", shop)
	of.States = []string{"accepted", "delivered"}
	s.run(of, hook("rest", "", rest))
	for i := range 10 {
		s.publish(fmt.Sprint("m-", i), "shop", "received", 1, 0)
		s.publish(fmt.Sprint("m-", i), "shop", "accepted", 2, 0)
		s.publish(fmt.Sprint("m-", i), "shop", "delivered", 3, 0)
		s.publish(fmt.Sprint("other-", i), []string{"", "bank"}[i%2], "accepted", 1, 0)
	}
	shop.wait(t, shop.has(20))
	rest.wait(t, rest.has(10))
	shop.check(t)
	rest.check(t)
	for _, e := range append(shop.taken, rest.taken...) {
		if strings.HasPrefix(e, "m-") && strings.HasSuffix(e, " 1") {
			t.Errorf("%s is of a state that was not asked for", e)
		}
	}
	if len(shop.taken) != 20 || len(rest.taken) != 10 {
		t.Errorf("%v, %v", shop.taken, rest.taken)
	}
}

// TestAReceiverThatFailsGetsTheEventAgain: under the same webhook-id, and before the events that
// follow it.
func TestAReceiverThatFailsGetsTheEventAgain(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{
		"an error": http.StatusInternalServerError, "a redirect": http.StatusFound,
		"a wrong secret": http.StatusUnauthorized,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			r := newReceiver(t, func(call int, _ string) int {
				if call < 3 {
					return status
				}
				return http.StatusOK
			})
			s.run(hook("shop", "", r))
			s.publish("m", "", "accepted", 1, 0)
			s.publish("m", "", "delivered", 2, 0)
			r.wait(t, r.has(2))
			r.check(t)
			if !slices.Equal(r.taken, []string{"m 1", "m 2"}) || r.ids[0] != r.ids[3] ||
				r.ids[3] == r.ids[4] {
				t.Errorf("%v, ids %v", r.taken, r.ids)
			}
		})
	}
}

func TestASlowReceiverGetsTheEventAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.timeout = time.Second
	release := make(chan struct{})
	r := newReceiver(t, func(call int, _ string) int {
		if call == 0 {
			<-release
		}
		return http.StatusOK
	})
	s.run(hook("shop", "", r))
	s.publish("m", "", "accepted", 1, 0)
	r.wait(t, r.has(1))
	close(release)
	r.check(t)
}

// TestAReceiverThatIsAwayDelaysNoOther: it gets its events after a restart.
func TestAReceiverThatIsAwayDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var back atomic.Bool
	dead := newReceiver(t, func(int, string) int {
		if !back.Load() {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	healthy := newReceiver(t, ok)
	stop := s.run(hook("dead", "shop", dead), hook("alive", "", healthy))
	for i := range 20 {
		s.publish(fmt.Sprint("s-", i), "shop", "accepted", 1, 0)
		s.publish(fmt.Sprint("m-", i), "", "accepted", 1, 0)
	}
	healthy.wait(t, healthy.has(20))
	s.until("alive", "delivered", 20) // otherwise the stop would end calls in progress
	dead.wait(t, func() bool { return len(dead.ids) > 0 })
	stop()
	back.Store(true)
	s.run(hook("dead", "shop", dead), hook("alive", "", healthy))
	dead.wait(t, dead.has(20))
	dead.check(t)
	s.publish("last", "", "accepted", 1, 0)
	healthy.wait(t, func() bool { return slices.Contains(healthy.taken, "last 1") })
	if len(healthy.taken) != 21 {
		t.Errorf("acknowledged events came again after a clean stop: %v", healthy.taken)
	}
}

// TestARefusedEventIsLeftOut: it does not delay those that follow it, nor does one that is too old.
func TestARefusedEventIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := newReceiver(t, func(_ int, event string) int {
		if event == "m 1" {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	})
	s.publish("m", "", "accepted", 1, 0)
	s.publish("m", "", "delivered", 2, 2*time.Hour)
	s.publish("m", "", "no_receipt", 3, 0)
	s.run(hook("shop", "", r))
	r.wait(t, r.has(1))
	if s.count("shop", "refused") != 1 || s.count("shop", "expired") != 1 ||
		!slices.Equal(r.taken, []string{"m 3"}) {
		t.Errorf("got events %v", r.taken)
	}
}

// TestAnEventThatTheReceiverFailsAtDelaysOnlyItsMessage: others are delivered meanwhile, until no
// more are kept. It is dropped after a while, because the receiver took others.
func TestAnEventThatTheReceiverFailsAtDelaysOnlyItsMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.giveUp = 2 * time.Second
	r := newReceiver(t, func(_ int, event string) int {
		if event == "bad 1" {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	const others = 4500
	s.run(hook("shop", "", r))
	s.publish("bad", "", "accepted", 1, 0)
	s.publish("bad", "", "delivered", 2, 0)
	r.wait(t, func() bool { return len(r.ids) > 0 })
	s.publish("m", "", "accepted", 1, 0)
	r.wait(t, r.has(1))
	if s.count("shop", "refused") != 0 || !slices.Equal(r.taken, []string{"m 1"}) {
		t.Errorf("got events %v", r.taken)
	}
	var records []*kgo.Record
	for i := range others {
		records = append(records, &kgo.Record{
			Topic: topic, Key: []byte(fmt.Sprint("m-", i)), Value: fmt.Appendf(nil, `{"id":"m-%d"}`, i),
		})
	}
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r.wait(t, r.has(others+2)) // with bad 2
	r.check(t)
	if n := s.count("shop", "refused"); n != 1 || !slices.Contains(r.taken, "bad 2") {
		t.Errorf("%v refused, %d taken", n, len(r.taken))
	}
}

// TestEventsOfOthersGoOnBehindAnEventThatFails: however many events of other tenants come after it.
// They count as read with it.
func TestEventsOfOthersGoOnBehindAnEventThatFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var back atomic.Bool
	r := newReceiver(t, func(_ int, event string) int {
		if event == "bad 1" && !back.Load() {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	s.run(hook("shop", "shop", r))
	s.publish("bad", "shop", "accepted", 1, 0)
	r.wait(t, func() bool { return len(r.ids) > 0 })
	var records []*kgo.Record
	for i := range 4500 {
		records = append(records, &kgo.Record{
			Topic: topic, Key: []byte(fmt.Sprint("o-", i)), Value: []byte(`{"id":"o","tenant":"other"}`),
		})
	}
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		s.publish(fmt.Sprint("m-", i), "shop", "accepted", 1, 0)
	}
	r.wait(t, r.has(9))
	back.Store(true)
	r.wait(t, r.has(10))
	admin := kadm.NewClient(s.client)
	tier.Within(t, testTimeout, "all events count as read", func() bool {
		lags, err := admin.Lag(t.Context(), statushook.Group("dispatcher", "shop"))
		if err != nil {
			t.Fatal(err)
		}
		group := lags[statushook.Group("dispatcher", "shop")]
		return group.Error() == nil && len(group.Lag[topic]) == 3 && group.Lag.Total() == 0
	})
	r.check(t)
}

// TestAReceiverThatAlwaysFailsLosesNothing: that it answers 500 to all events is no reason to drop
// one.
func TestAReceiverThatAlwaysFailsLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.giveUp = time.Millisecond
	var back atomic.Bool
	r := newReceiver(t, func(int, string) int {
		if !back.Load() {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	s.run(hook("shop", "", r))
	for i := range 20 {
		s.publish(fmt.Sprint("m-", i), "", "accepted", 1, 0)
	}
	s.until("shop", "failed", 60)
	back.Store(true)
	r.wait(t, r.has(20))
	if n := s.count("shop", "refused"); n != 0 {
		t.Errorf("%v refused", n)
	}
}

// TestPrivateAddressesAreNotCalledUnlessAllowed: whatever the name of the host is.
func TestPrivateAddressesAreNotCalledUnlessAllowed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	forbidden, allowed := newReceiver(t, ok), newReceiver(t, ok)
	h := hook("forbidden", "", forbidden)
	h.AllowPrivate = false
	h.URL = strings.Replace(h.URL, "127.0.0.1", "localhost", 1)
	s.run(h, hook("allowed", "shop", allowed))
	s.publish("m", "", "accepted", 1, 0)
	s.publish("s", "shop", "accepted", 1, 0)
	allowed.wait(t, allowed.has(1))
	s.until("forbidden", "failed", 1)
	if len(forbidden.ids) > 0 {
		t.Error("a private address was called")
	}
}

// until waits until n events of a webhook have had a result.
func (s *stage) until(name, result string, n float64) {
	s.t.Helper()
	tier.Within(s.t, testTimeout, fmt.Sprintf("%v events of %s are %s", n, name, result),
		func() bool { return s.count(name, result) >= n })
}

func (s *stage) count(name, result string) float64 {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["webhook"] == name && labels["result"] == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestACallUnderWayIsNotBrokenOff: an event that the receiver is taking when its webhook changes is
// not sent again.
func TestACallUnderWayIsNotBrokenOff(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	called, changed := make(chan struct{}), make(chan struct{})
	old := newReceiver(t, func(int, string) int {
		close(called)
		<-changed
		return http.StatusNoContent
	})
	moved := newReceiver(t, ok)
	stop := s.run(hook("w", "", old))
	s.publish("m-1", "", "accepted", 1, 0)
	<-called
	s.change(nil, hook("w", "", moved))
	time.AfterFunc(200*time.Millisecond, func() { close(changed) }) // ten times ReadEvery
	s.publish("m-2", "", "accepted", 1, 0)
	moved.wait(t, moved.has(1))
	stop()
	if taken := slices.Concat(old.taken, moved.taken); !slices.Equal(taken, []string{"m-1 1", "m-2 1"}) {
		t.Errorf("taken: %v", taken)
	}
}

// TestTheFileIsReadAgain: an added webhook gets its events, one with a changed address gets them
// there, a removed one gets none. A file that cannot be used changes nothing, and the log says so
// once.
func TestTheFileIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	old, moved, added := newReceiver(t, ok), newReceiver(t, ok), newReceiver(t, ok)
	s.run(hook("rest", "", old))
	s.publish("m-1", "shop", "accepted", 1, 0)
	s.until("rest", "delivered", 1)

	// The tenant now has a webhook of its own, so the other one no longer gets its events.
	s.change(nil, hook("rest", "", moved), hook("shop", "shop", added))
	s.awaitLog(`"webhooks":["rest","shop"]`, 1)
	s.publish("m-2", "shop", "accepted", 1, 0)
	s.publish("m-2", "bank", "accepted", 2, 0)
	s.publish("m-3", "bank", "accepted", 1, 0)
	moved.wait(t, moved.has(2)) // so that the webhook of the others has passed what it leaves out
	added.wait(t, added.has(2)) // it begins with the earlier events

	s.change(errors.New("webhook 2 (shop): the secret is gone"))
	s.awaitLog("the webhooks stay as they were", 1)
	s.publish("m-4", "shop", "accepted", 1, 0)
	s.publish("m-4", "bank", "accepted", 2, 0)
	added.wait(t, added.has(3))
	s.until("rest", "delivered", 4) // a call that is broken off would be repeated

	s.change(nil, hook("rest", "", moved))
	s.awaitLog(`"webhooks":["rest"]`, 2)
	s.publish("m-5", "shop", "accepted", 1, 0)
	moved.wait(t, moved.has(4))
	for r, want := range map[*receiver][]string{
		old: {"m-1 1"}, moved: {"m-2 2", "m-3 1", "m-4 2", "m-5 1"}, added: {"m-1 1", "m-2 1", "m-4 1"},
	} {
		r.mu.Lock()
		if got := slices.Sorted(slices.Values(r.taken)); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		r.mu.Unlock()
		r.check(t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := strings.Count(s.log.String(), "the webhooks stay as they were"); n != 1 {
		t.Errorf("the log says %d times that the file is bad:\n%s", n, s.log.String())
	}
	families, err := s.registry.Gather()
	if err != nil || strings.Contains(fmt.Sprint(families), `"shop"`) {
		t.Errorf("metrics of a removed webhook: %v, %v", families, err)
	}
}

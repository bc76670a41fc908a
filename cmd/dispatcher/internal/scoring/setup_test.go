package scoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector"
)

func newClient(t testing.TB) *Client {
	t.Helper()
	c, err := New(Config{Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newFunction serves a scoring function on loopback and counts its calls.
func newFunction(t *testing.T, handle http.HandlerFunc) (_ *decide.Function, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return &decide.Function{
		URL: server.URL, AllowPrivate: true, Batch: true, BatchSize: 20,
		Deadline: 5 * time.Second, Cache: time.Minute,
	}, calls
}

// respondWith answers every call with the same text.
func respondWith(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// question decodes the request of a call.
func question(w http.ResponseWriter, r *http.Request) (b body, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return b, false
	}
	return b, true
}

// scoresByName answers each candidate with a tenth of the number in its name: 0.5 for c5.
func scoresByName(w http.ResponseWriter, r *http.Request) {
	if b, ok := question(w, r); ok {
		fmt.Fprint(w, answerTo(b))
	}
}

func answerTo(b body) string {
	scores := make([]string, len(b.Candidates))
	for i, c := range b.Candidates {
		n, _ := strconv.Atoi(c.Channel[1:])
		scores[i] = fmt.Sprintf(`{"channel":%q,"score":%g}`, c.Channel, float64(n)/10)
	}
	return `{"scores":[` + strings.Join(scores, ",") + `]}`
}

// fakeNetwork answers calls without a network, so that they work on a fake clock.
type fakeNetwork func(*http.Request) (*http.Response, error)

func (f fakeNetwork) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// goodAnswer is the answer of scoresByName.
func goodAnswer(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	scoresByName(w, r)
	return w.Result(), nil
}

// noAnswer blocks until the context of the call ends.
func noAnswer(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func over(t *testing.T, network fakeNetwork) (*Client, *decide.Function) {
	t.Helper()
	c := newClient(t)
	c.public.Transport = network
	return c, &decide.Function{
		URL: "http://scores.example.com/", Batch: true, BatchSize: 20,
		Deadline: 200 * time.Millisecond, Cache: 10 * time.Second,
	}
}

// questionOf returns a question about this many candidates, from c0 on.
func questionOf(candidates int) *decide.ScoreQuestion {
	q := &decide.ScoreQuestion{
		Route: "default", Lane: "otp",
		Labels: map[string]selector.Value{
			"language": selector.TextValue("en"),
			"tier":     selector.NumberValue(2),
		},
		Selectors: []selector.Selector{{
			Key: "quality", Operator: selector.GreaterThanEqual,
			Value: selector.NumberValue(5),
		}},
	}
	for i := range candidates {
		q.Candidates = append(q.Candidates, decide.ScoreCandidate{
			Channel: fmt.Sprintf("c%d", i),
			Labels:  map[string]selector.Value{"quality": selector.NumberValue(float64(i))},
			Price:   0.031,
		})
	}
	return q
}

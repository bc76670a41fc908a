package statushook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config"
	"dispatcher/config/tier"
)

// TestAnEventIsGivenUpWhenItIsTooOld: although its receiver may come back.
func TestAnEventIsGivenUpWhenItIsTooOld(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	sender := New(Config{
		Pause: time.Millisecond, Registry: prometheus.NewRegistry(), Log: zerolog.Nop(),
	})
	of := config.StatusWebhook{
		Name: "shop", URL: server.URL, MaxAge: 50 * time.Millisecond, AllowPrivate: true,
	}
	sender.metrics.start(of.Name)
	h := sender.newHook(&of, nil)
	t.Cleanup(h.client.CloseIdleConnections)
	e := &event{Record: &kgo.Record{
		Value: []byte(`{"id":"m"}`), Timestamp: time.Now().Add(30 * time.Millisecond),
	}}
	for over := time.Now().Add(tier.LongestWait); !e.done && time.Now().Before(over); {
		h.try(t.Context(), e)
	}
	if !e.done || calls == 0 {
		t.Errorf("after %d calls it is not given up", calls)
	}
}

// TestFewEventsThatFailAloneAreKnown: with one that may show whether the receiver is well, or with
// too many, the receiver may be at fault.
func TestFewEventsThatFailAloneAreKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	events := func(n int, alone time.Time) (out []*event) {
		for i := range n {
			key := fmt.Appendf(nil, "%s-%d", alone, i)
			out = append(out, &event{Record: &kgo.Record{Key: key}, alone: alone},
				&event{Record: &kgo.Record{Key: key}}, // waits for the one before
				&event{Record: &kgo.Record{Key: fmt.Append(key, " done")}, done: true})
		}
		return out
	}
	for name, c := range map[string]struct {
		pending []*event
		alone   bool
	}{
		"one":             {events(1, now), true},
		"some":            {events(mostAlone, now), true},
		"many":            {events(mostAlone+1, now), false},
		"another is left": {append(events(1, now), events(1, time.Time{})...), false},
	} {
		r := &reader{hook: &hook{}, pending: c.pending}
		if _, _, alone := r.left(); alone != c.alone {
			t.Errorf("%s: %t", name, alone)
		}
	}
}

// TestWhatFailsAloneStaysAloneOnlyWhileNothingElseIsLeft: see hook.noteFailure.
func TestWhatFailsAloneStaysAloneOnlyWhileNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	h, e := &hook{}, &event{}
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	h.noteFailure(e, at(0))
	h.took.Store(at(1).UnixNano())
	if h.noteFailure(e, at(2)); !e.alone.Equal(at(2)) {
		t.Errorf("the receiver took another: alone since %s", e.alone)
	}
	h.full.Store(true)
	if h.noteFailure(e, at(3)); !e.alone.Equal(at(2)) {
		t.Errorf("nothing else is left: alone since %s", e.alone)
	}
	h.full.Store(false)
	if h.noteFailure(e, at(4)); !e.alone.IsZero() {
		t.Errorf("the receiver took no other: alone since %s", e.alone)
	}
}

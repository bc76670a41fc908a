package statushook

import (
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

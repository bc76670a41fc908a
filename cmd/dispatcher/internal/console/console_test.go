package console

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func listen(t *testing.T, checks ...Check) *Server {
	t.Helper()
	s, err := Listen(t.Context(), Config{
		Address: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Version: "v1",
		Ready: func(context.Context) []Check { return checks },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestPagesAnswer(t *testing.T) {
	t.Parallel()
	s := listen(t)
	for path, want := range map[string]string{
		"/": "SMS dispatcher", "/healthz": "alive",
		"/metrics": "", "/debug/pprof/": "goroutine",
	} {
		if status, body := get(t, s.URL()+path); status != http.StatusOK ||
			!strings.Contains(body, want) {
			t.Errorf("%s: got status %d %.80s", path, status, body)
		}
	}
	if status, _ := get(t, s.URL()+"/nothing"); status != http.StatusNotFound {
		t.Errorf("an unknown page: got status %d", status)
	}
}

func TestWhatComesLaterAnswersWhenItIsThere(t *testing.T) {
	t.Parallel()
	var later atomic.Pointer[http.Handler]
	s, err := Listen(t.Context(), Config{
		Address: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Version: "v1",
		Handler: func() http.Handler {
			if h := later.Load(); h != nil {
				return *h
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if status, body := get(t, s.URL()+"/routes"); status != http.StatusServiceUnavailable {
		t.Errorf("before the change: got %d %s", status, body)
	}
	var pages http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	})
	later.Store(&pages)
	for _, path := range []string{"/", "/routes", "/api/v1/status"} {
		if status, body := get(t, s.URL()+path); status != http.StatusOK || body != "page "+path {
			t.Errorf("%s: got status %d %s", path, status, body)
		}
	}
	if status, body := get(t, s.URL()+"/healthz"); status != http.StatusOK ||
		!strings.Contains(body, "alive") {
		t.Errorf("/healthz: %d %s", status, body)
	}
}

func TestOnlyVitalConditionsTakeTheInstanceOut(t *testing.T) {
	t.Parallel()
	for want, checks := range map[int][]Check{
		http.StatusOK: {
			{Name: "database", OK: true, Vital: true},
			{Name: "channel a", Detail: "connecting"},
		},
		http.StatusServiceUnavailable: {
			{Name: "database", Detail: "no answer", Vital: true},
			{Name: "channel a", OK: true},
		},
	} {
		if status, body := get(t, listen(t, checks...).URL()+"/readyz"); status != want ||
			!strings.HasPrefix(body, "{\n  \"ready\": ") || !strings.Contains(body, "channel a") {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
}

func TestCloseCutsOffASlowRequest(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	s, err := Listen(
		t.Context(),
		Config{
			Address:  "127.0.0.1:0",
			Registry: prometheus.NewRegistry(),
			Ready: func(context.Context) []Check {
				close(began)
				<-release
				return nil
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		request, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet,
			s.URL()+"/readyz", nil)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	taken := strings.TrimPrefix(listen(t).URL(), "http://")
	if _, err := Listen(t.Context(), Config{Address: taken}); err == nil ||
		!strings.Contains(err.Error(), taken) ||
		!strings.Contains(err.Error(), "DISPATCHER_LISTEN") {
		t.Errorf("error %v", err)
	}
}

package scoring

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// TestAFunctionOnAPrivateAddressIsNotCalledUnlessThatIsAllowed: whatever its name is.
func TestAFunctionOnAPrivateAddressIsNotCalledUnlessThatIsAllowed(t *testing.T) {
	t.Parallel()
	f, calls := newFunction(t, respondWith(`{"scores":[{"channel":"c0","score":1}]}`))
	f.Token = "s3cret"
	byName := *f
	byName.URL = strings.Replace(f.URL, "127.0.0.1", "localhost", 1)
	for _, function := range []*decide.Function{f, &byName} {
		inward := *function
		inward.AllowPrivate = false
		if got := newClient(t).Scores(t.Context(), &inward,
			questionOf(1)); got.Trouble != decide.FunctionUnreachable || calls.Load() != 0 {
			t.Errorf("%s: %+v after %d calls", inward.URL, got, calls.Load())
		}
		if got := newClient(t).Scores(t.Context(), function, questionOf(1)); got.Trouble != "" {
			t.Errorf("%s, allowed: %+v", function.URL, got)
		}
		calls.Store(0)
	}
}

// askInEnvironment makes a process of the next test call a function. net/http reads the proxies of
// the environment once per process.
const askInEnvironment = "SCORING_TEST_ASK"

// TestTheProxyOfTheEnvironmentIsNotUsed: it would read the token of a function.
func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Parallel()
	if url := os.Getenv(askInEnvironment); url != "" {
		f := &decide.Function{
			URL: url, Token: "s3cret", AllowPrivate: true,
			Deadline: 5 * time.Second,
		}
		t.Logf("scores: %+v", newClient(t).Scores(t.Context(), f, questionOf(1)))
		return
	}
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // This test itself.
	// Loopback addresses never use a proxy, so the function has a host name that does not exist.
	child.Env = append(os.Environ(), askInEnvironment+"=http://scores.invalid/",
		"HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "scores: ") {
		t.Fatalf("%v: got %s", err, out)
	}
	if asked.Load() != 0 {
		t.Errorf("the proxy was asked: %s", out)
	}
}

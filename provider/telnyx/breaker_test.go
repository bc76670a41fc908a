package telnyx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web/webtest"
)

// TestOnlyFaultsOfTheAccountOpenTheBreaker: a text that Telnyx blocks, or a sender that it does not take, leaves the channel to the
// messages of others.
func TestOnlyFaultsOfTheAccountOpenTheBreaker(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]breaker.State{
		"40322": breaker.Closed, "40305": breaker.Closed, "40309": breaker.Closed, "20100": breaker.Open, "40312": breaker.Open, "10009": breaker.Open,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, fmt.Sprintf(`{"errors":[{"code":%q}]}`, code))
			}))
			t.Cleanup(api.Close)
			b := breaker.New(open(webtest.Reach(t, api.URL), ""), breaker.Config{Name: "telnyx", Failures: 5})
			t.Cleanup(func() { _ = b.Close(t.Context()) })
			for range 5 {
				if r := b.Send(t.Context(), webtest.Message()); r.Outcome != provider.Refused || r.Code != "400/"+code {
					t.Fatalf("%v, code %q, %v", r.Outcome, r.Code, r.Err)
				}
			}
			if got := b.State(); got != want {
				t.Errorf("after five of %s it is %v, want %v", code, got, want)
			}
		})
	}
}

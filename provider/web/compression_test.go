package web_test

import (
	"net/http"
	"testing"

	"dispatcher/provider"
)

// TestNoCompressedAnswerIsAskedFor: what is read is what came over the wire, so that the bound on an answer bounds both, and a
// server or a proxy that breaks off or garbles a compressed body cannot make an acceptance unreadable.
func TestNoCompressedAnswerIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		s := serve(t, accept)
		if r := channel(t, s.URL, method, asIs).Send(t.Context(), message()); r.Outcome != provider.Accepted {
			t.Fatalf("%s: %v, %v", method, r.Outcome, r.Err)
		}
		s.mu.Lock()
		requests := s.requests
		s.mu.Unlock()
		for _, r := range requests {
			if asked := r.Header.Values("Accept-Encoding"); len(asked) > 0 {
				t.Errorf("%s asks for %q", method, asked)
			}
		}
	}
}

package webtest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
)

// Breaks has recorded refusals given to messages in a row, over a channel behind a breaker. One on the channel opens it, one on a
// message does not, and one on the sender does unless each of the messages brought its own. files names the recordings, with a
// star for what each is called in blames.
func Breaks(t *testing.T, files string, open func(t testing.TB, reach web.Config) provider.Channel, blames map[string]web.Blame) {
	t.Helper()
	for name, blame := range blames {
		for whose, own := range map[string]bool{"the message's": true, "the channel's": false} {
			t.Run(name+" and "+whose+" sender", func(t *testing.T) {
				t.Parallel()
				m := Message()
				m.From, m.OwnSender = "ACME", own
				want := breaker.Closed
				if blame == web.OnChannel || blame == web.OnSender && !own {
					want = breaker.Open
				}
				becomes(t, at(files, name), open, m, want)
			})
		}
	}
}

// becomes fails unless the breaker is in that state after as many messages as it takes to open it were answered like that.
func becomes(t *testing.T, file string, open func(t testing.TB, reach web.Config) provider.Channel, m provider.Submission, want breaker.State) {
	t.Helper()
	const failures = 5
	b := breaker.New(open(t, Reach(t, answering(t, file))), breaker.Config{Name: "webtest", Failures: failures})
	t.Cleanup(func() { _ = b.Close(t.Context()) })
	for range failures {
		if r := b.Send(t.Context(), m); r.Outcome != provider.Refused || r.Code == breaker.CodeOpen {
			t.Fatalf("%v, code %q, %v", r.Outcome, r.Code, r.Err)
		}
	}
	if got := b.State(); got != want {
		t.Errorf("after %d it is %v, want %v", failures, got, want)
	}
}

// answering is where an API begins that gives everybody a recorded answer.
func answering(t testing.TB, file string) string {
	t.Helper()
	answer := ReadAnswer(t, file)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	}))
	t.Cleanup(api.Close)
	return api.URL
}

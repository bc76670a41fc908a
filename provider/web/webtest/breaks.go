package webtest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// inARow is how many failures in a row open a breaker that is set to nothing else.
const inARow = 5

// CheckBreaker has recorded refusals given to messages in a row, over a channel that open puts behind a breaker. One on the channel opens it,
// one on a message does not, and one on the sender does unless each of the messages brought its own. files names the recordings,
// with a star for what each is called in blames.
func CheckBreaker(t *testing.T, files string, open func(t testing.TB, reach web.Config) provider.Channel, blames map[string]web.Blame) {
	t.Helper()
	for name, blame := range blames {
		for whose, own := range map[string]bool{"the message's": true, "the channel's": false} {
			t.Run(name+" and "+whose+" sender", func(t *testing.T) {
				t.Parallel()
				m := Message()
				m.From, m.OwnSender = "ACME", own
				c := open(t, LocalConfig(t, answering(t, at(files, name))))
				t.Cleanup(func() { _ = c.Close(t.Context()) })
				opened := refuses(t, c, m)
				if want := blame == web.OnChannel || blame == web.OnSender && !own; opened != want {
					t.Errorf("after %d it is open: %v, want %v", inARow, opened, want)
				}
			})
		}
	}
}

// refuses sends as many messages as it takes, each of which has to come to the API and to be refused there, and reports whether the
// breaker is open then.
func refuses(t testing.TB, c provider.Channel, m provider.Submission) bool {
	t.Helper()
	for range inARow {
		if r := c.Send(t.Context(), m); r.Outcome != provider.Refused || r.Code == provider.BreakerOpen {
			t.Fatalf("%v, code %q, %v", r.Outcome, r.Code, r.Err)
		}
	}
	ready, why := c.Ready()
	return !ready && why == provider.BreakerOpen
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

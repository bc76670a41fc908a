package webtest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/web"
)

// maxCode bounds Result.Code and Receipt.Code, in bytes: both become labels of metrics.
const maxCode = 64

// checkAnswers classifies the recorded answers, all of which must be listed. The error of a refusal
// shows no number. With a status that a proxy may send after it passed the request on, an answer is
// Unknown, unless it was recorded with that status.
func (v *Vendor) checkAnswers(t *testing.T) {
	if v.Files == "" {
		return
	}
	names := starred(t, v.Files)
	if expected := slices.Sorted(maps.Keys(v.Answers)); !slices.Equal(names, expected) {
		t.Errorf("recorded are %q, expected are %q", names, expected)
	}
	for _, name := range v.OnSender {
		if !v.Answers[name].Unfit {
			t.Errorf("%q is about the sender, but not unfit for a message with its own", name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := ReadAnswer(t, at(v.Files, name))
			checkProxyStatuses(t, answer, v.Classify)
			answer.OwnSender = true
			checkResult(t, "with its own sender it means", v.Classify(answer), v.Answers[name])
			answer.OwnSender = false
			want := v.Answers[name]
			want.Unfit = want.Unfit && !slices.Contains(v.OnSender, name)
			checkResult(t, "with the channel's sender it means", v.Classify(answer), want)
		})
	}
}

// checkResult compares a result without its error text, and checks that the error is set correctly
// and shows no secret.
func checkResult(t testing.TB, what string, got, want provider.Result) {
	t.Helper()
	checkSound(t, got)
	CheckHides(t, got.Err)
	got.Err = nil
	same(t, what, got, want)
}

// checkProxyStatuses fails unless an answer is Unknown with each other status of
// web.MaybeFromProxy.
func checkProxyStatuses(t testing.TB, a *web.Answer, classify func(*web.Answer) provider.Result) {
	t.Helper()
	for _, status := range []int{
		http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	} {
		again := *a
		again.Status = status
		if r := classify(&again); r.Outcome != provider.Unknown && status != a.Status {
			t.Errorf("with the status %d it is %v", status, r.Outcome)
		}
	}
}

// FuzzAnswers classifies arbitrary answers of an API that gives each message an id.
func FuzzAnswers(f *testing.F, classify func(*web.Answer) provider.Result) {
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got := classify(
			&web.Answer{Status: status, Header: http.Header{}, Body: body, OwnSender: true})
		checkSound(t, got)
		if (got.Outcome == provider.Accepted) != (got.Reference != "") {
			t.Errorf("%v under the id %q", got.Outcome, got.Reference)
		}
	})
}

// checkSound fails unless a result has an error where it needs one, and a bounded code, and is
// Unfit only when it is Refused.
func checkSound(t testing.TB, r provider.Result) {
	t.Helper()
	if (r.Outcome == provider.Accepted) != (r.Err == nil) {
		t.Errorf("%v with the error %v", r.Outcome, r.Err)
	}
	if r.Unfit && r.Outcome != provider.Refused {
		t.Errorf("%v, and unfit: only Refused can be", r.Outcome)
	}
	if len(r.Code) > maxCode {
		t.Errorf("the code has %d bytes", len(r.Code))
	}
}

// starred are the files of a pattern with one star, in order, each by the text at the star.
func starred(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files are %s, error %v", len(files), pattern, err)
	}
	before, after, _ := strings.Cut(pattern, "*")
	for i := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(files[i], before), after)
	}
	return files
}

// at is a file of a pattern with one star.
func at(pattern, name string) string { return strings.Replace(pattern, "*", name, 1) }

// inARow is how many failures in a row open a breaker with default settings.
const inARow = 5

// checkBreaker answers messages in a row with each recorded refusal, over a channel with a breaker.
// A refusal of the channel opens it, one of the message does not, and one of the sender does unless
// each message has its own.
func (v *Vendor) checkBreaker(t *testing.T) {
	for name, want := range v.Answers {
		if want.Outcome != provider.Refused {
			continue
		}
		for whose, own := range map[string]bool{"the message's": true, "the channel's": false} {
			t.Run(name+" and "+whose+" sender", func(t *testing.T) {
				t.Parallel()
				m := Message()
				m.From, m.OwnSender = "ACME", own
				api := LocalConfig(t, answering(t, at(v.Files, name)))
				c := breaker.New(v.Open(t, api), breaker.Config{Name: "vendor"})
				t.Cleanup(func() { _ = c.Close(t.Context()) })
				opens := !want.Unfit || slices.Contains(v.OnSender, name) && !own
				if opened := refuses(t, c, m); opened != opens {
					t.Errorf("after %d refusals open is %v, want %v", inARow, opened, opens)
				}
			})
		}
	}
}

// refuses sends inARow messages and reports whether the breaker is then open. It fails if one of
// them does not reach the API or is not refused there.
func refuses(t testing.TB, c provider.Channel, m provider.Submission) bool {
	t.Helper()
	for range inARow {
		if r := c.Send(t.Context(), m); r.Outcome != provider.Refused ||
			r.Code == provider.BreakerOpen {
			t.Fatalf("%v, code %q, %v", r.Outcome, r.Code, r.Err)
		}
	}
	ready, why := c.Ready()
	return !ready && why == provider.BreakerOpen
}

// answering starts an API that gives every request the recorded answer, and returns its base URL.
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

// checkCodes fails unless each code of the table has an outcome and a reason, and the codes listed
// by their blame are such refusals. A code without an outcome does not belong in a table: unlisted
// codes are Unknown, or left to the status.
func (v *Vendor) checkCodes(t *testing.T) {
	for code, m := range v.Codes {
		if m.Why == "" || m.Outcome == provider.Accepted || m.Outcome == provider.Unknown {
			t.Errorf("%v: %v, %q", code, m.Outcome, m.Why)
		}
	}
	for blame, codes := range v.Blames {
		for _, code := range codes {
			if m := v.Codes[code]; m.Outcome != provider.Refused || m.Blame != blame {
				t.Errorf("%v: %v, on %v, want %v", code, m.Outcome, m.Blame, blame)
			}
		}
	}
}

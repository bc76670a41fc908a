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
	"dispatcher/provider/web"
)

// maxCode bounds Result.Code and Receipt.Code, in bytes: both become labels of metrics.
const maxCode = 64

// CheckAnswers has recorded answers to a message with a sender of its own classified. files names
// them, with a star for what each is called in want; all of them have to stand there. To a message
// that has its sender from the channel they mean the same, except that those named by onSender do
// not make it Unfit. Whatever was not accepted has an error, which shows no number. With a status
// that a proxy may say after it has passed the request on, none of them means anything, unless it
// was recorded with that status.
func CheckAnswers(
	t *testing.T, files string, classify func(*web.Answer) provider.Result,
	want map[string]provider.Result, onSender ...string,
) {
	t.Helper()
	names := starred(t, files)
	if expected := slices.Sorted(maps.Keys(want)); !slices.Equal(names, expected) {
		t.Errorf("recorded are %q, expected are %q", names, expected)
	}
	for _, name := range onSender {
		if !want[name].Unfit {
			t.Errorf("%q is about the sender, and leaves a message with its own fit", name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := ReadAnswer(t, at(files, name))
			checkProxyStatuses(t, answer, classify)
			answer.OwnSender = true
			checkResult(t, "with its own sender it means", classify(answer), want[name])
			answer.OwnSender = false
			want := want[name]
			want.Unfit = want.Unfit && !slices.Contains(onSender, name)
			checkResult(t, "with the channel's sender it means", classify(answer), want)
		})
	}
}

// checkResult compares a result, whatever its error says, which has to be sound and to hide what is
// to be hidden.
func checkResult(t testing.TB, what string, got, want provider.Result) {
	t.Helper()
	checkSound(t, got)
	CheckHides(t, got.Err)
	got.Err = nil
	same(t, what, got, want)
}

// checkProxyStatuses fails unless an answer is Unknown under each other status of
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

// FuzzAnswers has anything classified by an API that gives each message an id.
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
// Unfit only when it is CheckRefused.
func checkSound(t testing.TB, r provider.Result) {
	t.Helper()
	if (r.Outcome == provider.Accepted) != (r.Err == nil) {
		t.Errorf("%v with the error %v", r.Outcome, r.Err)
	}
	if r.Unfit && r.Outcome != provider.Refused {
		t.Errorf("%v, and not fit for this channel", r.Outcome)
	}
	if len(r.Code) > maxCode {
		t.Errorf("the code has %d bytes", len(r.Code))
	}
}

// starred are the files of a pattern with one star, each by what stands in place of it, in order.
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

// inARow is how many failures in a row open a breaker that is set to nothing else.
const inARow = 5

// CheckBreaker has recorded refusals given to messages in a row, over a channel that open puts
// behind a breaker. One on the channel opens it, one on a message does not, and one on the sender
// does unless each of the messages brought its own. files names the recordings, with a star for
// what each is called in blames.
func CheckBreaker(
	t *testing.T, files string, open func(t testing.TB, reach web.Config) provider.Channel,
	blames map[string]web.Blame,
) {
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

// refuses sends as many messages as it takes, each of which has to come to the API and to be
// refused there, and reports whether the breaker is open then.
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

// CheckTable fails unless each code of a vendor's table decides something, and says why. A code
// that decides nothing has no place in a table: what is not there is Unknown, or left to the
// status.
func CheckTable[Code comparable](t testing.TB, table map[Code]web.Meaning) {
	t.Helper()
	for code, v := range table {
		if v.Why == "" || v.Outcome == provider.Accepted || v.Outcome == provider.Unknown {
			t.Errorf("%v: %v, %q", code, v.Outcome, v.Why)
		}
	}
}

// CheckBlame fails unless these codes of a vendor's table are refusals, each of them about what it
// stands under.
func CheckBlame[Code comparable](
	t testing.TB, table map[Code]web.Meaning, blames map[web.Blame][]Code,
) {
	t.Helper()
	for blame, codes := range blames {
		for _, code := range codes {
			if v := table[code]; v.Outcome != provider.Refused || v.Blame != blame {
				t.Errorf("%v: %v, on %v, want %v", code, v.Outcome, v.Blame, blame)
			}
		}
	}
}

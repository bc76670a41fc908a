package web_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// TestEachMeaningHasOutcomeReasonAndBlame: the zero Meaning is Unknown.
func TestEachMeaningHasOutcomeReasonAndBlame(t *testing.T) {
	t.Parallel()
	const why = "it says so"
	for name, c := range map[string]struct{ got, want web.Meaning }{
		"none":      {web.Meaning{}, web.Meaning{Outcome: provider.Unknown}},
		"unknown":   {web.Unknown(why), web.Meaning{Outcome: provider.Unknown, Why: why}},
		"rejected":  {web.Rejected(why), web.Meaning{Outcome: provider.Rejected, Why: why}},
		"throttled": {web.Throttled(why), web.Meaning{Outcome: provider.Throttled, Why: why}},
		"refused": {
			web.Refused(why), web.Meaning{
				Outcome: provider.Refused, Why: why, Blame: web.OnChannel,
			},
		},
		"bad sender": {
			web.BadSender(why),
			web.Meaning{Outcome: provider.Refused, Why: why, Blame: web.OnSender},
		},
		"unfit": {
			web.Unfit(why), web.Meaning{Outcome: provider.Refused, Why: why, Blame: web.OnMessage},
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		r := (&web.Answer{Status: 400}).Result(c.got, "")
		if r.Outcome != c.want.Outcome || r.Err == nil || r.Err.Error() != c.want.Why {
			t.Errorf("%s: its result is %+v", name, r)
		}
	}
}

func TestResultsShowTheStatusAndABoundedCode(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400}
	for code, want := range map[string]string{
		"": "400", "21211": "400/21211", "E_NO.CREDIT-1": "400/E_NO.CREDIT-1",
		"+447700900123": "400/other", "447700900123": "400/other", "447-700-900-123": "400/other",
		"a b": "400/other", strings.Repeat("a", 41): "400/other", "ä": "400/other",
	} {
		if r := a.Result(web.Rejected("why"), code); r.Code != want ||
			r.Outcome != provider.Rejected || r.Err == nil {
			t.Errorf("%q: %+v, want %q", code, r, want)
		}
	}
	if r := a.Unreadable("1"); r.Outcome != provider.Unknown || r.Err == nil || r.Code != "400/1" {
		t.Errorf("unreadable: %+v", r)
	}
}

// TestOnlyWhatIsThrottledWaits: a refused message goes to another channel at once, even if the
// answer has a Retry-After.
func TestOnlyWhatIsThrottledWaits(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400, Header: http.Header{"Retry-After": {"9"}}}
	for v, want := range map[web.Meaning]time.Duration{
		web.Throttled("why"): 9 * time.Second, web.Rejected("why"): 0, web.Refused("why"): 0,
		web.Unfit("why"): 0, web.Unknown("why"): 0,
	} {
		if r := a.Result(v, "1"); r.RetryAfter != want {
			t.Errorf("%v waits %v, want %v", v.Outcome, r.RetryAfter, want)
		}
	}
}

func TestOnlyUnambiguousStatusesDecideWithoutABody(t *testing.T) {
	t.Parallel()
	want := map[int]provider.Outcome{
		401: provider.Refused, 403: provider.Refused, 429: provider.Throttled,
	}
	for status := 200; status < 600; status++ {
		r, ok := (&web.Answer{Status: status}).ByStatus("")
		if outcome, known := want[status]; ok != known || ok && r.Outcome != outcome {
			t.Errorf("%d: %v, %t", status, r.Outcome, ok)
		}
	}
}

// TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt: a refusal that blames the message is
// always unfit, one that blames the channel never.
func TestASenderIsTheMessagesFaultOnlyWhenTheMessageBroughtIt(t *testing.T) {
	t.Parallel()
	for v, want := range map[web.Meaning]struct{ own, channels bool }{
		web.Refused("it says so"): {false, false}, web.BadSender("it says so"): {true, false},
		web.Unfit("it says so"): {true, true},
	} {
		for own, want := range map[bool]bool{true: want.own, false: want.channels} {
			r := (&web.Answer{Status: 400, OwnSender: own}).Result(v, "7")
			if r.Outcome != provider.Refused || r.Unfit != want || r.Code != "400/7" ||
				r.Err == nil {
				t.Errorf("on %v, its own sender %v: %+v", v.Blame, own, r)
			}
		}
	}
}

// TestOnlyARefusalMakesAMessageUnfit: with another outcome the blame has no effect.
func TestOnlyARefusalMakesAMessageUnfit(t *testing.T) {
	t.Parallel()
	a := &web.Answer{Status: 400, OwnSender: true}
	for _, o := range []provider.Outcome{provider.Unknown, provider.Rejected, provider.Throttled} {
		for _, b := range []web.Blame{web.OnChannel, web.OnSender, web.OnMessage} {
			if r := a.Result(web.Meaning{Outcome: o, Why: "it says so", Blame: b}, ""); r.Unfit ||
				r.Outcome != o {
				t.Errorf("%v, on %v: %+v", o, b, r)
			}
		}
	}
}

func TestRetryAfterIsReadInSecondsAndAsADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, " 120 ": 2 * time.Minute, "0.5": 500 * time.Millisecond,
		"0": 0, "-1": 0, "soon": 0,
		"NaN": 0, "1e300": 0, "Sun, 01 Mar 2026 12:00:07 GMT": 7 * time.Second,
		"Sun, 01 Mar 2026 11:59:00 GMT": 0,
	} {
		if got := web.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestCallbackURLsCarryTheKeyAndKeepTheirOwnQuery(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "key")
		base := rapid.SampledFrom([]string{
			"https://sms.example.org/receipts/acme", "https://sms.example.org:8443/r?a=b&c=%20",
			"http://127.0.0.1:9/r?key=old",
		}).Draw(t, "base")
		address := web.WithKey(base, key)
		if got := web.CallbackKey(address); got != key {
			t.Errorf("%s: key %q", address, got)
		}
	})
	if web.WithKey("", "0123") != "" || web.WithKey("https://x/", "") != "https://x/" {
		t.Error("WithKey made a URL of an empty one, or added an empty key")
	}
	for _, address := range []string{
		"", "https://x/", "https://x/?key=", "https://x/?key=0123",
		"https://x/?key=0123456789ABCDEF0123456789ABCDEF",
		"https://x/?key=0123456789abcdef0123456789abcdefg",
		"https://x/%zz?key=0123456789abcdef0123456789abcdef",
		"https://x/?key=0123456789abcdef0123456789abcde+",
	} {
		if got := web.CallbackKey(address); got != "" {
			t.Errorf("%s: key %q", address, got)
		}
	}
}

func TestSecretsAreReadFromOneFileOrTwo(t *testing.T) {
	t.Parallel()
	readFile := func(name string) ([]byte, error) {
		content, ok := map[string]string{
			"/a": "first\r\n", "/b": "second", "/empty": "\n", "/lines": "a\nb", "/bom": "\ufeffa",
		}[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(content), nil
	}
	for name, c := range map[string]struct {
		value any
		want  string
		fault bool
	}{
		"none": {nil, "", false}, "one": {"/a", "first", false},
		"two":   {[]any{"/a", "/b"}, "first second", false},
		"three": {[]any{"/a", "/b", "/a"}, "", true}, "empty": {"/empty", "", true},
		"lines": {"/lines", "", true}, "a mark at the beginning": {"/bom", "", true},
		"missing": {[]any{"/a", "/c"}, "first", true},
	} {
		r := settings.New(map[string]any{"token_file": c.value}, readFile)
		got := strings.Join(web.Secrets(r, "token_file", readFile), " ")
		if err := r.Err(); got != c.want || (err != nil) != c.fault ||
			err != nil && !strings.HasPrefix(err.Error(), "token_file: ") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := r.Err(); name == "missing" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
}

func TestAKeyThatCouldNotBeReadHasOneFault(t *testing.T) {
	t.Parallel()
	read := errors.Join(errors.New("a: is not a URL"), errors.New("b: is empty"))
	invalid := errors.Join(errors.Join(errors.New("a: is missing")), errors.New("c: is missing"))
	if got, want := web.JoinFaults(read, invalid).Error(),
		"a: is not a URL\nb: is empty\nc: is missing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := web.JoinFaults(nil, nil); err != nil {
		t.Error(err)
	}
}

package web_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

func TestRetryAfterIsReadInSecondsAndAsADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, " 120 ": 2 * time.Minute, "0.5": 500 * time.Millisecond, "0": 0, "-1": 0, "soon": 0,
		"NaN": 0, "1e300": 0, "Sun, 01 Mar 2026 12:00:07 GMT": 7 * time.Second, "Sun, 01 Mar 2026 11:59:00 GMT": 0,
	} {
		if got := web.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestCallbackURLsCarryTheKeyAndKeepTheirOwnQuery(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "key")
		base := rapid.SampledFrom([]string{
			"https://sms.example.org/receipts/acme", "https://sms.example.org:8443/r?a=b&c=%20", "http://127.0.0.1:9/r?key=old",
		}).Draw(t, "base")
		address := web.WithKey(base, key)
		if got := web.CallbackKey(address); got != key {
			t.Errorf("%s names %q", address, got)
		}
	})
	if web.WithKey("", "0123") != "" || web.WithKey("https://x/", "") != "https://x/" {
		t.Error("a callback or a key appeared from nowhere")
	}
	for _, address := range []string{
		"", "https://x/", "https://x/?key=", "https://x/?key=0123", "https://x/?key=0123456789ABCDEF0123456789ABCDEF",
		"https://x/?key=0123456789abcdef0123456789abcdefg", "https://x/%zz?key=0123456789abcdef0123456789abcdef",
		"https://x/?key=0123456789abcdef0123456789abcde+",
	} {
		if got := web.CallbackKey(address); got != "" {
			t.Errorf("%s names %q", address, got)
		}
	}
}

func TestSecretsAreReadFromOneFileOrTwo(t *testing.T) {
	t.Parallel()
	readFile := func(name string) ([]byte, error) {
		content, ok := map[string]string{"/a": "first\r\n", "/b": "second", "/empty": "\n"}[name]
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
		"none": {nil, "", false}, "one": {"/a", "first", false}, "two": {[]any{"/a", "/b"}, "first second", false},
		"three": {[]any{"/a", "/b", "/a"}, "", true}, "empty": {"/empty", "", true}, "missing": {[]any{"/a", "/c"}, "first", true},
	} {
		r := settings.New(map[string]any{"token_file": c.value}, readFile)
		got := strings.Join(web.Secrets(r, "token_file", readFile), " ")
		if err := r.Err(); got != c.want || (err != nil) != c.fault || err != nil && !strings.HasPrefix(err.Error(), "token_file: ") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := r.Err(); name == "missing" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
}

func TestAKeyThatCouldNotBeReadHasOneFault(t *testing.T) {
	t.Parallel()
	read := errors.Join(errors.New("a: is no URL"), errors.New("b: is empty"))
	invalid := errors.Join(errors.Join(errors.New("a: is missing")), errors.New("c: is missing"))
	if got, want := web.JoinFaults(read, invalid).Error(), "a: is no URL\nb: is empty\nc: is missing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := web.JoinFaults(nil, nil); err != nil {
		t.Error(err)
	}
}

package sinch

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	plan      = "jd63jf88477ll123ab4567cd89012ef3"
	token     = "sinch-t0ken"
	secret    = "sinch-callback-s3cret"
	key       = "0123456789abcdef0123456789abcdef"
	recipient = "+447700900123"
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// files is a readFile over a map.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if content, ok := m[path]; ok {
			return []byte(content), nil
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
}

var secretFiles = files(map[string]string{
	"token": token + "\n", "secret": secret + "\n", "older": "the older s3cret", "empty": "\n",
})

// open makes a channel of settings for an API at address, with a callback.
func open(t testing.TB, address, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"service_plan_id": plan, "token_file": "token", "callback_secret_files": []any{"older", "secret"},
		"base_url": address, "allow_private": true, "timeout": "1m",
	}
	maps.Copy(values, more)
	c, err := Open(values, web.Opening{ReadFile: secretFiles, Callback: callback})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Channel)
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, filepath.Join("testdata", "answers", name+".http"))
}

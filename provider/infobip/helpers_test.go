package infobip

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apiKey    = "infobip-api-k3y"
	secret    = "infobip-callback-s3cret"
	older     = "the older s3cret"
	key       = "0123456789abcdef0123456789abcdef"
	recipient = "+447700900123"
	public    = "https://sms.example.com/receipts/infobip"
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// readFile knows the files that settings of tests name.
func readFile(path string) ([]byte, error) {
	content, ok := map[string]string{"key": apiKey + "\n", "secret": secret + "\n", "older": older}[path]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	return []byte(content), nil
}

// open makes a channel of settings for an API at address, with a callback.
func open(t testing.TB, address, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"api_key_file": "key", "callback_secret_files": []any{"secret", "older"},
		"base_url": address, "allow_private": true, "timeout": "1m",
	}
	maps.Copy(values, more)
	c, err := Open(values, web.Opening{ReadFile: readFile, Callback: callback})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Channel)
}

// setup brings up a carrier, a channel and a listener that hears with the channel.
func setup(t *testing.T, server infobiptest.Config, b webtest.Behaviour, more map[string]any) (*webtest.Carrier, *Channel, *webtest.Ear) {
	t.Helper()
	ear := webtest.Listen(t)
	server.Key, server.Subscription = apiKey, ear.URL
	carrier, err := webtest.Start(webtest.Config{Shape: infobiptest.New(server), Behaviour: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	channel := open(t, carrier.URL(), ear.URL, more)
	t.Cleanup(func() { _ = channel.Close(t.Context()) })
	ear.Attend(channel)
	return carrier, channel, ear
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, filepath.Join("testdata", "answers", name+".http"))
}

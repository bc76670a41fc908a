package webtest

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// What tests of adapters send.
const (
	Key       = "0123456789abcdef0123456789abcdef"
	Recipient = "+447700900123"
	Text      = "Your code is 4711"
)

// Message is a submission to Recipient.
func Message() provider.Submission {
	return provider.Submission{ID: "m-1", Attempt: 1, Key: Key, To: Recipient, Text: Text}
}

// LocalConfig is how an API that begins at address is reached: on this machine, without hurry.
func LocalConfig(t testing.TB, address string) web.Config {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return web.Config{BaseURL: base, Timeout: time.Minute, ConnectTimeout: time.Minute, AllowPrivate: true}
}

// Files are the files that settings of a test name, with what they hold.
type Files map[string]string

// Read is the readFile of settings.
func (f Files) Read(name string) ([]byte, error) {
	content, ok := f[name]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return []byte(content), nil
}

// Environment is a channel's, with these files and a callback.
func (f Files) Environment(callback string) web.Environment {
	return web.Environment{ReadFile: f.Read, Callback: callback}
}

// CheckHides fails when an error shows the number or the text of a Message, or one of the secrets.
func CheckHides(t testing.TB, err error, secrets ...string) {
	t.Helper()
	if err == nil {
		return
	}
	for _, hidden := range append([]string{"7700900", Text}, secrets...) {
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("the error shows %q", hidden)
		}
	}
}

// CheckFaults fails unless an error names each of the faults, and shows none of the secrets.
func CheckFaults(t testing.TB, err error, faults []string, secrets ...string) {
	t.Helper()
	for _, want := range faults {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	CheckHides(t, err, secrets...)
}

// CheckOnlyFaults fails unless an error names each of the faults in a line of its own and no other one, and shows none of the
// secrets.
func CheckOnlyFaults(t testing.TB, err error, faults []string, secrets ...string) {
	t.Helper()
	CheckFaults(t, err, faults, secrets...)
	if err != nil && strings.Count(err.Error(), "\n") != len(faults)-1 {
		t.Errorf("there are other faults than %q: %v", faults, err)
	}
}

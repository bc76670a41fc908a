package webtest

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Requests are submissions as they look on the wire, each in a file of its own. C is the adapter's
// configuration.
type Requests[C any] struct {
	// Files names the files, with a star for the name of the case.
	Files string
	// Config and Submission are what is usual.
	Config     C
	Submission provider.Submission
	// Compose writes a submission as a channel of that configuration does.
	Compose func(cfg C, s *provider.Submission) (*web.Request, error)
	// Cases are all files, each with what is not as usual.
	Cases map[string]Unusual[C]
}

// Unusual changes the configuration, the submission, both or nothing.
type Unusual[C any] struct {
	Config     func(*C)
	Submission func(*provider.Submission)
}

// Run compares all requests with their files. With UPDATE_GOLDEN set in the environment it writes
// them.
func (r Requests[C]) Run(t *testing.T) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") == "" {
		same(t, "the files are not those of the cases", starred(t, r.Files),
			slices.Sorted(maps.Keys(r.Cases)))
	}
	for name, c := range r.Cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, s := r.Config, r.Submission
			if c.Config != nil {
				c.Config(&cfg)
			}
			if c.Submission != nil {
				c.Submission(&s)
			}
			request, err := r.Compose(cfg, &s)
			if err != nil {
				t.Fatal(err)
			}
			CheckGolden(t, at(r.Files, name), request)
		})
	}
}

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
	return web.Config{
		BaseURL: base, Timeout: time.Minute, ConnectTimeout: time.Minute, AllowPrivate: true,
	}
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

// CheckOnlyFaults fails unless an error names each of the faults in a line of its own and no other
// one, and shows none of the secrets.
func CheckOnlyFaults(t testing.TB, err error, faults []string, secrets ...string) {
	t.Helper()
	CheckFaults(t, err, faults, secrets...)
	if err != nil && strings.Count(err.Error(), "\n") != len(faults)-1 {
		t.Errorf("there are other faults than %q: %v", faults, err)
	}
}

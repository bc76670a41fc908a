package webtest

import (
	"context"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
)

// Values that tests of adapters send.
const (
	Key       = "0123456789abcdef0123456789abcdef"
	Recipient = "+447700900123"
	Text      = "Your code is 4711"
)

// Message is a submission to Recipient.
func Message() provider.Submission {
	return provider.Submission{ID: "m-1", Attempt: 1, Key: Key, To: Recipient, Text: Text}
}

// LocalConfig reaches an API on this machine, with long timeouts.
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

// Files are the files that settings of a test name, with their content.
type Files map[string]string

// Read implements readFile of settings.
func (f Files) Read(name string) ([]byte, error) {
	content, ok := f[name]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return []byte(content), nil
}

// Environment has these files and a callback.
func (f Files) Environment(callback string) web.Environment {
	return web.Environment{ReadFile: f.Read, Callback: callback}
}

// CheckHides fails if an error shows the number or the text of a Message, or one of the secrets.
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

// CheckFaults fails unless an error names each of the faults and shows none of the secrets.
func CheckFaults(t testing.TB, err error, faults []string, secrets ...string) {
	t.Helper()
	for _, want := range faults {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	CheckHides(t, err, secrets...)
}

// CheckOnlyFaults fails unless an error names each of the faults on its own line and no other, and
// shows none of the secrets.
func CheckOnlyFaults(t testing.TB, err error, faults []string, secrets ...string) {
	t.Helper()
	CheckFaults(t, err, faults, secrets...)
	if err != nil && strings.Count(err.Error(), "\n") != len(faults)-1 {
		t.Errorf("there are other faults than %q: %v", faults, err)
	}
}

// CheckPromises fails unless a channel with these settings has the wanted capabilities with a
// callback, and no receipts without one. secret, if set, is the setting that verifies callbacks:
// without it there are no receipts either.
func CheckPromises(
	t *testing.T, open web.OpenFunc, values map[string]any, o web.Environment, secret string,
	want provider.Capabilities,
) {
	t.Helper()
	promises(t, open, values, o, want)
	want.Receipts, want.KeyInReceipt = false, false
	promises(t, open, values, web.Environment{ReadFile: o.ReadFile}, want)
	if secret != "" {
		values = maps.Clone(values)
		delete(values, secret)
		promises(t, open, values, o, want)
	}
}

// promises fails unless a channel with these settings has the wanted capabilities.
func promises(
	t testing.TB, open web.OpenFunc, values map[string]any, o web.Environment,
	want provider.Capabilities,
) {
	t.Helper()
	channel, err := open(values, o)
	if err != nil {
		t.Error(err)
		return
	}
	if got := channel.(provider.Capable).Capabilities(); got != want {
		t.Errorf("with callback %q and %v the capabilities are %+v, want %+v",
			o.Callback, values, got, want)
	}
	if err := channel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Lookup is the result of looking up a submission after the carrier's reply.
type Lookup struct {
	Reply providertest.Reply
	// Certain says that a message which is not found counts as not taken.
	Certain bool
	Want    provider.LookupState
}

// Finder is a channel that looks submissions up.
type Finder interface {
	provider.Channel
	provider.Finder
}

// CheckLookups sends a message with each reply, and looks it up. open makes a channel whose carrier
// gives that reply.
func CheckLookups(
	t *testing.T, open func(t *testing.T, b Behaviour, certain bool) Finder,
	cases map[string]Lookup,
) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			channel := open(t, Behaviour{Decide: func(int, Submit) providertest.Answer {
				if c.Reply == providertest.Lose {
					cancel()
				}
				return providertest.Answer{Reply: c.Reply}
			}}, c.Certain)
			channel.Send(ctx, Message())
			known(t, channel.Find(t.Context(), Key), c.Want)
		})
	}
}

// known fails unless a lookup has that state, with a reference if the message was taken, a code if
// it was rejected, and an error if the lookup failed.
func known(t testing.TB, got provider.LookupResult, want provider.LookupState) {
	t.Helper()
	if got.State != want || (got.Reference != "") != (want == provider.Taken) ||
		(got.Code != "") != (want == provider.LookupRejected) ||
		(got.Err != nil) != (want == provider.Unanswered) {
		t.Errorf("%+v, want %v", got, want)
	}
}

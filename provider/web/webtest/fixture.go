package webtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web"
)

// ReadAnswer reads an answer as it stands on the wire: a status line, header fields, an empty line
// and the body up to the end of the file.
func ReadAnswer(t testing.TB, file string) *web.Answer {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(content)), nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	defer r.Body.Close() //nolint:errcheck // it reads from memory
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &web.Answer{Status: r.StatusCode, Header: r.Header, Body: body, At: time.Now()}
}

// written is a request as a golden file has it: method and URL, header fields in the order of their
// names, an empty line, the body.
func written(r *web.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", r.Body)
	return b.String()
}

// CheckGolden compares a request with a file. With UPDATE_GOLDEN set in the environment it writes
// the file.
func CheckGolden(t testing.TB, file string, r *web.Request) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(written(r)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	if got := written(r); got != string(want) {
		t.Errorf("%s is\n%s\nbut the request is\n%s", file, want, got)
	}
}

// CheckPromises fails unless a channel of such settings promises what is wanted where it has a
// callback, and no receipts without one. The setting secret, if named, is what verifies callbacks:
// without it there are none either.
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

// promises fails unless a channel of such settings promises what is wanted.
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
		t.Errorf("with callback %q and %v it promises %+v, want %+v", o.Callback, values, got, want)
	}
	if err := channel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Lookup is what a lookup makes of a submission that the carrier decided about.
type Lookup struct {
	Reply providertest.Reply
	// Certain is whether a message that is not found counts as not taken.
	Certain bool
	Want    provider.LookupState
}

// Finder is a channel that looks submissions up.
type Finder interface {
	provider.Channel
	provider.Finder
}

// CheckLookups sends a message under each verdict, and looks it up. open makes a channel whose
// carrier behaves like that.
func CheckLookups(
	t *testing.T, open func(t *testing.T, b Behaviour, certain bool) Finder,
	cases map[string]Lookup,
) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channel := open(t, Behaviour{Decide: func(int, Submit) providertest.Answer {
				return providertest.Answer{Reply: c.Reply}
			}}, c.Certain)
			channel.Send(t.Context(), Message())
			known(t, channel.Find(t.Context(), Key), c.Want)
		})
	}
}

// known fails unless a lookup found that, with a reference when the message was taken and an error
// when nobody knows.
func known(t testing.TB, got provider.LookupResult, want provider.LookupState) {
	t.Helper()
	if got.State != want || (got.Reference != "") != (want == provider.Taken) ||
		(got.Err != nil) != (want == provider.Unanswered) {
		t.Errorf("%+v, want %v", got, want)
	}
}

package webtest

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"dispatcher/provider"
)

// Changes are what a forger does to a genuine callback, each under a name.
type Changes map[string]func(*provider.Callback)

// Tampered fails when a callback that says something is still believed after any of the changes. genuine makes it anew
// for each of them.
func Tampered(t *testing.T, l provider.Listener, genuine func() *provider.Callback, changes Changes) {
	t.Helper()
	if heard, err := l.Hear(genuine()); err != nil || len(heard.Receipts)+len(heard.Inbound) == 0 {
		t.Fatalf("the genuine callback says %+v, error %v", heard, err)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, l, changed(genuine(), change), provider.ErrForged)
		})
	}
}

// changed is a callback after a change that reaches no other one.
func changed(c *provider.Callback, change func(*provider.Callback)) *provider.Callback {
	c.Header, c.Body = maps.Clone(c.Header), slices.Clone(c.Body)
	for name := range c.Header {
		c.Header[name] = slices.Clone(c.Header[name])
	}
	change(c)
	return c
}

// Refused fails unless each of the callbacks is refused for that reason, and says nothing.
func Refused(t *testing.T, l provider.Listener, why error, calls map[string]*provider.Callback) {
	t.Helper()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, l, call, why)
		})
	}
}

func refused(t testing.TB, l provider.Listener, c *provider.Callback, why error) {
	t.Helper()
	heard, err := l.Hear(c)
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	Hides(t, err)
	silent(t, heard)
}

// Ignored fails unless each of the callbacks is taken for genuine, and says nothing.
func Ignored(t *testing.T, l provider.Listener, calls map[string]*provider.Callback) {
	t.Helper()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard, err := l.Hear(call)
			if err != nil {
				t.Error(err)
			}
			silent(t, heard)
		})
	}
}

// Bodies are callbacks that differ in their bodies only, each under the name of its body.
func Bodies(call func(body string) *provider.Callback, bodies ...string) map[string]*provider.Callback {
	calls := make(map[string]*provider.Callback, len(bodies))
	for _, body := range bodies {
		calls[body] = call(body)
	}
	return calls
}

// Timely fails unless callbacks are believed up to the age of past and, for the clocks, from as far in the future, and are
// stale a minute beyond. aged is a genuine callback of some age.
func Timely(t *testing.T, l provider.Listener, aged func(age time.Duration) *provider.Callback, past, future time.Duration) {
	t.Helper()
	for age, stale := range map[time.Duration]bool{
		0: false, past - time.Minute: false, time.Minute - future: false, past + time.Minute: true, -future - time.Minute: true,
	} {
		t.Run(age.String()+" old", func(t *testing.T) {
			t.Parallel()
			if stale {
				refused(t, l, aged(age), provider.ErrStale)
				return
			}
			if _, err := l.Hear(aged(age)); err != nil {
				t.Error(err)
			}
		})
	}
}

// LiveSecrets fails unless a callback is believed by whoever knows the secret that it was signed with, alone or beside
// another one, and by nobody else. listen is a channel that knows these secrets.
func LiveSecrets[S any](t *testing.T, listen func(secrets ...S) provider.Listener, call *provider.Callback, signing, other S) {
	t.Helper()
	for name, l := range map[string]provider.Listener{
		"its own": listen(signing), "its own and another": listen(signing, other), "another and its own": listen(other, signing),
	} {
		if heard, err := l.Hear(call); err != nil || len(heard.Receipts)+len(heard.Inbound) == 0 {
			t.Errorf("with %s: heard %+v, error %v", name, heard, err)
		}
	}
	Refused(t, listen(), provider.ErrForged, map[string]*provider.Callback{"without a secret": call})
	Refused(t, listen(other), provider.ErrForged, map[string]*provider.Callback{"with another secret": call})
}

// Replayed fails unless a callback has the same name whenever it comes, by which its replay can be told, and another
// callback has another one.
func Replayed(t *testing.T, l provider.Listener, call, another *provider.Callback) {
	t.Helper()
	var names []string
	for _, c := range []*provider.Callback{call, call, another} {
		heard, err := l.Hear(c)
		if err != nil || heard.Once == "" {
			t.Fatalf("named %q, error %v", heard.Once, err)
		}
		names = append(names, heard.Once)
	}
	if names[0] != names[1] || names[0] == names[2] {
		t.Errorf("a callback is named %q, then %q, and another one %q", names[0], names[1], names[2])
	}
}

// Hears fails unless a callback says exactly what is wanted, at the time at which it came.
func Hears(t testing.TB, l provider.Listener, c *provider.Callback, want provider.Heard) {
	t.Helper()
	heard, err := l.Hear(c)
	if err != nil {
		t.Errorf("it should say %+v: %v", want, err)
		return
	}
	for i := range want.Receipts {
		want.Receipts[i].At = c.At
	}
	for i := range want.Inbound {
		want.Inbound[i].At = c.At
	}
	same(t, "it says", heard, want)
}

// Disbelieved fails unless a callback is taken for forged and says nothing.
func Disbelieved(t testing.TB, l provider.Listener, c *provider.Callback) {
	t.Helper()
	refused(t, l, c, provider.ErrForged)
}

// Bounded fails when a callback that is refused says something, or a receipt names nothing or shows more than a code.
func Bounded(t testing.TB, heard provider.Heard, err error) {
	t.Helper()
	if err != nil {
		Hides(t, err)
		silent(t, heard)
	}
	for _, r := range heard.Receipts {
		if r.Key == "" && r.Reference == "" || len(r.Code) > maxCode {
			t.Errorf("receipt %+v", r)
		}
		Hides(t, errors.New(r.Code))
	}
}

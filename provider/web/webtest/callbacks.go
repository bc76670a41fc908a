package webtest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"dispatcher/provider"
)

// Changes are a forger's changes to a genuine callback, by name.
type Changes map[string]func(*provider.Callback)

// CheckTampered fails if a callback is still accepted after any of the changes. genuine makes a new
// one each time.
func CheckTampered(
	t *testing.T, l provider.CallbackReader, genuine func() *provider.Callback, changes Changes,
) {
	t.Helper()
	if content, err := l.ReadCallback(genuine()); err != nil ||
		len(content.Receipts)+len(content.Inbound) == 0 {
		t.Fatalf("the genuine callback reads as %+v, error %v", content, err)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, l, changed(genuine(), change), provider.ErrForged)
		})
	}
}

// changed applies a change to a copy of the callback.
func changed(c *provider.Callback, change func(*provider.Callback)) *provider.Callback {
	c.Header, c.Body = maps.Clone(c.Header), slices.Clone(c.Body)
	for name := range c.Header {
		c.Header[name] = slices.Clone(c.Header[name])
	}
	change(c)
	return c
}

// CheckRefused fails unless each of the callbacks is refused for that reason, with no content.
func CheckRefused(
	t *testing.T, l provider.CallbackReader, why error, calls map[string]*provider.Callback,
) {
	t.Helper()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, l, call, why)
		})
	}
}

func refused(t testing.TB, l provider.CallbackReader, c *provider.Callback, why error) {
	t.Helper()
	content, err := l.ReadCallback(c)
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	CheckHides(t, err)
	checkEmpty(t, content)
}

// CheckIgnored fails unless each of the callbacks is genuine and has no content.
func CheckIgnored(t *testing.T, l provider.CallbackReader, calls map[string]*provider.Callback) {
	t.Helper()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := l.ReadCallback(call)
			if err != nil {
				t.Error(err)
			}
			checkEmpty(t, content)
		})
	}
}

// Bodies are callbacks that differ only in their bodies, by body.
func Bodies(
	call func(body string) *provider.Callback, bodies ...string,
) map[string]*provider.Callback {
	calls := make(map[string]*provider.Callback, len(bodies))
	for _, body := range bodies {
		calls[body] = call(body)
	}
	return calls
}

// CheckAgeLimits fails unless callbacks are accepted up to the age of past, and up to future ahead,
// and are stale a minute beyond. aged is a genuine callback of some age.
func CheckAgeLimits(
	t *testing.T, l provider.CallbackReader, aged func(age time.Duration) *provider.Callback, past,
	future time.Duration,
) {
	t.Helper()
	for age, stale := range map[time.Duration]bool{
		0: false, past - time.Minute: false, time.Minute - future: false, past + time.Minute: true,
		-future - time.Minute: true,
	} {
		t.Run(age.String()+" old", func(t *testing.T) {
			t.Parallel()
			if stale {
				refused(t, l, aged(age), provider.ErrStale)
				return
			}
			if _, err := l.ReadCallback(aged(age)); err != nil {
				t.Error(err)
			}
		})
	}
}

// CheckSecrets fails unless a callback is accepted with the secret that signed it, alone or beside
// another one, and not without. listen is a channel with these secrets.
func CheckSecrets[S any](
	t *testing.T, listen func(secrets ...S) provider.CallbackReader, call *provider.Callback,
	signing, other S,
) {
	t.Helper()
	for name, l := range map[string]provider.CallbackReader{
		"its own": listen(signing), "its own and another": listen(signing, other),
		"another and its own": listen(other, signing),
	} {
		if content, err := l.ReadCallback(call); err != nil ||
			len(content.Receipts)+len(content.Inbound) == 0 {
			t.Errorf("with %s: content %+v, error %v", name, content, err)
		}
	}
	CheckRefused(t, listen(), provider.ErrForged,
		map[string]*provider.Callback{"without a secret": call})
	CheckRefused(t, listen(other), provider.ErrForged,
		map[string]*provider.Callback{"with another secret": call})
}

// CheckReplayID fails unless a repeated callback has the same ReplayID, and another callback a
// different one.
func CheckReplayID(t *testing.T, l provider.CallbackReader, call, another *provider.Callback) {
	t.Helper()
	var names []string
	for _, c := range []*provider.Callback{call, call, another} {
		content, err := l.ReadCallback(c)
		if err != nil || content.ReplayID == "" {
			t.Fatalf("ReplayID %q, error %v", content.ReplayID, err)
		}
		names = append(names, content.ReplayID)
	}
	if names[0] != names[1] || names[0] == names[2] {
		t.Errorf("a callback has ReplayID %q, then %q, and another one %q", names[0], names[1],
			names[2])
	}
}

// CheckContent fails unless a callback has exactly the wanted content, at the time of its arrival.
func CheckContent(
	t testing.TB, l provider.CallbackReader, c *provider.Callback, want provider.CallbackContent,
) {
	t.Helper()
	content, err := l.ReadCallback(c)
	if err != nil {
		t.Errorf("want content %+v: %v", want, err)
		return
	}
	for i := range want.Receipts {
		want.Receipts[i].At = c.At
	}
	for i := range want.Inbound {
		want.Inbound[i].At = c.At
	}
	same(t, "it says", content, want)
}

// CheckForged fails unless a callback is refused as forged.
func CheckForged(t testing.TB, l provider.CallbackReader, c *provider.Callback) {
	t.Helper()
	refused(t, l, c, provider.ErrForged)
}

// CheckBounded fails if a refused callback has content, or if a receipt names nothing or shows more
// than a code.
func CheckBounded(t testing.TB, content provider.CallbackContent, err error) {
	t.Helper()
	if err != nil {
		CheckHides(t, err)
		checkEmpty(t, content)
	}
	for _, r := range content.Receipts {
		if r.Key == "" && r.Reference == "" || len(r.Code) > maxCode {
			t.Errorf("receipt %+v", r)
		}
		CheckHides(t, errors.New(r.Code))
	}
}

// CheckStatuses fails unless each of a vendor's states, with its code, is read as the wanted
// receipt. said is a genuine callback with both; about is the message.
func CheckStatuses(
	t *testing.T, l provider.CallbackReader, about provider.Receipt,
	said func(word, code string) *provider.Callback, meant map[[2]string]provider.Receipt,
) {
	t.Helper()
	for words, want := range meant {
		call := said(words[0], words[1])
		want.Reference, want.Key, want.At = about.Reference, about.Key, call.At
		content, err := l.ReadCallback(call)
		if err != nil {
			t.Errorf("%q: %v", words, err)
			continue
		}
		same(t, words[0]+" "+words[1]+" means", content.Receipts, []provider.Receipt{want})
		if content.Inbound != nil {
			t.Errorf("%q: it contains a subscriber's message", words)
		}
	}
}

// same fails unless two values are deeply equal. It does not use package cmp, which would show the
// difference, because the sandbox links this package.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v\nwant %+v", what, got, want)
	}
}

// SameContent fails unless two contents are equal apart from the times of arrival.
func SameContent(t testing.TB, what string, got, want provider.CallbackContent) {
	t.Helper()
	same(t, what, timeless(got), timeless(want))
}

// timeless is a copy without times.
func timeless(h provider.CallbackContent) provider.CallbackContent {
	h.Receipts, h.Inbound = slices.Clone(h.Receipts), slices.Clone(h.Inbound)
	for i := range h.Receipts {
		h.Receipts[i].At = time.Time{}
	}
	for i := range h.Inbound {
		h.Inbound[i].At, h.Inbound[i].SentAt = time.Time{}, time.Time{}
	}
	return h
}

// checkEmpty fails if a callback has content.
func checkEmpty(t testing.TB, h provider.CallbackContent) {
	t.Helper()
	if len(h.Receipts)+len(h.Inbound) > 0 {
		t.Errorf("content %+v, want none", h)
	}
}

package webtest

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"dispatcher/provider"
)

// same fails unless two values are deeply equal. Package cmp would say more, but the sandbox is built with this package.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v\nwant %+v", what, got, want)
	}
}

// SameContent compares what was heard with what is wanted, whatever the time of each is.
func SameContent(t testing.TB, what string, got, want provider.CallbackContent) {
	t.Helper()
	same(t, what, timeless(got), timeless(want))
}

// timeless is what was heard without the times, and with no list rather than an empty one.
func timeless(h provider.CallbackContent) provider.CallbackContent {
	h.Receipts, h.Inbound = slices.Clone(h.Receipts), slices.Clone(h.Inbound)
	for i := range h.Receipts {
		h.Receipts[i].At = time.Time{}
	}
	for i := range h.Inbound {
		h.Inbound[i].At = time.Time{}
	}
	return h
}

// checkEmpty fails when a callback says something.
func checkEmpty(t testing.TB, h provider.CallbackContent) {
	t.Helper()
	if len(h.Receipts)+len(h.Inbound) > 0 {
		t.Errorf("it says %+v", h)
	}
}

package breaker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
)

// capableChannel has all optional capabilities.
type capableChannel struct{ *scriptedChannel }

func (capableChannel) Capabilities() provider.Capabilities {
	return provider.Capabilities{SameKeyFor: time.Hour, LookupFor: time.Hour, Receipts: true}
}

func (capableChannel) Find(_ context.Context, key string) provider.LookupResult {
	return provider.LookupResult{State: provider.Taken, Reference: "of " + key}
}

func (capableChannel) ReadCallback(c *provider.Callback) (provider.CallbackContent, error) {
	return provider.CallbackContent{ReplayID: string(c.Body)}, nil
}

func (capableChannel) Confirm(_ context.Context, c *provider.Callback) (bool, error) {
	return string(c.Body) == "once", nil
}

// TestAnOpenBreakerPassesOnCapabilitiesLookupsAndCallbacks: receipts of a channel with an open
// breaker are still processed.
func TestAnOpenBreakerPassesOnCapabilitiesLookupsAndCallbacks(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	b := breaker.New(capableChannel{outcomes(&o)}, breaker.Config{Name: "a", Failures: 1})
	sendAll(t, b, &o, provider.Unknown)
	if b.State() != breaker.Open {
		t.Fatalf("state %v, want open", b.State())
	}
	if got := b.Capabilities(); got.LookupFor == 0 || !got.Receipts || got.SameKeyFor != time.Hour {
		t.Errorf("capabilities %+v", got)
	}
	if got := b.Find(t.Context(), "k"); got.State != provider.Taken || got.Reference != "of k" {
		t.Errorf("found %+v", got)
	}
	if got, err := b.ReadCallback(&provider.Callback{Body: []byte("once")}); err != nil ||
		got.ReplayID != "once" || !b.ReadsCallbacks() {
		t.Errorf("content %+v, %v; reads %v", got, err, b.ReadsCallbacks())
	}
	if ok, err := b.Confirm(t.Context(), &provider.Callback{Body: []byte("once")}); !ok ||
		err != nil {
		t.Errorf("confirmed %v, %v", ok, err)
	}
}

func TestWithoutCapabilitiesNothingIsPromised(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	b := breaker.New(outcomes(&o), breaker.Config{Name: "a"})
	if got := b.Capabilities(); got != (provider.Capabilities{}) {
		t.Errorf("capabilities %+v", got)
	}
	if got := b.Find(t.Context(), "k"); got.State != provider.Unanswered || got.Err == nil {
		t.Errorf("found %+v", got)
	}
	if _, err := b.ReadCallback(&provider.Callback{}); !errors.Is(err, provider.ErrForged) ||
		b.ReadsCallbacks() {
		t.Errorf("content with %v; reads %v", err, b.ReadsCallbacks())
	}
	if ok, err := b.Confirm(t.Context(), &provider.Callback{}); ok || err != nil {
		t.Errorf("confirmed %v, %v", ok, err)
	}
}

package breaker

import (
	"context"
	"errors"
	"fmt"

	"dispatcher/provider"
)

// What a channel promises and hears does not depend on its health, so the breaker only passes it on:
// receipts of an open channel are welcome, and so is the answer to what became of a submission.
var (
	_ provider.Capable        = (*Breaker)(nil)
	_ provider.Finder         = (*Breaker)(nil)
	_ provider.CallbackReader = (*Breaker)(nil)
)

// errNoLookup is the LookupResult.Err of a channel that is no Finder.
var errNoLookup = errors.New("the provider cannot be asked what became of a submission")

// Capabilities are those of the channel behind the breaker; none when it does not say.
func (b *Breaker) Capabilities() provider.Capabilities {
	if c, ok := b.channel.(provider.Capable); ok {
		return c.Capabilities()
	}
	return provider.Capabilities{}
}

// Find asks the channel behind the breaker; Unanswered when it is no Finder.
func (b *Breaker) Find(ctx context.Context, key string) provider.LookupResult {
	if f, ok := b.channel.(provider.Finder); ok {
		return f.Find(ctx, key)
	}
	return provider.LookupResult{Err: errNoLookup}
}

// ReadsCallbacks reports whether the channel behind the breaker is a provider.Listener.
func (b *Breaker) ReadsCallbacks() bool {
	_, ok := b.channel.(provider.CallbackReader)
	return ok
}

// ReadCallback reads a callback with the channel behind the breaker. When that is no Listener, nobody can have
// signed for it.
func (b *Breaker) ReadCallback(c *provider.Callback) (provider.CallbackContent, error) {
	if l, ok := b.channel.(provider.CallbackReader); ok {
		return l.ReadCallback(c)
	}
	return provider.CallbackContent{}, fmt.Errorf("the channel expects no callbacks: %w", provider.ErrForged)
}

// Confirm answers the question of a provider whether its calls are wanted, with the channel behind the breaker; false
// when that has no such provider.
func (b *Breaker) Confirm(ctx context.Context, c *provider.Callback) (confirmed bool, err error) {
	asked, ok := b.channel.(interface {
		Confirm(ctx context.Context, c *provider.Callback) (bool, error)
	})
	if !ok {
		return false, nil
	}
	return asked.Confirm(ctx, c)
}

// Package breaker stops sending to a channel that is broken, so that its messages fall back to
// others at once instead of each waiting for a deadline.
//
// It wraps one provider.Channel in a circuit breaker of sony/gobreaker. What counts as a failure is
// decided here and nowhere else: see class. It does not choose another channel.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sony/gobreaker/v2"

	"dispatcher/provider"
)

// CodeOpen is the Result.Code of a submission that the breaker refused, and the reason of Ready
// while it is open.
const CodeOpen = provider.BreakerOpen

// CodeEnded is the Result.Code of a submission whose context had ended before Send.
const CodeEnded = "context_ended"

// ErrOpen is the Result.Err of a submission that the breaker refused.
var ErrOpen = errors.New("circuit breaker is open")

// The classes of an attempt besides success, as errors for the library.
var (
	errFailure  = errors.New("channel failed")
	errExcluded = errors.New("says nothing about the channel")
)

// Breaker is a provider.Channel that passes submissions on while the wrapped channel is healthy. It
// is safe for concurrent use.
type Breaker struct {
	channel provider.Channel
	circuit *gobreaker.CircuitBreaker[struct{}]
	probes  uint32
	health  *health
	unfit   *unfitRow
	closing atomic.Bool
}

var _ provider.Channel = (*Breaker)(nil)

// New wraps a channel. It panics on an invalid Config, because configuration is checked where it is
// read.
func New(ch provider.Channel, c Config) *Breaker {
	if err := c.Validate(); err != nil {
		panic(err.Error())
	}
	c = c.withDefaults()
	h := newHealth(&c)
	return &Breaker{
		channel: ch,
		circuit: gobreaker.NewCircuitBreaker[struct{}](c.settings(h)),
		probes:  c.HalfOpenMax,
		health:  h,
		unfit:   newUnfitRow(),
	}
}

// Send passes the submission on. It refuses it before any byte leaves if the breaker is open, if
// all allowed probes are in flight, or if ctx has already ended.
func (b *Breaker) Send(ctx context.Context, s provider.Submission) provider.Result {
	if err := ctx.Err(); err != nil {
		return provider.Result{
			Outcome: provider.Refused, Code: CodeEnded, Err: fmt.Errorf("not sent: %w", err),
		}
	}
	var r provider.Result
	called := false
	_, err := b.circuit.Execute(func() (struct{}, error) {
		called = true
		class := errFailure // unless the channel returns
		submit := b.health.begin()
		defer func() { b.health.end(submit, class, r.Code) }()
		r = b.channel.Send(ctx, s)
		class = b.class(ctx, s.ID, &r)
		return struct{}{}, class
	})
	if err != nil && !called {
		return provider.Result{Outcome: provider.Refused, Code: CodeOpen, Err: ErrOpen}
	}
	return r
}

// class decides what a result says about the channel's health:
//
//   - Accepted and Rejected are answers of a working provider: success.
//   - Throttled is excluded. It asks for a lower rate, which throttling handles, and would
//     otherwise open the breaker under load.
//   - Unfit is excluded. A vendor may refuse the message before it reaches what is wrong with the
//     account, so counting it as success would hide failures and close a half-open breaker on a
//     channel that takes nothing. Beyond maxUnfit messages in a row it is a failure.
//   - A context that was cancelled, or that ended before a byte left, is ours: excluded. A deadline
//     that passed without an answer is the provider's: failure.
//   - A submission that was too late, or that the adapter cannot write (Uncomposed), is ours:
//     excluded. If a channel without free slots is broken, the answers to submissions that have a
//     slot show it. After Close, refusals and missing answers are ours, too.
func (b *Breaker) class(ctx context.Context, id string, r *provider.Result) error {
	switch r.Outcome {
	case provider.Accepted, provider.Rejected:
		b.unfit.end()
		return nil
	case provider.Throttled:
		return errExcluded
	case provider.Refused:
		if ctx.Err() != nil || r.Code == provider.Late || r.Code == provider.DeadlinePassed ||
			r.Code == provider.Uncomposed || b.closing.Load() {
			return errExcluded
		}
		if r.Unfit && !b.unfit.add(id) {
			return errExcluded
		}
		return errFailure
	case provider.Unknown:
		if errors.Is(ctx.Err(), context.Canceled) || b.closing.Load() {
			return errExcluded
		}
		return errFailure
	}
	return errFailure
}

// Ready is false with CodeOpen while the breaker is open or no further probe is allowed. Otherwise
// the channel answers, with provider.Probing if only a probe is allowed. Send decides again.
func (b *Breaker) Ready() (ok bool, why string) {
	switch b.State() {
	case Open:
		return false, CodeOpen
	case HalfOpen:
		if n := b.circuit.Counts(); n.Requests >= b.probes+n.TotalExclusions {
			return false, CodeOpen
		}
		if ok, why = b.channel.Ready(); ok {
			why = provider.Probing
		}
		return ok, why
	case Closed:
	}
	return b.channel.Ready()
}

// State is the state of the breaker now.
func (b *Breaker) State() State { return stateOf(b.circuit.State()) }

// Close closes the wrapped channel in any state.
func (b *Breaker) Close(ctx context.Context) error {
	b.closing.Store(true)
	return b.channel.Close(ctx)
}

// Capabilities and callbacks of a channel do not depend on its health, so the breaker passes these
// calls on in any state: receipts and lookups work while it is open.
var (
	_ provider.Capable        = (*Breaker)(nil)
	_ provider.Finder         = (*Breaker)(nil)
	_ provider.CallbackReader = (*Breaker)(nil)
)

// errNoLookup is the LookupResult.Err of a channel that is not a Finder.
var errNoLookup = errors.New("the provider cannot be asked what became of a submission")

// Capabilities returns what the wrapped channel offers; nothing if it is not Capable.
func (b *Breaker) Capabilities() provider.Capabilities {
	if c, ok := b.channel.(provider.Capable); ok {
		return c.Capabilities()
	}
	return provider.Capabilities{}
}

// Find asks the wrapped channel; Unanswered if it is not a Finder.
func (b *Breaker) Find(ctx context.Context, key string) provider.LookupResult {
	if f, ok := b.channel.(provider.Finder); ok {
		return f.Find(ctx, key)
	}
	return provider.LookupResult{Err: errNoLookup}
}

// ReadsCallbacks reports whether the wrapped channel is a provider.CallbackReader.
func (b *Breaker) ReadsCallbacks() bool {
	_, ok := b.channel.(provider.CallbackReader)
	return ok
}

// ReadCallback reads a callback with the wrapped channel. If that is not a CallbackReader, the
// callback is forged.
func (b *Breaker) ReadCallback(c *provider.Callback) (provider.CallbackContent, error) {
	if l, ok := b.channel.(provider.CallbackReader); ok {
		return l.ReadCallback(c)
	}
	return provider.CallbackContent{},
		fmt.Errorf("the channel expects no callbacks: %w", provider.ErrForged)
}

// Confirm answers a provider's request to confirm a subscription with the wrapped channel; false if
// its provider has no such request.
func (b *Breaker) Confirm(ctx context.Context, c *provider.Callback) (confirmed bool, err error) {
	asked, ok := b.channel.(interface {
		Confirm(ctx context.Context, c *provider.Callback) (bool, error)
	})
	if !ok {
		return false, nil
	}
	return asked.Confirm(ctx, c)
}

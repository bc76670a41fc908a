package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dispatcher/provider"
)

// API is what an adapter knows of its vendor. Both methods are pure.
type API interface {
	// Compose writes a submission of a whole text as a request. An error means that this channel cannot send such a message, which
	// another one may; an Unsendable means that no provider could. It shows no number and no text.
	Compose(s *provider.Submission) (*Request, error)
	// Classify reads an answer. What it cannot read is Unknown, and so is what it accepts under a reference longer than
	// provider.MaxReference: Channel sees to that. Answer.Result makes a result of a Meaning.
	Classify(a *Answer) provider.Result
}

// Channel is a provider.Channel over an HTTP API. Adapters embed it.
type Channel struct {
	client *Client
	api    API

	mu     sync.Mutex
	closed bool            // guarded by mu
	busy   sync.WaitGroup  // sends under way; Add under mu, while not closed
	ctx    context.Context // ends when Close has lost its patience
	cancel context.CancelFunc
}

var _ provider.Channel = (*Channel)(nil)

// New returns a channel. Connections come up with the first submissions.
func New(cfg Config, api API) *Channel {
	c := &Channel{client: NewClient(cfg), api: api}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// errParts keeps the rest of a text back that another kind of channel had under the same name before: with the rest the vendor would
// get the parts once more that have been taken.
var errParts = errors.New("the vendor takes whole texts only, and parts of this one have been taken")

// Send submits a message with one request. It sends no single parts.
func (c *Channel) Send(ctx context.Context, s provider.Submission) provider.Result {
	leave, ok := c.enter()
	if !ok {
		return provider.Result{Outcome: provider.Refused, Code: provider.Closed, Err: errors.New("the channel is closed")}
	}
	defer leave()
	if s.Parts != nil {
		return uncomposed(errParts)
	}
	if why := s.Withheld(time.Now()); why != "" {
		return withheld(why)
	}
	ctx, end := c.bound(ctx)
	defer end()
	answer, failed := c.client.Call(ctx, s.Begins(), func() (*Request, error) { return c.api.Compose(&s) })
	switch {
	case failed != nil && failed.Code == provider.Late && s.Expired(time.Now()):
		return withheld(provider.DeadlinePassed)
	case failed != nil:
		return *failed
	}
	answer.OwnSender = s.OwnSender
	if r := c.api.Classify(answer); len(r.Reference) <= provider.MaxReference {
		return r
	}
	return answer.Unreadable("")
}

// Unsendable is an error of Compose that blames the message: no provider could send it, however its channel is set up.
type Unsendable string

// Error implements error.
func (u Unsendable) Error() string { return string(u) }

// uncomposed is the result of a submission that could not be written. The message is at fault only when the adapter is
// certain of it: a sender that is missing, or a limit of one vendor, is the channel's.
func uncomposed(err error) provider.Result {
	r := provider.Result{Outcome: provider.Refused, Code: provider.Uncomposed, Err: fmt.Errorf("compose the request: %w", err)}
	if _, ok := errors.AsType[Unsendable](err); ok {
		r.Outcome, r.Code = provider.Rejected, "unsendable"
	}
	return r
}

// Ask makes a request beside submissions, such as a look at what became of one.
func (c *Channel) Ask(ctx context.Context, r *Request) (*Answer, error) {
	leave, ok := c.enter()
	if !ok {
		return nil, errors.New("the channel is closed")
	}
	defer leave()
	ctx, end := c.bound(ctx)
	defer end()
	answer, failed := c.client.Call(ctx, time.Time{}, func() (*Request, error) { return r, nil })
	if failed != nil {
		return nil, failed.Err
	}
	return answer, nil
}

// enter counts a call; false when the channel is closed.
func (c *Channel) enter() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	c.busy.Add(1)
	return c.busy.Done, true
}

// bound ends a call's context with the channel's.
func (c *Channel) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Ready is true until Close: whether the API can be reached shows with the next submission, and the
// breaker remembers it.
func (c *Channel) Ready() (ok bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, provider.Closed
	}
	return true, ""
}

// Close waits for the calls under way until ctx ends, cuts off what is left then, and drops the
// connections.
func (c *Channel) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.busy.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("close with calls under way: %w", ctx.Err())
		c.cancel()
		<-done
	}
	c.cancel()
	c.client.Close()
	return err
}

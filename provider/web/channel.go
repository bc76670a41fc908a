// Package web is the shared base of adapters for HTTP APIs: one submission makes at most one
// request, whatever fails.
// An adapter writes a submission as a Request and reads an Answer as a provider.Result; both are
// pure functions. This package does the rest: it keeps connections, detects whether a byte has
// left, observes deadlines, refuses addresses of private networks, and keeps numbers, texts and
// secrets out of errors. Signatures, fields and codes belong to the adapters.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"dispatcher/provider"
)

// API is what an adapter knows of its vendor. Both methods are pure.
type API interface {
	// Compose writes a submission of a whole text as a request. An error means that this channel
	// cannot send the message; an Unsendable means that no provider could. It shows no number and
	// no text.
	Compose(s *provider.Submission) (*Request, error)
	// Classify reads an answer. An unreadable answer is Unknown. Channel makes an acceptance with a
	// reference longer than provider.MaxReference Unknown, too. Answer.Result turns a Meaning into
	// a result.
	Classify(a *Answer) provider.Result
}

// Channel is a provider.Channel over an HTTP API. Adapters embed it.
type Channel struct {
	client *Client
	api    API

	mu     sync.Mutex
	closed bool            // guarded by mu
	busy   sync.WaitGroup  // sends in flight; Add under mu, while not closed
	ctx    context.Context // ends with the context of Close
	cancel context.CancelFunc
}

var _ provider.Channel = (*Channel)(nil)

// New returns a channel. Connections are made by the first submissions.
func New(cfg Config, api API) *Channel {
	c := &Channel{client: NewClient(cfg), api: api}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// errParts refuses the rest of a text if another kind of channel had this name before: the vendor
// takes whole texts only, and would send the accepted parts again.
var errParts = errors.New(
	"the vendor takes whole texts only, and parts of this one have been taken")

// Send submits a message with one request. It does not send single parts.
func (c *Channel) Send(ctx context.Context, s provider.Submission) provider.Result {
	leave, ok := c.enter()
	if !ok {
		return provider.Result{
			Outcome: provider.Refused, Code: provider.Closed,
			Err: errors.New("the channel is closed"),
		}
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
	answer, failed := c.client.Call(ctx, s.Begins(),
		func() (*Request, error) { return c.api.Compose(&s) })
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

// Unsendable is an error of Compose: no provider could send the message, however its channel is
// configured.
type Unsendable string

// Error implements error.
func (u Unsendable) Error() string { return string(u) }

// uncomposed is the result of a submission that could not be written. Only an Unsendable is the
// message's fault; a missing sender or a limit of one vendor is the channel's.
func uncomposed(err error) provider.Result {
	r := provider.Result{
		Outcome: provider.Refused, Code: provider.Uncomposed,
		Err: fmt.Errorf("compose the request: %w", err),
	}
	if _, ok := errors.AsType[Unsendable](err); ok {
		r.Outcome, r.Code = provider.Rejected, "unsendable"
	}
	return r
}

// Ask makes a request other than a submission, such as a lookup.
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

// enter counts a call; false if the channel is closed.
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

// Ready is true until Close. The next submission shows whether the API can be reached; the breaker
// keeps that state.
func (c *Channel) Ready() (ok bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, provider.Closed
	}
	return true, ""
}

// Close waits for the calls in flight until ctx ends, then cancels them, and closes the
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

// withheld is the result of a submission whose time ended before a byte left.
func withheld(code string) provider.Result {
	err := errors.New("its latest time came before it could leave")
	if code == provider.DeadlinePassed {
		err = errors.New("its deadline passed before it could leave")
	}
	return provider.Result{Outcome: provider.Refused, Code: code, Err: err}
}

// cause is the bounded code for an error of net/http.
func cause(err error) string {
	var unknownAuthority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, errPrivate):
		return "private_address"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		timeout(err):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "ended"
	case errors.As(err, &unknownAuthority), errors.As(err, &hostname), errors.As(err, &certificate):
		return "tls"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &op) && op.Op == "dial":
		return "dial"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_lost"
	case errors.Is(err, errTooLong):
		return "answer_too_long"
	}
	return "transport"
}

func timeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// withoutURL removes the URL from an error of net/http, because its query may hold a number or a
// text. The rest contains at most names of hosts.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Lookup asks an API for the list of messages with a submission's key.
type Lookup struct {
	Request *Request
	// Read reads a successful answer: what the list says about the key (State is Unanswered if the
	// key is not in it), and how many entries it has. An error means that there is no list.
	Read func(body []byte) (found provider.LookupResult, entries int, err error)
	// AbsenceIsCertain reads an empty list as NotTaken. Otherwise the message may still appear
	// later.
	AbsenceIsCertain bool
}

// LookUp asks the API about the submission with a key. An adapter's Find is one call of it.
func (c *Channel) LookUp(ctx context.Context, key string, l Lookup) provider.LookupResult {
	if key == "" {
		return provider.LookupResult{Err: errors.New("the submission had no key")}
	}
	answer, err := c.Ask(ctx, l.Request)
	if err != nil {
		return provider.LookupResult{Err: err}
	}
	return l.Result(answer)
}

// Result reads an answer. Only a list that holds the key, or an empty list, answers the question.
func (l Lookup) Result(answer *Answer) provider.LookupResult {
	if answer.Status != http.StatusOK {
		return provider.LookupResult{
			Err: fmt.Errorf("the API answers the lookup with status %d", answer.Status),
		}
	}
	found, entries, err := l.Read(answer.Body)
	switch {
	case err != nil:
		return provider.LookupResult{Err: errors.New("the answer to the lookup cannot be read")}
	case found.State != provider.Unanswered:
		return found
	case entries > 0:
		return provider.LookupResult{
			Err: errors.New("the answer to the lookup is about other messages"),
		}
	case l.AbsenceIsCertain:
		return provider.LookupResult{State: provider.NotTaken}
	}
	return provider.LookupResult{
		Err: errors.New("nothing is known under the key; it may still show up"),
	}
}

// ErrNoList is what Lookup.Read returns for an answer without a list.
var ErrNoList = errors.New("the answer holds no list")

package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"dispatcher/provider"
)

// A request states how long its message is valid, and some are signed with the time. So it is
// written at most maxAge before its first byte leaves. If it waited longer than rewriteAfter for a
// connection, it is written again.
const (
	maxAge       = time.Second
	rewriteAfter = 100 * time.Millisecond
)

// maxTries bounds the tries of one call. A kept connection that is dead is replaced by a new one,
// and a request that was written too early is written again.
const maxTries = 4

// call is one request in flight.
type call struct {
	latest  time.Time // no byte leaves from then on; zero sets no bound
	compose func() (*Request, error)
	request *Request
	target  *url.URL
	written time.Time // when request was composed

	unwritten error // why compose could not write it
	left      bool  // a byte of it may have left
	again     bool  // it failed before a byte left, and a second try may succeed
}

// write composes the request unless that was just done.
func (c *Client) write(call *call) error {
	if call.request != nil && time.Since(call.written) < rewriteAfter {
		return nil
	}
	call.written = time.Now()
	if call.request, call.unwritten = call.compose(); call.unwritten == nil {
		call.target, call.unwritten = c.target(call.request.URL)
	}
	return call.unwritten
}

// bound is when the request may no longer start.
func (c *call) bound() time.Time {
	bound := c.written.Add(maxAge)
	if !c.latest.IsZero() && c.latest.Before(bound) {
		return c.latest
	}
	return bound
}

// tooLate reports whether the request may no longer start.
func (c *call) tooLate() bool { return !c.latest.IsZero() && !time.Now().Before(c.latest) }

// Call makes a request and returns the answer, or the result of a call without one: Refused if no
// byte can have left, Unknown otherwise. latest bounds the start like Submission.Latest; zero sets
// no bound. compose writes the request, again if the first one has waited.
func (c *Client) Call(
	ctx context.Context, latest time.Time, compose func() (*Request, error),
) (*Answer, *provider.Result) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	call := &call{latest: latest, compose: compose}
	// A request that cannot be written needs no connection.
	if err := c.write(call); err != nil {
		return nil, call.failure(ctx, err)
	}
	begin := ctx
	if !latest.IsZero() {
		begin, cancel = context.WithDeadline(ctx, latest)
		defer cancel()
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-begin.Done():
		return nil, call.failure(ctx, begin.Err())
	}
	for tries := 1; ; tries++ {
		answer, err := c.try(ctx, begin, call, tries > 1)
		if err == nil {
			return answer, nil
		}
		if tries == maxTries || !call.again || begin.Err() != nil {
			return nil, call.failure(ctx, err)
		}
	}
}

// try sends the request once. begin ends when it may no longer start.
func (c *Client) try(ctx, begin context.Context, call *call, fresh bool) (*Answer, error) {
	call.again = false
	k, err := c.connection(begin, call.target, fresh)
	if err != nil {
		return nil, err
	}
	err = begin.Err()
	if err == nil {
		err = c.write(call)
	}
	if err != nil { // the connection is still usable
		c.idle.put(k)
		return nil, err
	}
	asked := call.request
	request, err := http.NewRequestWithContext(ctx, asked.Method, call.target.String(), body(asked))
	if err != nil {
		c.idle.put(k)
		return nil, err
	}
	return c.exchange(k, call, addHeader(request, asked.Header))
}

// exchange sends the request over a connection. The first write checks the clock right before the
// system call, see wire.
func (c *Client) exchange(k *conn, call *call, request *http.Request) (*Answer, error) {
	before := k.wire.begin(call.bound())
	answer, err := receive(k, request)
	if err != nil {
		_ = k.Close()
		call.left = k.wire.written.Load() > before
		call.again = !call.left && (k.kept || !time.Now().Before(call.written.Add(maxAge)))
		return nil, err
	}
	k.wire.asking.Store(false)
	c.idle.put(k)
	return answer, nil
}

// receive sends a request and reads the whole answer.
func receive(k *conn, request *http.Request) (*Answer, error) {
	response, err := k.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read as far as it is wanted
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLong
	}
	if err != nil {
		return nil, err
	}
	return &Answer{
		Status: response.StatusCode, Header: response.Header, Body: body, At: time.Now(),
	}, nil
}

// failure is the result of a call without an answer.
func (c *call) failure(ctx context.Context, err error) *provider.Result {
	word := cause(err)
	switch {
	case c.unwritten != nil:
		failed := uncomposed(c.unwritten)
		return &failed
	case c.left:
		err = fmt.Errorf("no answer: %s", word)
		return &provider.Result{Outcome: provider.Unknown, Code: word, Err: err}
	case c.tooLate():
		late := withheld(provider.Late)
		return &late
	case ctx.Err() != nil:
		err = fmt.Errorf("ended before a byte had left: %s", word)
		return &provider.Result{Outcome: provider.Refused, Code: "ended", Err: err}
	}
	err = fmt.Errorf("not sent: %w", withoutURL(err))
	return &provider.Result{Outcome: provider.Refused, Code: word, Err: err}
}

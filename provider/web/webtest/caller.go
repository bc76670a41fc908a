package webtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// Limits of a carrier's callbacks.
const (
	callers     = 32 // calls in flight at once
	firstPause  = 200 * time.Millisecond
	maxPause    = 10 * time.Second
	giveUpAfter = 5 * time.Minute // until an unanswered call is dropped
)

// caller makes the callbacks of a carrier.
type caller struct {
	client  *http.Client
	gate    chan struct{} // one token for each call in flight
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newCaller() *caller {
	c := &caller{
		client: &http.Client{
			Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: callers},
		},
		gate: make(chan struct{}, callers),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// after runs a function after d, unless the carrier is closed before.
func (c *caller) after(d time.Duration, run func(ctx context.Context)) {
	c.running.Go(func() {
		if c.pause(d) {
			run(c.ctx)
		}
	})
}

func (c *caller) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// callUntilAccepted calls until the answer is a 2xx, with pauses that double, as vendors do.
// refused is called after each other answer. A pause holds no slot.
func (c *caller) callUntilAccepted(ctx context.Context, r *http.Request, refused func()) {
	body, err := contents(r)
	if err != nil {
		return
	}
	began, pause := time.Now(), firstPause
	for {
		taken, err := c.callWithSlot(ctx, r, body)
		if taken || err != nil {
			return
		}
		refused()
		if time.Since(began) > giveUpAfter || !c.pause(pause) {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// callWithSlot makes a call when fewer than callers are in flight, and reports whether it was
// accepted. An error means that the carrier is closed.
func (c *caller) callWithSlot(
	ctx context.Context, r *http.Request, body []byte,
) (taken bool, err error) {
	select {
	case c.gate <- struct{}{}:
	case <-c.ctx.Done():
		return false, c.ctx.Err()
	}
	defer func() { <-c.gate }()
	again := r.Clone(ctx)
	again.Body = io.NopCloser(bytes.NewReader(body))
	status, err := c.call(ctx, again)
	if err != nil {
		return false, c.ctx.Err()
	}
	return status/100 == 2, nil
}

func contents(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	return io.ReadAll(r.Body)
}

// call returns the status of the answer.
func (c *caller) call(ctx context.Context, r *http.Request) (int, error) {
	response, err := c.client.Do(r.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // its body is not used
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (c *caller) close() {
	c.cancel()
	c.running.Wait()
	c.client.CloseIdleConnections()
}

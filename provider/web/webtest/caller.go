package webtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// How a carrier calls back.
const (
	callers    = 32 // calls under way at once
	tries      = 5
	firstPause = 200 * time.Millisecond
)

// caller makes the calls of a carrier.
type caller struct {
	client  *http.Client
	gate    chan struct{} // one token for each call under way
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newCaller() *caller {
	c := &caller{
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: callers}},
		gate:   make(chan struct{}, callers),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// after runs a call some time from now, unless the carrier is closed before.
func (c *caller) after(d time.Duration, run func(ctx context.Context)) {
	c.running.Go(func() {
		if !c.pause(d) {
			return
		}
		select {
		case c.gate <- struct{}{}:
			run(c.ctx)
			<-c.gate
		case <-c.ctx.Done():
		}
	})
}

func (c *caller) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// insist calls until the answer is a 2xx, a few times, as vendors do.
func (c *caller) insist(ctx context.Context, r *http.Request) {
	body, err := contents(r)
	if err != nil {
		return
	}
	pause := firstPause
	for range tries {
		again := r.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		if status, err := c.call(ctx, again); err == nil && status/100 == 2 {
			return
		}
		if !c.pause(pause) {
			return
		}
		pause *= 2
	}
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
	defer response.Body.Close() //nolint:errcheck // nothing in it is wanted
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (c *caller) close() {
	c.cancel()
	c.running.Wait()
	c.client.CloseIdleConnections()
}

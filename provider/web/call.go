package web

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// call is what is known of one request on its way.
type call struct {
	latest  time.Time
	late    atomic.Bool // its latest came before a connection did
	got     atomic.Bool // it was given a connection
	reused  atomic.Bool // which had carried others before
	shared  atomic.Bool // which carries others beside it: it speaks HTTP/2
	began   atomic.Bool // its header is being written
	ended   atomic.Bool // its context had ended when the transport gave up
	conn    atomic.Pointer[wire]
	written atomic.Int64 // what that connection had carried when the call got it
}

// trace watches for the connection and, until there is one, for the latest.
func (c *call) trace(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := cancel
	if !c.latest.IsZero() {
		timer := time.AfterFunc(time.Until(c.latest), func() {
			if !c.got.Load() {
				c.late.Store(true)
				cancel()
			}
		})
		stop = func() { timer.Stop(); cancel() }
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: c.connected, WroteHeaderField: func(string, []string) { c.began.Store(true) },
	}), stop
}

func (c *call) connected(info httptrace.GotConnInfo) {
	w := below(info.Conn)
	if w != nil {
		c.written.Store(w.written.Load())
	}
	c.conn.Store(w)
	c.shared.Store(overHTTP2(info.Conn))
	c.reused.Store(info.Reused)
	c.got.Store(true)
}

// left reports whether a byte of the request may have left. Over HTTP/1 the transport has stopped writing when it
// gives up, and the connection's count tells. Over HTTP/2 others write to the connection, too, and the request's
// own writer goes on for a moment after its context has ended; only when the transport gave up by itself, and before it
// had begun with the header, nothing has left.
func (c *call) left() bool {
	if !c.got.Load() {
		return false
	}
	if c.shared.Load() {
		return c.began.Load() || c.ended.Load()
	}
	w := c.conn.Load()
	return w == nil || w.written.Load() > c.written.Load()
}

// stale reports whether the call failed because the other side had closed a kept connection, which took no
// byte: the next one may be sound. Over HTTP/2 the transport looks for another connection itself, and what fails
// there before a byte, such as a header longer than the peer allows, would fail again.
func (c *call) stale() bool { return c.reused.Load() && !c.shared.Load() && !c.left() }

package receive

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// maxUnreceived bounds the requests of one address (of IPv6: one /64) that have begun and are not
// complete, to half of all that may be. A provider that sends its receipts all at once needs
// hundreds of them for a moment, and may not call again if one is refused. An address that sends
// many requests slowly leaves the other half to others.
const maxUnreceived = 512

// bounded is a listener that holds at most so many connections; more wait in the system's queue
// until one has ended. Of one address it holds at most so many whose request has not come whole;
// more are closed.
type bounded struct {
	net.Listener
	free chan struct{} // one token for each connection
	done chan struct{} // closed by Close
	once sync.Once

	share      int // of one address
	mu         sync.Mutex
	unreceived map[netip.Addr]int // guarded by mu
}

func newBounded(l net.Listener, connections, share int) *bounded {
	return &bounded{
		Listener: l, free: make(chan struct{}, connections), done: make(chan struct{}),
		share: share, unreceived: map[netip.Addr]int{},
	}
}

// Accept waits for a connection and for room for it.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			<-b.free
			return nil, err
		}
		c := &counted{Conn: conn, from: b, address: addressOf(conn)}
		if c.begin() {
			return c, nil
		}
		c.end()
		_ = conn.Close() // its caller has room again when one of its requests has come whole
	}
}

// networkBits is the part of an IPv6 address that is counted as one caller. The rest is free to
// whoever has a network.
const networkBits = 64

// addressOf is where a connection comes from; of an IPv6 address it is the network. The zero
// address stands for what has none.
func addressOf(conn net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	address := ap.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address
	}
	return netip.PrefixFrom(address, networkBits).Masked().Addr()
}

// Close ends the listener, also while it waits for room.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted is a connection that gives its room back when it is closed.
type counted struct {
	net.Conn
	once    sync.Once
	from    *bounded
	address netip.Addr
	pending bool // guarded by from.mu: a request has begun and has not come whole
	above   bool // guarded by from.mu: it was one too many of its address
}

// begin notes that a request begins, and reports whether its address may have one more.
func (c *counted) begin() bool {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if !c.pending {
		c.pending = true
		c.from.unreceived[c.address]++
	}
	c.above = c.from.unreceived[c.address] > c.from.share
	return !c.above
}

// end notes that the request has come whole, or will never.
func (c *counted) end() {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if !c.pending {
		return
	}
	c.pending = false
	if c.from.unreceived[c.address]--; c.from.unreceived[c.address] == 0 {
		delete(c.from.unreceived, c.address)
	}
}

// Close may be called more than once.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.end()
		<-c.from.free
	})
	return c.Conn.Close()
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is the server's ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, countedOf(conn))
}

// countedOf finds the counted connection, which may be under TLS; nil where there is none.
func countedOf(conn net.Conn) *counted {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*counted)
	return c
}

// follow is the server's ConnState: on a kept connection a request begins with its first byte.
func follow(conn net.Conn, state http.ConnState) {
	c := countedOf(conn)
	switch {
	case c == nil:
	case state == http.StateActive:
		c.begin()
	case state == http.StateIdle: // also one whose body was of no interest
		c.end()
	}
}

// received notes that a request has come whole.
func received(r *http.Request) {
	if c, _ := r.Context().Value(connKey{}).(*counted); c != nil {
		c.end()
	}
}

// aboveShare reports whether a request on a kept connection is one too many of its address.
func aboveShare(r *http.Request) bool {
	c, _ := r.Context().Value(connKey{}).(*counted)
	if c == nil {
		return false
	}
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	return c.above
}

const (
	// rollout is how long a channel that nobody knows may be one of a newer routing than this
	// instance has read. Its provider is asked to call again meanwhile.
	rollout = time.Minute
	// maxUnknown bounds how many names are remembered, for unknownMemory at least. Strangers can
	// call under any. A name beyond them may be that of a new channel, so its caller is asked to
	// call again, which needs no memory.
	maxUnknown    = 1000
	unknownMemory = 10 * time.Minute
)

// unknownChannels remembers since when callbacks name channels that the routing does not have. It
// is safe for concurrent use.
type unknownChannels struct {
	mu    sync.Mutex
	since map[string]time.Time // guarded by mu
	began time.Time            // guarded by mu: when the first of them was seen
}

// verdict is notYet for a name that was first seen a short while ago, and for one that is not
// remembered.
func (u *unknownChannels) verdict(name string, now time.Time) verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil || now.Sub(u.began) > unknownMemory {
		u.since, u.began = map[string]time.Time{}, now
	}
	since, seen := u.since[name]
	switch {
	case !seen:
		if len(u.since) < maxUnknown {
			u.since[name] = now
		}
		return notYet
	case now.Sub(since) < rollout:
		return notYet
	}
	return noChannel
}

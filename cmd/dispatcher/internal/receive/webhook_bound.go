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

// maxUnreceived bounds the incomplete requests of one address (for IPv6: one /64) to half of all
// connections. Hundreds must be possible: a provider may send its receipts all at once, and may not
// call again if one is refused. The bound leaves the other half to others when an address sends
// many requests slowly.
const maxUnreceived = 512

// bounded is a listener with two bounds: on all connections (more wait in the system's queue until
// one ends), and on the connections of one address with an incomplete request (more are closed).
type bounded struct {
	net.Listener
	free chan struct{} // one token for each connection
	done chan struct{} // closed by Close
	once sync.Once

	share      int // most incomplete requests of one address
	mu         sync.Mutex
	unreceived map[netip.Addr]int // guarded by mu
}

func newBounded(l net.Listener, connections, share int) *bounded {
	return &bounded{
		Listener: l, free: make(chan struct{}, connections), done: make(chan struct{}),
		share: share, unreceived: map[netip.Addr]int{},
	}
}

// Accept waits for a free place and then for a connection.
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
		_ = conn.Close() // too many incomplete requests of its address
	}
}

// networkBits is the length of the IPv6 prefix that counts as one caller. Its owner can use any
// address below it.
const networkBits = 64

// addressOf is the remote address of a connection; for IPv6 the network. It is the zero address
// when there is none.
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

// Close ends the listener, also while Accept waits for a free place.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted is a connection of bounded. Closing it frees its place.
type counted struct {
	net.Conn
	once    sync.Once
	from    *bounded
	address netip.Addr
	pending bool // guarded by from.mu: its request is incomplete
	above   bool // guarded by from.mu: its request was above the share of its address
}

// begin counts an incomplete request, and reports whether its address is within its share.
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

// end counts the request as complete. It is also called when the connection closes.
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

// follow is the server's ConnState. On a kept connection it counts a request from its first byte.
func follow(conn net.Conn, state http.ConnState) {
	c := countedOf(conn)
	switch {
	case c == nil:
	case state == http.StateActive:
		c.begin()
	case state == http.StateIdle: // also after a request whose body was not read
		c.end()
	}
}

// received counts a request as complete.
func received(r *http.Request) {
	if c, _ := r.Context().Value(connKey{}).(*counted); c != nil {
		c.end()
	}
}

// aboveShare reports whether a request on a kept connection is above the share of its address.
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
	// rollout is how long an unknown channel may belong to a newer routing than this instance has
	// read. Until then its provider is asked to call again.
	rollout = time.Minute
	// maxUnknown bounds how many unknown names are remembered: anybody can call with any name. They
	// are forgotten together, unknownMemory after the first of them came. The caller with a further
	// name is asked to call again, because it may be that of a new channel.
	maxUnknown    = 1000
	unknownMemory = 10 * time.Minute
)

// unknownChannels remembers when callbacks first named channels that the routing does not have. It
// is safe for concurrent use.
type unknownChannels struct {
	mu    sync.Mutex
	since map[string]time.Time // guarded by mu
	began time.Time            // guarded by mu: when the first of them was seen
}

// verdict is notYet for a name that was first seen less than rollout ago, and for one that cannot
// be remembered; else noChannel.
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

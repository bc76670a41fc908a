package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one HTTP/1.1 connection. It carries one request at a time, so a call knows which bytes
// are its own, and a broken connection leaves one message without an answer.
type conn struct {
	*http.ClientConn
	wire   *wire
	origin string
	kept   bool        // it was idle before, so the server may have closed it
	expiry *time.Timer // closes it after idleTimeout without use
}

// idleConns are the connections that no call uses.
type idleConns struct {
	mu     sync.Mutex
	by     map[string][]*conn // guarded by mu: per origin, the last used at the end
	closed bool               // guarded by mu
}

// take returns the open connection to an origin that was used last; nil if there is none.
func (i *idleConns) take(origin string) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	for list := i.by[origin]; len(list) > 0; {
		k := list[len(list)-1]
		list = list[:len(list)-1]
		i.by[origin] = list
		if k.expiry.Stop() && k.Available() > 0 {
			return k
		}
		_ = k.Close()
	}
	return nil
}

// put keeps a connection for the next call, or closes it if it cannot be used again.
func (i *idleConns) put(k *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || k.Available() == 0 {
		_ = k.Close()
		return
	}
	k.kept, k.expiry = true, time.AfterFunc(idleTimeout, func() { _ = k.Close() })
	i.by[k.origin] = append(i.by[k.origin], k)
}

// close closes all of them; connections that are put back later are closed at once.
func (i *idleConns) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for _, list := range i.by {
		for _, k := range list {
			k.expiry.Stop()
			_ = k.Close()
		}
	}
	i.by = nil
}

// connection returns an idle connection to the origin of an address, or makes one.
func (c *Client) connection(ctx context.Context, to *url.URL, fresh bool) (*conn, error) {
	origin := to.Scheme + "://" + to.Host
	if !fresh {
		if k := c.idle.take(origin); k != nil {
			return k, nil
		}
	}
	k := &conn{origin: origin}
	t := NewTransport(&c.cfg)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		below, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		k.wire = &wire{Conn: below}
		return k.wire, nil
	}
	var err error
	k.ClientConn, err = t.NewClientConn(ctx, to.Scheme, net.JoinHostPort(to.Hostname(), to.Port()))
	if err != nil {
		return nil, err
	}
	return k, nil
}

// wire is a TCP connection, below TLS, that counts written bytes and checks the clock before the
// first byte of a request.
type wire struct {
	net.Conn
	written atomic.Int64
	latest  atomic.Pointer[time.Time] // bounds the first byte of a request that has not begun
	asking  atomic.Bool               // a request has begun, and its answer has not been read
}

// errTooLate refuses a write after the latest start.
var errTooLate = errors.New("its time is over")

// begin starts a request whose first byte must leave before latest, and returns how many bytes left
// before the request.
func (w *wire) begin(latest time.Time) int64 {
	w.latest.Store(&latest)
	w.asking.Store(true)
	return w.written.Load()
}

// Close drops what the system has not sent of a request without an answer. It would send that for
// minutes, also after a lookup has said that the provider did not get the message.
func (w *wire) Close() error {
	if below, ok := w.Conn.(*net.TCPConn); ok && w.asking.Load() {
		_ = below.SetLinger(0)
	}
	return w.Conn.Close()
}

// Write counts before it writes, because a byte that may be on the wire has left, and then
// subtracts what the system did not accept: a write to a connection that was reset sends nothing.
// After a refused write the connection writes nothing more, because the rest of that request, or
// the TLS close alert, would follow.
func (w *wire) Write(p []byte) (int, error) {
	if latest := w.latest.Load(); latest != nil {
		if !time.Now().Before(*latest) {
			return 0, errTooLate
		}
		w.latest.Store(nil)
	}
	w.written.Add(int64(len(p)))
	n, err := w.Conn.Write(p)
	w.written.Add(int64(n - len(p)))
	return n, err
}

// errPrivate is the error of a refused dial.
var errPrivate = errors.New(
	"the address lies in a private network; set allow_private if it is meant")

// special are ranges that package netip does not name: shared address space (RFC 6598), this
// network (RFC 791), protocol assignments (RFC 6890), benchmarking (RFC 2544), reserved (RFC 1112),
// site-local addresses (RFC 3879), and IPv6 forms that carry an IPv4 address (RFC 4291, RFC 6052,
// RFC 3056, RFC 4380).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

// refusePrivate is a net.Dialer's Control. It sees the resolved address, so that no name can point
// to a private network, not even by resolving differently the second time.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("resolved address: %w", err)
	}
	if !Public(ap.Addr()) {
		return errPrivate
	}
	return nil
}

// Public reports whether an address belongs to the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

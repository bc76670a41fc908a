package web

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// conn is one connection of HTTP/1.1: it carries one request at a time, so a call knows which bytes
// are its own, and a connection that breaks leaves one message without an answer.
type conn struct {
	*http.ClientConn
	wire   *wire
	origin string
	kept   bool        // it was idle before, so the other side may have closed it
	expiry *time.Timer // closes it after idleTimeout without use
}

// idleConns are the connections that no call uses at the moment.
type idleConns struct {
	mu     sync.Mutex
	by     map[string][]*conn // guarded by mu: per origin, the last used at the end
	closed bool               // guarded by mu
}

// take returns the connection to an origin that was used last and is still open; nil when there is
// none.
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

// put keeps a connection for the next call, or closes one that cannot be used again.
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

// close closes all of them, and those that are put back later.
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

package web

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// wire is a connection that counts what is written to it. Under TLS it is the connection below.
type wire struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes, because a byte that may be on its way has left, and takes back what the system
// did not accept: a write to a connection that the other side has reset leaves nothing.
func (w *wire) Write(p []byte) (int, error) {
	w.written.Add(int64(len(p)))
	n, err := w.Conn.Write(p)
	w.written.Add(int64(n - len(p)))
	return n, err
}

// counted makes the connections of a dial count.
func counted(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn}, nil
	}
}

// below finds the counting connection under TLS, which is nested behind an https proxy; nil when there is none.
func below(conn net.Conn) *wire {
	for {
		t, ok := conn.(*tls.Conn)
		if !ok {
			w, _ := conn.(*wire)
			return w
		}
		conn = t.NetConn()
	}
}

// overHTTP2 reports whether TLS has agreed on HTTP/2; without TLS it is not spoken here.
func overHTTP2(conn net.Conn) bool {
	t, ok := conn.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

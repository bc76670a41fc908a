package ledger_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wiretap is a proxy between a ledger and PostgreSQL that counts round trips and loses one on
// demand. The server answers each Sync of the extended protocol, and each simple Query, such as
// COPY, with one ReadyForQuery (PostgreSQL manual, 55.2). Only round trips with a Sync are lost.
type wiretap struct {
	listener net.Listener
	target   string
	trips    atomic.Int64
	loss     atomic.Int32 // what happens to the round trip after the next skip ones
	skip     atomic.Int32
	silent   atomic.Bool // nothing gets through any more, and neither side notices
	stubborn atomic.Bool // requests to cancel a statement get nowhere, as through some proxies
	closing  sync.WaitGroup
	ended    chan struct{} // closed at the end of the test: whatever is still connected is cut
}

// What a wiretap loses.
const (
	nothing int32 = iota
	request       // the server never sees it
	reply         // the server has done it, the client never learns
)

// tap returns the address of url through a wiretap.
func tap(t testing.TB, address string) (*wiretap, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{listener: l, target: u.Host, ended: make(chan struct{})}
	w.closing.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close()  // it ends serve
		close(w.ended) // a client waits 15 s for the answer to a CancelRequest
		w.closing.Wait()
	})
	u.Host = l.Addr().String()
	return w, u.String()
}

// lose makes the wiretap lose one round trip, after so many more.
func (w *wiretap) lose(what, after int32) {
	w.skip.Store(after)
	w.loss.Store(what)
}

func (w *wiretap) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", w.target)
		if err != nil {
			_ = client.Close() // the client sees a server that is away
			continue
		}
		c := &tapped{w: w, client: client, server: server}
		w.closing.Go(c.requests)
		w.closing.Go(c.replies)
		w.closing.Go(func() { <-w.ended; c.cut() })
	}
}

// tapped is one connection through a wiretap.
type tapped struct {
	w              *wiretap
	client, server net.Conn
	mute           atomic.Bool // the reply under way is to be lost
}

func (c *tapped) cut() {
	_ = c.client.Close() // both ends see a broken connection, which is the purpose
	_ = c.server.Close()
}

// isCancel reports whether a first message is a CancelRequest, by its code (PostgreSQL manual,
// 55.7).
func isCancel(message []byte) bool {
	return len(message) == 16 && binary.BigEndian.Uint32(message[4:]) == 1234<<16|5678
}

// requests forwards what the client sends, a whole round trip at a time, because the server
// executes a statement when it receives it, not at the Sync. The startup message has no type byte.
func (c *tapped) requests() {
	defer c.cut()
	var trip []byte
	for first := true; ; first = false {
		message, err := frame(c.client, first)
		if err != nil {
			return
		}
		if first && isCancel(message) && c.w.stubborn.Load() {
			return
		}
		if c.w.silent.Load() {
			continue
		}
		trip = append(trip, message...)
		if !first && strings.ContainsRune("PBDEC", rune(message[0])) {
			continue
		}
		if !first && message[0] == 'Q' {
			c.w.trips.Add(1)
		}
		if !first && message[0] == 'S' {
			c.w.trips.Add(1)
			if c.w.loss.Load() != nothing && c.w.skip.Add(-1) < 0 {
				switch c.w.loss.Swap(nothing) {
				case request:
					return
				case reply:
					c.mute.Store(true)
				}
			}
		}
		if _, err := c.server.Write(trip); err != nil {
			return
		}
		trip = trip[:0]
	}
}

// replies forwards what the server sends. A lost reply is first read to its end.
func (c *tapped) replies() {
	defer c.cut()
	for {
		message, err := frame(c.server, false)
		if err != nil {
			return
		}
		if c.mute.Load() {
			if message[0] == 'Z' {
				return
			}
			continue
		}
		if _, err := c.client.Write(message); err != nil {
			return
		}
	}
}

// frame reads one message of the protocol: a type byte unless it is the startup message, then the
// length, which counts itself, then the body.
func frame(r io.Reader, startup bool) ([]byte, error) {
	head := make([]byte, 5)
	if startup {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	message := make([]byte, len(head)-4+int(binary.BigEndian.Uint32(head[len(head)-4:])))
	copy(message, head)
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}

package receive

import (
	"net"
	"sync"
)

// bounded is a listener that holds at most so many connections; more wait in the system's queue until
// one has ended.
type bounded struct {
	net.Listener
	free chan struct{} // one token for each connection
	done chan struct{} // closed by Close
	once sync.Once
}

func newBounded(l net.Listener, connections int) *bounded {
	return &bounded{Listener: l, free: make(chan struct{}, connections), done: make(chan struct{})}
}

// Accept waits for a connection and for room for it.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: conn, leave: func() { <-b.free }}, nil
}

// Close ends the listener, also while it waits for room.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted gives its room back when it is closed.
type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close may be called more than once.
func (c *counted) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

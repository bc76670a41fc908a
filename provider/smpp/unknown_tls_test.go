package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// brittleConn breaks in the write that comes after the one in which it was stopped, of which so many octets leave.
type brittleConn struct {
	net.Conn
	entered chan struct{} // gets a token when a write has been stopped
	leave   chan struct{} // closed to let it go on

	mu     sync.Mutex
	armed  bool // guarded by mu
	broken bool // guarded by mu
	octets int
}

func (c *brittleConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	armed, broken := c.armed, c.broken
	c.armed, c.broken = false, armed || broken
	c.mu.Unlock()
	switch {
	case armed:
		c.entered <- struct{}{}
		<-c.leave
	case broken:
		n, _ := c.Conn.Write(p[:min(c.octets, len(p))])
		_ = c.Close()
		return n, errors.New("broken")
	}
	return c.Conn.Write(p)
}

func (c *brittleConn) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// TestUnderTLSEverySubmitOfABrokenWriteIsInDoubt: what a write reports counts records and says too little about what has
// left. Of a plain connection the same write leaves nothing in doubt of which no octet left.
func TestUnderTLSEverySubmitOfABrokenWriteIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encrypted bool
		octets    int
		want      provider.Outcome
	}{
		"plain, nothing left":      {false, 0, provider.Refused},
		"encrypted, nothing left":  {true, 0, provider.Unknown},
		"encrypted, half of a PDU": {true, 40, provider.Unknown},
		"encrypted, several PDUs":  {true, 300, provider.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBrokenWrite(t, c.encrypted, c.octets, c.want)
		})
	}
}

func checkBrokenWrite(t *testing.T, encrypted bool, octets int, want provider.Outcome) {
	t.Helper()
	var server, ours *tls.Config
	if encrypted {
		server, ours = tlsPair(t)
	}
	srv := startServer(t, smpptest.Config{TLS: server})
	conns := make(chan *brittleConn, 1)
	cfg := fastConfig(srv.Addr())
	cfg.TLS = ours
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		brittle := &brittleConn{Conn: conn, entered: make(chan struct{}, 1), leave: make(chan struct{}), octets: octets}
		select {
		case conns <- brittle:
			return brittle, nil
		default:
			return conn, nil // a later one
		}
	}
	client := startClient(t, cfg)
	conn := <-conns
	conn.arm()
	first := sendAsync(client, submission(0)) // holds the writer, so that the others are gathered behind it
	<-conn.entered
	var results []<-chan provider.Result
	for i := range 5 {
		results = append(results, sendAsync(client, submission(i+1)))
		eventually(t, "the submit is queued", func() bool { return client.queued() == i+1 })
	}
	close(conn.leave)
	if r := <-first; r.Outcome != provider.Accepted && r.Outcome != provider.Unknown {
		t.Errorf("the one that was written: %v (%s)", r.Outcome, r.Code)
	}
	for i, done := range results {
		if r := <-done; r.Outcome != want || r.Code != "connection_lost" {
			t.Errorf("submit %d: %v (%s), want %v", i, r.Outcome, r.Code, want)
		}
	}
}

package smpp

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

func TestMain(m *testing.M) {
	tier.Parallel(16)
	goleak.VerifyTestMain(m)
}

// testTimeout bounds every wait of a test.
const testTimeout = tier.LongestWait

func startServer(t testing.TB, cfg smpptest.Config) *smpptest.Server {
	t.Helper()
	srv, err := smpptest.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// fastConfig reconnects within milliseconds.
func fastConfig(addresses ...string) Config {
	return Config{
		Addresses: addresses, SystemID: "acme", Password: "s3cret",
		ReconnectMin: 2 * time.Millisecond, ReconnectMax: 20 * time.Millisecond,
	}
}

// startClient returns a client whose first bind is up.
func startClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c := startUnready(t, cfg)
	tier.Eventually(t, "the client is ready", func() bool { ok, _ := c.Ready(); return ok })
	return c
}

func startUnready(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// atOnce is an OnReceipt that answers before it returns.
func atOnce(
	take func(provider.Receipt) (taken bool),
) func(r provider.Receipt, answer func(taken bool)) {
	return func(r provider.Receipt, answer func(taken bool)) { answer(take(r)) }
}

func submission(i int) provider.Submission {
	return provider.Submission{
		ID: fmt.Sprintf("m-%d", i), Attempt: 1, To: fmt.Sprintf("+447700%06d", i), From: "ACME",
		Text: "Your code is 123456",
	}
}

// send is Send with a timeout.
func send(c *Client, s provider.Submission) provider.Result {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	return c.Send(ctx, s)
}

// rawPeer is the SMSC's end of a connection, driven by the test.
type rawPeer struct {
	t      testing.TB
	conn   net.Conn
	reader *pdu.Reader
}

// bindTimeout is a response timeout for startRaw: short for a test that waits for it, and long
// enough for the bind on a busy machine, which is tried once.
const bindTimeout = 3 * time.Second

// startRaw returns a client and the other end of its connection, already bound. Further dials fail.
func startRaw(t *testing.T, cfg Config) (*Client, *rawPeer) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Addresses, cfg.SystemID = []string{listener.Addr().String()}, "acme"
	if cfg.ReconnectMin == 0 {
		cfg.ReconnectMin = time.Hour
	}
	c := startUnready(t, cfg)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	t.Cleanup(func() { _ = conn.Close() })
	p := newRawPeer(t, conn)
	p.bound()
	tier.Eventually(t, "the client is ready", func() bool { ok, _ := c.Ready(); return ok })
	return c, p
}

func newRawPeer(t testing.TB, conn net.Conn) *rawPeer {
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	return &rawPeer{t: t, conn: conn, reader: pdu.NewReader(conn)}
}

// bound answers the bind.
func (p *rawPeer) bound() {
	p.t.Helper()
	h := p.expect(pdu.CommandBindTransceiver)
	p.send(pdu.StatusOK, h.Sequence,
		&pdu.BindResp{Command: pdu.CommandBindTransceiverResp, SystemID: "raw"})
}

// expect reads one PDU, which must be this command. Its frame is valid until the next call.
func (p *rawPeer) expect(command pdu.Command) pdu.Header {
	p.t.Helper()
	h, _, err := p.reader.Next()
	if err != nil || h.Command != command {
		p.t.Fatalf("read %v, %v; want %v", h.Command, err, command)
	}
	return h
}

func (p *rawPeer) send(status pdu.Status, sequence uint32, body pdu.Body) {
	p.t.Helper()
	frame, err := pdu.Append(nil, status, sequence, body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(frame)
}

func (p *rawPeer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// dribble writes one octet at a time.
func (p *rawPeer) dribble(b []byte) {
	p.t.Helper()
	for i := range b {
		p.write(b[i : i+1])
	}
}

// awaitClosed reads until the client has closed the connection.
func (p *rawPeer) awaitClosed() {
	p.t.Helper()
	for {
		if _, _, err := p.reader.Next(); err != nil {
			return
		}
	}
}

func payload(n int) pdu.Message {
	return pdu.Message{
		TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: bytes.Repeat([]byte{'x'}, n)}},
	}
}

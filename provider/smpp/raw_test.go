package smpp

import (
	"bytes"
	"net"
	"testing"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// rawPeer is the SMSC's end of a connection in the hands of a test.
type rawPeer struct {
	t      testing.TB
	conn   net.Conn
	reader *pdu.Reader
}

// startRaw returns a client and the other end of its connection, already bound. Any
// further dial fails.
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
	eventually(t, "the client is ready", func() bool { ok, _ := c.Ready(); return ok })
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
	p.send(pdu.StatusOK, h.Sequence, &pdu.BindResp{Command: pdu.CommandBindTransceiverResp, SystemID: "raw"})
}

// expect reads one PDU, which must be of that kind. Its frame is valid until the next.
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

// dribble writes octet by octet.
func (p *rawPeer) dribble(b []byte) {
	p.t.Helper()
	for i := range b {
		p.write(b[i : i+1])
	}
}

// gone reads until the client has closed the connection.
func (p *rawPeer) gone() {
	p.t.Helper()
	for {
		if _, _, err := p.reader.Next(); err != nil {
			return
		}
	}
}

func payload(n int) pdu.Message {
	return pdu.Message{TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: bytes.Repeat([]byte{'x'}, n)}}}
}

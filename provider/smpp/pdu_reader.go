package smpp

import (
	"net"
	"sync/atomic"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// pduReader reads the PDUs of a connection and knows since when one is begun and not whole. A peer that sends half
// of one and stops, or an octet a minute, looks alive to TCP and would be waited for for ever.
type pduReader struct {
	conn   net.Conn
	reader *pdu.Reader
	born   time.Time
	begun  atomic.Int64 // nanoseconds since born; zero while the connection is between two PDUs
}

func newPDUReader(conn net.Conn) *pduReader {
	in := &pduReader{conn: conn, born: time.Now()}
	in.reader = pdu.NewReader(in)
	return in
}

// next is pdu.Reader.Next.
func (in *pduReader) next() (pdu.Header, []byte, error) {
	h, frame, err := in.reader.Next()
	if in.begun.Load() != 0 {
		in.begun.Store(0)
	}
	return h, frame, err
}

// Read implements io.Reader for the reader.
func (in *pduReader) Read(p []byte) (int, error) {
	if in.begun.Load() == 0 && in.reader.Begun() {
		in.begun.Store(max(1, int64(time.Since(in.born))))
	}
	return in.conn.Read(p)
}

// left is how long the peer has to finish what it began; false when it has begun nothing.
func (in *pduReader) left(now time.Time, timeout time.Duration) (time.Duration, bool) {
	begun := in.begun.Load()
	if begun == 0 {
		return 0, false
	}
	return in.born.Add(time.Duration(begun) + timeout).Sub(now), true
}

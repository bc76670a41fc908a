package web

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// wire is a connection that counts what is written to it, and that looks at the clock before the
// first byte of a request. Under TLS it is the connection below.
type wire struct {
	net.Conn
	written atomic.Int64
	latest  atomic.Pointer[time.Time] // bounds the first byte of a request that has not begun
}

// errTooLate is what a write gets that comes too late.
var errTooLate = errors.New("its time is over")

// begin says that a request follows, of which no byte may leave from latest on, and returns how
// many bytes left before it.
func (w *wire) begin(latest time.Time) int64 {
	w.latest.Store(&latest)
	return w.written.Load()
}

// Write counts before it writes, because a byte that may be on its way has left, and takes back
// what the system did not accept: a write to a connection that the other side has reset leaves
// nothing.
// A request that comes too late writes nothing, and the connection nothing more either: what would
// follow is the rest of that request, or the end of TLS.
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

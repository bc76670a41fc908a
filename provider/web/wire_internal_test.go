package web

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"
)

// recordingConn records what is written to it.
type recordingConn struct {
	net.Conn
	bytes.Buffer
}

func (n *recordingConn) Write(p []byte) (int, error) { return n.Buffer.Write(p) }

func (n *recordingConn) Read(p []byte) (int, error) { return n.Buffer.Read(p) }

// TestAWriteThatComesTooLateLeavesNothing: later writes on the connection, such as the TLS close
// alert, send nothing either. They would count as a byte of the request.
func TestAWriteThatComesTooLateLeavesNothing(t *testing.T) {
	t.Parallel()
	under := &recordingConn{}
	w := &wire{Conn: under}
	write := func(text string) error { _, err := w.Write([]byte(text)); return err }
	if err := write("handshake "); err != nil {
		t.Error(err)
	}
	if before := w.begin(time.Now().Add(time.Hour)); before != int64(len("handshake ")) {
		t.Errorf("%d bytes before", before)
	}
	if err := errors.Join(write("header "), write("body ")); err != nil {
		t.Error(err)
	}
	before := w.begin(time.Now())
	for range 2 {
		if err := write("late"); !errors.Is(err, errTooLate) {
			t.Errorf("a write that is too late: %v", err)
		}
	}
	if got := under.String(); got != "handshake header body " || w.written.Load() != before {
		t.Errorf("%q was written, and %d bytes were counted after %d", got, w.written.Load(), before)
	}
}

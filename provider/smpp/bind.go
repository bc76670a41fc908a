package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// bindSequence is the sequence_number of the bind, the first request of a connection.
const bindSequence = 1

// connect dials address, and encrypts the connection if the settings say so.
func connect(ctx context.Context, cfg *Config, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	conn, err := cfg.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, &LinkError{Why: WhyDial, Err: err}
	}
	if cfg.TLS == nil {
		return conn, nil
	}
	settings := cfg.TLS.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && settings.ServerName == "" {
		settings.ServerName = host
	}
	encrypted := tls.Client(conn, settings)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &LinkError{Why: WhyTLS, Err: err}
	}
	return encrypted, nil
}

// bind sends the bind request for that role and returns the reader, which may hold PDUs that
// followed the answer. It gives up after the response timeout or when ctx ends.
func bind(ctx context.Context, cfg *Config, conn net.Conn, role pdu.Command) (*pduReader, error) {
	_ = conn.SetDeadline(time.Now().Add(cfg.ResponseTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	frame, err := pdu.Append(nil, pdu.StatusOK, bindSequence, &pdu.Bind{
		Command: role, SystemID: cfg.SystemID, Password: cfg.Password, SystemType: cfg.SystemType,
		InterfaceVersion: cfg.InterfaceVersion,
		AddrTON:          cfg.AddressRange.TON, AddrNPI: cfg.AddressRange.NPI,
		AddressRange: cfg.AddressRange.Addr,
	})
	if err != nil {
		return nil, &LinkError{Why: WhyBindLost, Err: err}
	}
	if _, err := conn.Write(frame); err != nil {
		return nil, bindFault(err)
	}
	in := newPDUReader(conn)
	if err := awaitBindResp(conn, in, role); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, &LinkError{Why: WhyBindLost, Err: context.Cause(ctx)}
	}
	return in, conn.SetDeadline(time.Time{})
}

// awaitBindResp reads until the bind is answered. It answers enquire_link, and refuses other
// requests because they come before the bind.
func awaitBindResp(conn net.Conn, in *pduReader, role pdu.Command) error {
	for {
		h, _, err := in.next()
		if err != nil {
			return bindFault(err)
		}
		var answer []byte
		switch {
		case h.Command == role.Response(), h.Command == pdu.CommandGenericNack:
			if h.Command == role.Response() && h.Status == pdu.StatusOK {
				return nil
			}
			return &LinkError{Why: WhyBindRefused, Status: h.Status}
		case h.Command == pdu.CommandEnquireLink:
			answer = pdu.AppendEmpty(nil, pdu.CommandEnquireLinkResp, pdu.StatusOK, h.Sequence)
		case !h.Command.IsResponse() && h.Command != pdu.CommandAlertNotification:
			answer = pdu.AppendEmpty(nil, pdu.CommandGenericNack, pdu.StatusInvBndSts, h.Sequence)
		}
		if len(answer) == 0 {
			continue
		}
		if _, err := conn.Write(answer); err != nil {
			return bindFault(err)
		}
	}
}

func bindFault(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &LinkError{Why: WhyBindTimeout}
	}
	return &LinkError{Why: WhyBindLost, Err: err}
}

// pduReader reads the PDUs of a connection and knows how long one has been incomplete. Without
// that, a peer that sends half a PDU and stops, or one octet per minute, would seem alive.
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
func (r *pduReader) next() (pdu.Header, []byte, error) {
	h, frame, err := r.reader.Next()
	if r.begun.Load() != 0 {
		r.begun.Store(0)
	}
	return h, frame, err
}

// Read implements io.Reader for the reader.
func (r *pduReader) Read(p []byte) (int, error) {
	if r.begun.Load() == 0 && r.reader.Begun() {
		r.begun.Store(max(1, int64(time.Since(r.born))))
	}
	return r.conn.Read(p)
}

// left is the time that the peer has to complete the current PDU; false if none has begun.
func (r *pduReader) left(now time.Time, timeout time.Duration) (time.Duration, bool) {
	begun := r.begun.Load()
	if begun == 0 {
		return 0, false
	}
	return r.born.Add(time.Duration(begun) + timeout).Sub(now), true
}

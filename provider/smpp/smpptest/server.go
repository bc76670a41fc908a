// Package smpptest is a scripted SMSC on loopback, used by tests of the SMPP adapter, the demo and
// the sandbox.
// It speaks real SMPP 3.4 over real sockets and misbehaves on request: see Behaviour, which can be
// changed while it runs. Its log shows independently what was submitted. It forwards nothing and
// keeps no state across a restart.
package smpptest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"dispatcher/provider/smpp/pdu"
)

// Alphabet is the server's meaning of data_coding 0.
type Alphabet uint8

const (
	// GSM7 is the GSM default alphabet.
	GSM7 Alphabet = iota
	// Latin1 is ISO 8859-1, which includes ASCII.
	Latin1
)

// Config describes a Server. The zero value listens on a free port of 127.0.0.1,
// accepts any bind and keeps no log.
type Config struct {
	Addr     string      // host:port; "127.0.0.1:0" unless set
	TLS      *tls.Config // nil for plain TCP
	SystemID string      // required of binds when set
	Password string      // required of binds when SystemID is set
	Name     string      // the system_id of bind_resp; "smpptest" unless set
	// Version is announced in bind_resp; zero announces none, as a 3.3 peer does. A server of
	// version 3.3, and any towards an ESME of that version, sends no optional parameters.
	Version   byte
	Alphabet  Alphabet
	Behaviour Behaviour
	// Log is how many of the last submits are kept for Submits; below zero keeps all.
	Log int
	// OnSubmit, if set, is called with every submit when it is read. It is called from the
	// connection's goroutine.
	OnSubmit func(Submit)
}

// Stats counts what a Server received and sent since it started.
type Stats struct {
	Connections, Binds, BindsRefused    uint64
	Submits, Accepted, Throttled        uint64 // accepted includes those without answer
	EnquireLinks, Unbinds               uint64
	ReceiptsSent, ReceiptsTaken, Unread uint64 // taken: answered ESME_ROK; unread: undecodable PDUs
	InboundSent, InboundTaken           uint64 // messages of subscribers, and their repetitions
	// receipts and messages that the ESME will never take
	Refused uint64
	Queries uint64
}

// Server is a scripted SMSC. It is safe for concurrent use.
type Server struct {
	cfg      Config
	listener net.Listener
	script   atomic.Pointer[script]
	journal  journal
	counts   counters
	accepted atomic.Uint64 // numbers message_ids
	receipts *receiptQueue

	stop chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu     sync.Mutex
	conns  map[*conn]struct{} // guarded by mu
	lastID int                // guarded by mu
	closed bool               // guarded by mu
}

type counters struct {
	connections, binds, bindsRefused    atomic.Uint64
	submits, accepted, throttled        atomic.Uint64
	enquireLinks, unbinds               atomic.Uint64
	receiptsSent, receiptsTaken, unread atomic.Uint64
	inboundSent, inboundTaken, refused  atomic.Uint64
	queries                             atomic.Uint64
}

// Start listens and serves in the background. Close ends it.
func Start(cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for SMPP: %w", err)
	}
	if cfg.TLS != nil {
		listener = tls.NewListener(listener, cfg.TLS)
	}
	s := New(cfg)
	s.listener = listener
	s.wg.Go(s.acceptLoop)
	return s, nil
}

// New returns a Server that does not listen; ServeConn gives it connections.
func New(cfg Config) *Server {
	if cfg.Name == "" {
		cfg.Name = "smpptest"
	}
	s := &Server{cfg: cfg, stop: make(chan struct{}), conns: make(map[*conn]struct{})}
	s.journal.keep = cfg.Log
	s.receipts = newReceiptQueue(s)
	s.SetBehaviour(cfg.Behaviour)
	s.wg.Go(func() { s.receipts.schedule.loop(s.stop, s.receipts.send) })
	return s
}

// Addr returns host:port, or an empty string for a Server that does not listen.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// SetBehaviour changes the script for everything that arrives from now on.
func (s *Server) SetBehaviour(b Behaviour) { s.script.Store(&script{Behaviour: b}) }

// Submits returns the log, oldest first, as far as Config.Log keeps it.
func (s *Server) Submits() []Submit { return s.journal.list() }

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	c := &s.counts
	return Stats{
		Connections: c.connections.Load(), Binds: c.binds.Load(),
		BindsRefused: c.bindsRefused.Load(),
		Submits:      c.submits.Load(), Accepted: c.accepted.Load(), Throttled: c.throttled.Load(),
		EnquireLinks: c.enquireLinks.Load(), Unbinds: c.unbinds.Load(),
		ReceiptsSent: c.receiptsSent.Load(), ReceiptsTaken: c.receiptsTaken.Load(),
		Unread:      c.unread.Load(),
		InboundSent: c.inboundSent.Load(), InboundTaken: c.inboundTaken.Load(),
		Refused: c.refused.Load(),
		Queries: c.queries.Load(),
	}
}

// CutAll closes every connection without unbind. New ones are accepted.
func (s *Server) CutAll() {
	for _, c := range s.snapshot() {
		c.cut()
	}
}

// Unbind sends unbind on every bound connection, as an SMSC does before maintenance.
func (s *Server) Unbind() {
	for _, c := range s.snapshot() {
		c.request(&pdu.Empty{Command: pdu.CommandUnbind})
	}
}

// Deliver sends m as a deliver_sm on every bound connection that receives, and returns how many.
func (s *Server) Deliver(m pdu.Message) int {
	sent := 0
	for _, c := range s.snapshot() {
		if c.receives() {
			c.request(&pdu.DeliverSM{Message: m})
			sent++
		}
	}
	return sent
}

// Close ends every connection and returns when all goroutines of the server have ended.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
		if s.listener != nil {
			_ = s.listener.Close()
		}
	}
	s.mu.Unlock()
	s.CutAll()
	s.wg.Wait()
}

// ServeConn serves one connection in the background; the Server closes it.
func (s *Server) ServeConn(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return
	}
	s.lastID++
	c := newConn(s, nc, s.lastID)
	s.conns[c] = struct{}{}
	s.counts.connections.Add(1)
	s.wg.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	})
}

func (s *Server) acceptLoop() {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.ServeConn(nc)
	}
}

func (s *Server) snapshot() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

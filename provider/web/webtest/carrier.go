package webtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Config describes a carrier.
type Config struct {
	Protocol  Protocol
	Behaviour Behaviour
	// Address is where it listens; empty means a free port of loopback.
	Address string
	// Log is how many submits are kept for Submits, the latest ones; 0 keeps 100 000, a negative
	// number all.
	Log int
	// OnSubmit, if set, is called with every submit and its reply. It is called from several
	// goroutines.
	OnSubmit func(Submit)
	// OnRefused, if set, is called with every receipt that got no 2xx answer. It is called from
	// several goroutines.
	OnRefused func(Submit)
	// TLS serves https with these certificates, and HTTP/2; nil serves plain HTTP/1.1.
	TLS *tls.Config
	// Reference makes the id of the n-th accepted submit, counted from 1; unset, it is the number
	// after a prefix.
	Reference func(n uint64) string
}

// Carrier is a running server.
type Carrier struct {
	cfg     Config
	server  *http.Server
	address string
	caller  *caller
	script  atomic.Pointer[script]
	given   atomic.Uint64 // references
	stop    chan struct{} // closed by Close
	running sync.WaitGroup

	mu      sync.Mutex
	log     []Submit // guarded by mu
	number  int      // guarded by mu: submits so far
	unread  []string // guarded by mu: why requests could not be read
	calls   int      // guarded by mu: requests so far
	stopped bool     // guarded by mu
}

const usualLog = 100_000

// Start starts a carrier.
func Start(cfg Config) (*Carrier, error) {
	if cfg.Address == "" {
		cfg.Address = "127.0.0.1:0"
	}
	if cfg.Log == 0 {
		cfg.Log = usualLog
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("scripted carrier: %w", err)
	}
	c := &Carrier{
		cfg: cfg, address: listener.Addr().String(), stop: make(chan struct{}), caller: newCaller(),
	}
	c.SetBehaviour(cfg.Behaviour)
	// A TLS handshake has the time of the header. On a loaded machine a hundred at once take longer
	// than ten seconds.
	c.server = &http.Server{
		Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: time.Minute, TLSConfig: cfg.TLS,
	}
	c.running.Go(func() {
		if cfg.TLS != nil {
			_ = c.server.ServeTLS(listener, "", "") // it returns after Close
			return
		}
		_ = c.server.Serve(listener)
	})
	return c, nil
}

// URL is the base of the API.
func (c *Carrier) URL() string {
	if c.cfg.TLS != nil {
		return "https://" + c.address
	}
	return "http://" + c.address
}

// SetBehaviour replaces the behaviour.
func (c *Carrier) SetBehaviour(b Behaviour) { c.script.Store(&script{Behaviour: b}) }

// Submits returns the log, oldest first. It may be called after Close.
func (c *Carrier) Submits() []Submit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// Requests counts all received requests, submits or not.
func (c *Carrier) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Unread are the reasons why requests could not be read.
func (c *Carrier) Unread() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unread)
}

// SendInbound sends a subscriber's message to the callback, and returns the status of the answer.
func (c *Carrier) SendInbound(
	ctx context.Context, callback string, in provider.Inbound,
) (int, error) {
	r, err := c.cfg.Protocol.Inbound(callback, in)
	if err != nil || r == nil {
		return 0, err
	}
	return c.caller.call(ctx, r)
}

// SendReceipt sends a receipt for a submit to the callback, and returns the status of the answer; 0
// if the submit wants none. With several parts it is the status of the last call; a status other
// than 2xx ends the calls.
func (c *Carrier) SendReceipt(
	ctx context.Context, s Submit, receipt Receipt,
) (status int, err error) {
	for _, one := range about(c.cfg.Protocol, &s, receipt) {
		r, err := c.cfg.Protocol.Receipt(&one, receipt)
		if err != nil || r == nil {
			return 0, err
		}
		if status, err = c.caller.call(ctx, r); err != nil || status/100 != 2 {
			return status, err
		}
	}
	return status, nil
}

// Close ends all connections, and all current and future calls.
func (c *Carrier) Close() {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return
	}
	c.stopped = true
	c.mu.Unlock()
	close(c.stop)
	_ = c.server.Close()
	c.running.Wait()
	c.caller.close()
}

func (c *Carrier) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, provider.MaxCallback))
	if err != nil {
		return
	}
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	if other, ok := c.cfg.Protocol.(ExtraRequests); ok &&
		other.ServeExtra(w, r, body, c.Submits()) {
		return
	}
	s, err := c.cfg.Protocol.Read(r, body)
	if err != nil {
		c.mu.Lock()
		c.unread = append(c.unread, err.Error())
		c.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script := c.script.Load()
	s.At, s.Parts, s.Method, s.Proto = time.Now(), max(s.Parts, 1), r.Method, r.Proto
	answer := c.note(&s, script)
	if !c.wait(r.Context(), answer.Hold, script.delay()) || answer.Reply == providertest.Lose {
		c.wait(r.Context(), make(chan struct{}), 0)
		panic(http.ErrAbortHandler)
	}
	if answer.Reply == providertest.Cut {
		panic(http.ErrAbortHandler)
	}
	c.cfg.Protocol.Write(w, &s, answer)
	if answer.Reply == providertest.Accept {
		c.follow(s, script)
	}
}

// note decides about a submit and logs it, before anything is answered.
func (c *Carrier) note(s *Submit, script *script) providertest.Answer {
	c.mu.Lock()
	c.number++
	s.Number = c.number
	c.mu.Unlock()
	answer := script.decide(s.At, *s)
	s.Reply = answer.Reply
	if answer.Reply == providertest.Accept {
		if s.Reference = answer.Reference; s.Reference == "" {
			s.Reference = c.reference()
		}
	}
	c.mu.Lock()
	if c.cfg.Log > 0 && len(c.log) >= c.cfg.Log {
		c.log = slices.Delete(c.log, 0, len(c.log)-c.cfg.Log/2)
	}
	c.log = append(c.log, *s)
	c.mu.Unlock()
	if c.cfg.OnSubmit != nil {
		c.cfg.OnSubmit(*s)
	}
	return answer
}

func (c *Carrier) reference() string {
	n := c.given.Add(1)
	if c.cfg.Reference != nil {
		return c.cfg.Reference(n)
	}
	return "sandbox-" + strconv.FormatUint(n, 10)
}

// wait delays an answer; false means that the caller or the carrier has gone meanwhile.
func (c *Carrier) wait(ctx context.Context, hold <-chan struct{}, d time.Duration) bool {
	var done <-chan time.Time
	if hold == nil {
		if d <= 0 {
			return true
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		done = timer.C
	}
	select {
	case <-hold:
	case <-done:
	case <-ctx.Done():
		return false
	case <-c.stop:
		return false
	}
	return true
}

// follow sends the receipts of an accepted submit.
func (c *Carrier) follow(s Submit, script *script) {
	receipts := script.receipts(s)
	if len(receipts) == 0 {
		return
	}
	c.caller.after(script.ReceiptDelay, func(ctx context.Context) {
		for _, receipt := range receipts {
			for _, one := range about(c.cfg.Protocol, &s, receipt) {
				r, err := c.cfg.Protocol.Receipt(&one, receipt)
				if err != nil || r == nil {
					return
				}
				c.caller.callUntilAccepted(ctx, r, func() { c.refused(one) })
			}
		}
	})
}

// refused reports a call that was not accepted to Config.OnRefused.
func (c *Carrier) refused(s Submit) {
	if c.cfg.OnRefused != nil {
		c.cfg.OnRefused(s)
	}
}

// Package smpp carries messages to an SMSC over SMPP 3.4, as an ESME.
// A Client is one channel of the dispatcher. It holds the configured number of binds, each with a
// window of unanswered submit_sm, and implements provider.Channel: it submits each part at most
// once, and knows exactly whether octets may have left. Package pdu is its codec and smpptest a
// scripted SMSC.
// Out of scope: how fast a channel may send and whether it is healthy (admission, breaker, pacing),
// and the processing of receipts (Config.OnReceipt gets them).
package smpp

import (
	"context"
	"fmt"
	"sync"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// Client is a channel to one SMSC account. It is safe for concurrent use.
type Client struct {
	cfg     Config
	pool    *pool
	calls   callPool
	links   []*link
	queries *receiptQueries // nil unless missing receipts are queried

	leave context.CancelFunc // links unbind and end
	abort context.CancelFunc // links end at once
	ended chan struct{}      // closed when every link has ended
}

var _ provider.Channel = (*Client)(nil)

// New checks cfg and returns at once; the binds come up in the background. Until the first one is
// up, Ready says "connecting" and Send refuses. Close must be called.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("smpp channel: %w", err)
	}
	c := &Client{cfg: cfg.withDefaults(), ended: make(chan struct{})}
	c.pool = newPool(c.cfg.Window)
	c.pool.probe = c.cfg.ResponseTimeout
	life, abort := context.WithCancel(context.Background())
	serving, leave := context.WithCancel(life)
	c.abort, c.leave = abort, leave
	for bind := range c.cfg.Binds {
		for _, role := range c.cfg.roles() {
			c.links = append(c.links, &link{
				cfg: &c.cfg, pool: c.pool, bind: bind, role: role,
				firstAddress: bind % len(c.cfg.Addresses), address: bind % len(c.cfg.Addresses),
				state: BindState{Bind: bind, Role: role},
			})
		}
	}
	var running sync.WaitGroup
	if c.cfg.QueryAfter > 0 && c.cfg.OnReceipt != nil {
		c.startReceiptQueries(serving, &running)
	}
	for _, l := range c.links {
		running.Go(func() { l.run(life, serving) })
	}
	go func() {
		running.Wait()
		close(c.ended)
	}()
	return c, nil
}

// startReceiptQueries tracks every receipt from now on, so that a message whose final receipt came
// is not queried.
func (c *Client) startReceiptQueries(serving context.Context, running *sync.WaitGroup) {
	c.queries = newReceiptQueries(c)
	onReceipt := c.cfg.OnReceipt
	c.cfg.OnReceipt = func(r provider.Receipt, answer func(taken bool)) {
		onReceipt(r, func(taken bool) {
			if taken && r.State.Final() {
				c.queries.received(r.Reference)
			}
			answer(taken)
		})
	}
	running.Go(func() { c.queries.run(serving) })
}

// roles are the bind operations of one bind of the channel.
func (c *Config) roles() []pdu.Command {
	if c.Bind == TransmitterReceiver {
		return []pdu.Command{pdu.CommandBindTransmitter, pdu.CommandBindReceiver}
	}
	return []pdu.Command{pdu.CommandBindTransceiver}
}

// Ready implements provider.Channel. It is true while at least one bind can submit.
// The reasons are "connecting", "unbound", "bind_refused" and "closed".
func (c *Client) Ready() (ok bool, why string) { return c.pool.ready() }

// States returns the current state of every bind, in a fixed order.
func (c *Client) States() []BindState {
	states := make([]BindState, len(c.links))
	for i, l := range c.links {
		states[i] = l.current()
	}
	return states
}

// Close implements provider.Channel. It refuses new messages, waits for the answers of those in
// flight, unbinds, and returns when every connection and goroutine has ended. If ctx ends first,
// connections are cut, unanswered submits are Unknown, and the error is that of ctx. An OnDeliver
// that ignores its context delays Close.
func (c *Client) Close(ctx context.Context) error {
	c.pool.close()
	select {
	case <-c.pool.idle:
	case <-ctx.Done():
		c.abort()
	}
	c.leave()
	var err error
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.abort()
		<-c.ended
		err = fmt.Errorf("close smpp channel: %w", context.Cause(ctx))
	}
	<-c.pool.idle
	c.abort()
	return err
}

var _ provider.Capable = (*Client)(nil)

// Capabilities implements provider.Capable.
func (c *Client) Capabilities() provider.Capabilities { return c.cfg.Capabilities() }

// Capabilities are what the SMSC offers with these settings. SMPP has no idempotency key: a second
// submission is sent again. Nor can a submission be looked up by our key: query_sm needs the
// message_id, which a submission without an answer does not have. Each part is a submission of its
// own, except for text in message_payload; a text in national tables is never sent that way.
func (c Config) Capabilities() provider.Capabilities {
	c = c.withDefaults()
	return provider.Capabilities{
		KeyInReceipt: c.ReceiptKeyTLV != 0,
		PartReceipts: c.LongMessages != MessagePayload || !c.Tables.None(),
		Receipts: c.RegisteredDelivery&pdu.ReceiptMask == pdu.ReceiptFinal ||
			c.QueryAfter > 0,
	}
}

package app

import (
	"fmt"
	"strconv"
	"time"

	"dispatcher/provider/smpp/smpptest"
)

// sandboxWindow is the window of a channel to a sandbox carrier.
const sandboxWindow = 200

// carriers are the sandbox carriers of this process: scripted SMSCs on loopback.
type carriers struct {
	behaviour smpptest.Behaviour
	onSubmit  func(channel string, s smpptest.Submit)
	servers   map[string]*smpptest.Server // by channel
}

// start opens the carrier of a channel, if that was not done before, and returns its address. A
// channel that is connected anew finds the carrier that it knows.
func (c *carriers) start(channel string) (string, error) {
	if known := c.servers[channel]; known != nil {
		return known.Addr(), nil
	}
	cfg := smpptest.Config{Name: "sandbox", Behaviour: c.behaviour}
	if cfg.Behaviour.MessageID == nil {
		cfg.Behaviour.MessageID = idsFrom(time.Now())
	}
	if c.onSubmit != nil {
		cfg.OnSubmit = func(s smpptest.Submit) { c.onSubmit(channel, s) }
	}
	server, err := smpptest.Start(cfg)
	if err != nil {
		return "", fmt.Errorf("sandbox carrier: %w", err)
	}
	if c.servers == nil {
		c.servers = map[string]*smpptest.Server{}
	}
	c.servers[channel] = server
	return server.Addr(), nil
}

// idsFrom numbers messages from a moment on: a receipt belongs to one message, so that a carrier never gives an id twice,
// also when the process is started again over the same database.
func idsFrom(start time.Time) func(n uint64) string {
	first := uint64(start.UnixMilli()) << idBits //nolint:gosec // After 1970.
	return func(n uint64) string { return strconv.FormatUint(first+n, 16) }
}

// idBits leaves room for 1024 ids in a millisecond.
const idBits = 10

func (c *carriers) close() {
	for _, server := range c.servers {
		server.Close()
	}
}

// sandboxBehaviour answers as a quick carrier does. Receipts come only for what asks for them.
func sandboxBehaviour() smpptest.Behaviour {
	return smpptest.Behaviour{
		Latency: 2 * time.Millisecond, Jitter: 3 * time.Millisecond, Receipts: true, ReceiptDelay: 100 * time.Millisecond,
	}
}

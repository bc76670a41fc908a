package embedded

import (
	"fmt"
	"strconv"
	"time"

	"dispatcher/provider/smpp/smpptest"
)

// Carriers are the SMPP carriers on loopback for channels with "provider: sandbox". The zero value
// is ready to use; it is not safe for concurrent use.
type Carriers struct {
	// Behaviour is how they answer; nil is QuickCarrier.
	Behaviour *smpptest.Behaviour
	// OnSubmit is called for every submit that a carrier reads; may be nil.
	OnSubmit func(channel string, s smpptest.Submit)

	servers map[string]*smpptest.Server // by channel
}

// Start starts the carrier of a channel, unless it runs already, and returns its address.
func (c *Carriers) Start(channel string) (string, error) {
	if running := c.servers[channel]; running != nil {
		return running.Addr(), nil
	}
	cfg := smpptest.Config{Name: "sandbox", Behaviour: QuickCarrier()}
	if c.Behaviour != nil {
		cfg.Behaviour = *c.Behaviour
	}
	if cfg.Behaviour.MessageID == nil {
		cfg.Behaviour.MessageID = idsFrom(time.Now())
	}
	if c.OnSubmit != nil {
		cfg.OnSubmit = func(s smpptest.Submit) { c.OnSubmit(channel, s) }
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

// Close stops all carriers.
func (c *Carriers) Close() {
	for _, server := range c.servers {
		server.Close()
	}
}

// QuickCarrier answers within milliseconds and sends a receipt for each submit that asks for one.
func QuickCarrier() smpptest.Behaviour {
	return smpptest.Behaviour{
		Latency: 2 * time.Millisecond, Jitter: 3 * time.Millisecond,
		Receipts: true, ReceiptDelay: 100 * time.Millisecond,
	}
}

// idBits allows 1024 ids a millisecond.
const idBits = 10

// idsFrom numbers messages by their start time and count. A receipt belongs to one message, so a
// carrier must never give an id twice, even when the process is restarted with the same database.
func idsFrom(start time.Time) func(n uint64) string {
	first := uint64(start.UnixMilli()) << idBits //nolint:gosec // After 1970.
	return func(n uint64) string { return strconv.FormatUint(first+n, 16) }
}

package app

import (
	"time"

	"dispatcher/config"
	"dispatcher/provider/smpp"
)

// Awaits is how long receipts of a channel are expected; 0 when none are. Where the document does not mention
// them, an SMPP channel expects those that it asks for by registered_delivery, and a sandbox, which is to be as quick
// as can be, none.
func Awaits(c *config.Channel) time.Duration {
	wait := c.Receipts.Wait()
	if wait == 0 || c.Test || c.Receipts.Within > 0 || c.Active.UntilReceipt() {
		return wait
	}
	switch c.Provider {
	case "sandbox":
		return 0
	case "smpp":
		cfg, err := smpp.ParseSettings(c.Settings, standIn(c.Settings))
		if err == nil && !cfg.Capabilities().Receipts {
			return 0
		}
	}
	return wait
}

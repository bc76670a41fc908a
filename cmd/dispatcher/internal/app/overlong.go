package app

import (
	"fmt"
	"time"

	"dispatcher/config"
	"dispatcher/provider/smpp"
)

// Overlong says that a channel's response_timeout, if it sets one, has no effect under a DISPATCHER_SEND_TIMEOUT, which
// counts from the claim and so ends every wait for an answer before; empty when it has. It needs both the settings of the process and
// those of the channel, so that neither can refuse the other.
func Overlong(channel *config.Channel, sendTimeout time.Duration) string {
	if channel.Provider != "smpp" || sendTimeout <= 0 {
		return ""
	}
	cfg, err := smpp.ParseSettings(channel.Settings, standIn(channel.Settings))
	if err != nil || cfg.ResponseTimeout < sendTimeout {
		return "" // connect says what is wrong with them
	}
	return fmt.Sprintf("response_timeout %s has no effect on submits: DISPATCHER_SEND_TIMEOUT of %s ends every wait for an answer before", cfg.ResponseTimeout, sendTimeout)
}

// Package birdtest is Bird's API as its server speaks it, for package webtest: it reads as strictly
// as Bird does, answers in its shapes, and signs what it posts with Bird's schemes. It is written
// from the documentation and shares no code with the adapter.
package birdtest

import (
	"errors"
	"net/http"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// Config describes an account.
type Config struct {
	AccessKey  string
	SigningKey string
	// HMAC signs status reports the older way, without JWT.
	HMAC bool
	// Workspace and Channel, when set, make it the Channels API.
	Workspace, Channel string
	// Callback is where the Channels API posts events; the messages endpoint is told with each
	// message.
	Callback string
}

// New returns the protocol of an account.
func New(cfg Config) webtest.Protocol {
	if cfg.Channel != "" {
		return channels{cfg}
	}
	return messages{cfg}
}

var errKey = errors.New("wrong access key")

func (c *Config) authorized(r *http.Request) error {
	if r.Header.Get("Authorization") != "AccessKey "+c.AccessKey {
		return errKey
	}
	return nil
}

// status is Bird's word for a state.
func status(r webtest.Receipt) (word, reason, code string) {
	switch r.State {
	case provider.Delivered:
		return "delivered", "successfully delivered", "0"
	case provider.Undelivered:
		if r.Code != "" {
			return "delivery_failed", "generic delivery failure", r.Code
		}
		return "delivery_failed", "unknown subscriber", "1"
	case provider.Pending:
	}
	return "sent", "pending DLR", ""
}

// verdictStatus is the HTTP status of an answer that is no.
func replyStatus(v providertest.Reply) int {
	switch v {
	case providertest.Reject:
		return http.StatusUnprocessableEntity
	case providertest.Refuse:
		return http.StatusUnauthorized
	case providertest.Throttle:
		return http.StatusTooManyRequests
	case providertest.Accept, providertest.Lose, providertest.Cut:
	}
	return 0
}

// stamp is the time that stands in answers and signatures.
func stamp() time.Time { return time.Now().UTC() }

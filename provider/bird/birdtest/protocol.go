// Package birdtest is the server side of Bird's API, for package webtest: it reads as strictly as
// Bird does, answers in the same formats, and signs what it posts with Bird's schemes. It is
// written from the documentation and shares no code with the adapter.
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
	// HMAC signs status reports with the older scheme, without JWT.
	HMAC bool
	// Workspace and Channel select the Channels API.
	Workspace, Channel string
	// Callback is where the Channels API posts events; the messages endpoint gets the address with
	// each message.
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

// replyStatus is the HTTP status of a refusing answer.
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

// stamp is the time in answers and signatures.
func stamp() time.Time { return time.Now().UTC() }

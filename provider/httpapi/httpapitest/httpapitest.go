// Package httpapitest is the server side of two real gateways, for package webtest: Kannel's
// sendsms (User's Guide 1.4, chapter "Using HTTP interface") and ClickSend's REST API v3. The
// documents that describe them to the adapter are in its testdata.
package httpapitest

import (
	"errors"

	"dispatcher/provider/web/webtest"
)

// Gateway is one of the gateways.
type Gateway uint8

const (
	// Kannel is a GET with everything in the query, answered by a line of text without an id.
	Kannel Gateway = iota
	// ClickSend is a POST of JSON, answered 200 even for errors, which are in the body.
	ClickSend
)

// Config describes an account.
type Config struct {
	Gateway        Gateway
	User, Password string
	// Secret is sent with callbacks for which the message names no address.
	Secret string
	// Callback is where ClickSend posts receipts; Kannel gets the address with each message.
	Callback string
}

// New returns the protocol of an account.
func New(cfg Config) webtest.Protocol {
	if cfg.Gateway == ClickSend {
		return clickSend{cfg}
	}
	return kannel{cfg}
}

var errAccount = errors.New("wrong user or password")
